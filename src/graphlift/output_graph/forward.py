"""A plain function that computes a captured graph, made from the record (not from FX).

Owns the choice of registers and the text of that function. Each operation is a line of its own, so the
line of a traceback is the position of the operation.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from itertools import count
from types import CodeType, FunctionType
from typing import Any, Final

from graphlift.output_graph.record import VALUES, Operation, operands

_INFIX: Final[dict[Any, str]] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.truediv: "/",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.pow: "**",
    operator.matmul: "@",
    operator.and_: "&",
    operator.or_: "|",
    operator.xor: "^",
    operator.lshift: "<<",
    operator.rshift: ">>",
    operator.eq: "==",
    operator.ne: "!=",
    operator.lt: "<",
    operator.le: "<=",
    operator.gt: ">",
    operator.ge: ">=",
}
_PREFIX: Final[dict[Any, str]] = {operator.neg: "-", operator.invert: "~"}
_LITERALS: Final = frozenset({int, bool, str, type(None), type(Ellipsis)})

_numbers = count()


class _Writer:
    """Writes the lines of one function."""

    def __init__(
        self, inputs: Sequence[Any], operations: Sequence[Operation], outputs: Sequence[Any]
    ) -> None:
        self._names: dict[Any, str] = {value: f"i{n}" for n, value in enumerate(inputs)}
        self._inputs = frozenset(inputs)
        self._free: list[str] = []
        self._made = 0
        self._held: dict[int, str] = {}
        self.globals: dict[str, Any] = {}
        self._dying, self._used = _last_uses(operations, outputs)
        arguments = ", ".join(self._names.values())
        self.lines = [f"def forward({arguments}):"]
        for position, operation in enumerate(operations):
            self._operation(position, operation)
        results = "".join(f"{self._names[value]}, " for value in outputs)
        self.lines.append(f" return ({results})")

    def _operation(self, position: int, operation: Operation) -> None:
        text = self._call(operation)
        dead = [name for value in self._dying[position] if (name := self._release(value))]
        value = operation.value
        if text.startswith("="):  # a statement that sets an item
            text = text[1:]
        elif value in self._used and value not in self._names and value not in self._dying[position]:
            name = dead.pop() if dead else self._register()
            self._names[value] = name
            text = f"{name} = {text}"
        self._free.extend(dead)
        gone = f"; del {', '.join(dead)}" if dead else ""
        self.lines.append(f" {text}{gone}")

    def _register(self) -> str:
        if self._free:
            return self._free.pop()
        self._made += 1
        return f"v{self._made}"

    def _release(self, value: Any) -> str | None:
        if value in self._inputs:
            return None
        return self._names.pop(value, None)

    def _call(self, operation: Operation) -> str:
        target, args = operation.target, operation.args
        if operation.method:
            return f"{self._atom(args[0])}.{target}({self._arguments(args[1:], operation.kwargs)})"
        if not operation.kwargs:
            if len(args) == 2 and target in _INFIX:
                return f"{self._atom(args[0])} {_INFIX[target]} {self._atom(args[1])}"
            if len(args) == 1 and target in _PREFIX:
                return f"{_PREFIX[target]}{self._atom(args[0])}"
            if target is operator.getitem:
                return f"{self._atom(args[0])}[{self._index(args[1])}]"
            if target is operator.setitem:
                return f"={self._atom(args[0])}[{self._index(args[1])}] = {self._atom(args[2])}"
        return f"{self._object(target)}({self._arguments(args, operation.kwargs)})"

    def _arguments(self, args: Sequence[Any], kwargs: Any) -> str:
        parts = [self._atom(x) for x in args]
        parts += [f"{name}={self._atom(x)}" for name, x in kwargs.items()]
        return ", ".join(parts)

    def _index(self, index: Any) -> str:
        if type(index) is tuple and index:
            return "".join(f"{self._subscript(x)}, " for x in index)
        return self._subscript(index)

    def _subscript(self, index: Any) -> str:
        if type(index) is slice:
            bounds = [index.start, index.stop, index.step]
            return ":".join("" if x is None else self._atom(x) for x in bounds)
        return self._atom(index)

    def _atom(self, value: Any) -> str:
        kind = type(value)
        if kind in VALUES:
            return self._names[value]
        if value is Ellipsis:
            return "..."
        if kind in _LITERALS:
            return f"({value!r})" if kind is int and value < 0 else repr(value)
        if kind is tuple:
            return "(" + "".join(f"{self._atom(x)}, " for x in value) + ")"
        if kind is list:
            return "[" + ", ".join(self._atom(x) for x in value) + "]"
        if kind is dict:
            return "{" + ", ".join(f"{k!r}: {self._atom(x)}" for k, x in value.items()) + "}"
        if kind is slice:
            return f"{self._object(slice)}({self._arguments((value.start, value.stop, value.step), {})})"
        return self._object(value)

    def _object(self, value: Any) -> str:
        name = self._held.get(id(value))
        if name is None:
            name = self._held[id(value)] = f"c{len(self._held)}"
            self.globals[name] = value
        return name


def _last_uses(operations: Sequence[Operation], outputs: Sequence[Any]) -> tuple[list[list[Any]], set[Any]]:
    """For each operation, the values that nobody reads after it; and all values that are read at all."""
    later = set(outputs)
    dying: list[list[Any]] = []
    for operation in reversed(operations):
        last = [value for value in dict.fromkeys(operands(operation)) if value not in later]
        later.update(last)
        dying.append(last)
    dying.reverse()
    return dying, later


def make_forward(
    inputs: Sequence[Any], operations: Sequence[Operation], outputs: Sequence[Any]
) -> FunctionType:
    """The function of `inputs` (flat, positional) that gives a tuple of `outputs`."""
    writer = _Writer(inputs, operations, outputs)
    filename = f"<graphlift graph {next(_numbers)}>"
    text = "\n".join(writer.lines) + "\n"
    module = compile(text, filename, "exec", dont_inherit=True)
    code = next(x for x in module.co_consts if isinstance(x, CodeType))
    function = FunctionType(code, {"__builtins__": {}, **writer.globals}, "forward")
    function.__module__ = __name__
    return function
