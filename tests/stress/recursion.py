"""Depth: recursion under the hook, and loops with a break in every turn.

Plain Python's limit must be graphlift's limit, and a hundred thousand breaks must cost no stack.
"""

from __future__ import annotations

import sys

import torch
from _resident import require, resident

import graphlift


@graphlift.disable
def depth_reached() -> int:
    """How deep a recursion comes from here before Python stops it."""

    def down(n: int) -> int:
        try:
            return down(n + 1)
        except RecursionError:
            return n

    return down(0)


def around(x: torch.Tensor) -> tuple[torch.Tensor, int]:
    return x + 1, depth_reached()


def deep(x: torch.Tensor, n: int) -> torch.Tensor:
    if n == 0:
        return x
    return deep(x, n - 1) + 1


def breaking_loop(x: torch.Tensor, turns: int) -> tuple[torch.Tensor, int]:
    frames = 0
    for _ in range(turns):
        x = x + 1
        frames = max(frames, depth_now())
    return x, frames


@graphlift.disable
def depth_now() -> int:
    """How many Python frames there are."""
    frame, count = sys._getframe(), 0
    while frame is not None:
        frame, count = frame.f_back, count + 1  # type: ignore[assignment]
    return count


def main() -> None:
    torch.set_num_threads(1)
    x = torch.zeros(4)
    plain, compiled = around(x)[1], graphlift.compile(around, backend="eager")(x)[1]
    require(abs(plain - compiled) <= 4, f"recursion depth: {compiled} frames, plain Python {plain}")

    result = graphlift.compile(deep, backend="eager")(x, 60)
    require(torch.equal(result, x + 60), "60 nested calls are followed")

    turns = 100_000
    loop = graphlift.compile(breaking_loop, backend="eager")
    for turns_first in (50, 60, 70):  # until the number of turns is symbolic and all is imported
        _, shallow = loop(x, turns_first)
    before = resident()
    result, frames = loop(x, turns)
    grown = resident() - before
    require(torch.equal(result, x + turns), f"{turns:,} turns with a break each: result")
    require(
        frames == shallow,
        f"{turns:,} turns with a break each: {frames} frames deep, {shallow} after 50 turns",
    )
    require(grown < 8, f"{turns:,} turns with a break each: {grown:+.1f} MiB")


if __name__ == "__main__":
    main()
