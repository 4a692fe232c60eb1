"""Counts how often each Python function is called, with a frame evaluator of a few lines.

python examples/count_calls.py
"""

from __future__ import annotations

from collections import Counter
from types import CodeType, FunctionType
from typing import Any

from graphlift.eval_frame import frame_callback


class CallCounter:
    """A frame evaluator that leaves every frame alone and counts it."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()

    def __call__(self, code: CodeType, function: FunctionType, arguments: dict[str, Any]) -> None:
        self.calls[code.co_qualname] += 1


def fibonacci(n: int) -> int:
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


class Stack:
    def __init__(self) -> None:
        self.items: list[int] = []

    def push(self, item: int) -> None:
        self.items.append(item)


def work() -> int:
    stack = Stack()
    for n in range(10):
        stack.push(fibonacci(n))
    return sum(stack.items)


def main() -> None:
    counter = CallCounter()
    with frame_callback(counter):
        work()
    for name, calls in counter.calls.most_common():
        print(f"{calls:6d}  {name}")


if __name__ == "__main__":
    main()
