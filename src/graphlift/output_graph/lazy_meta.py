"""Metadata of FX nodes, made when asked for.

A node's ``meta`` is a dictionary that looks as if it held ``example_value`` (a fake tensor) and
``stack_trace`` (text) from the beginning; both are made at the first look. Owns the fake mode of one
captured graph.
"""

from __future__ import annotations

import linecache
from types import CodeType
from typing import Any

import torch

from graphlift.graph_value import GraphValue, SymValue
from graphlift.metadata import MetaRecord


class Fakes:
    """Fake tensors of one captured graph, in one fake mode with a `ShapeEnv`.

    Args:
        mode: the mode of a capture with symbolic sizes; else one is made when first needed.
    """

    def __init__(self, mode: Any = None) -> None:
        self._mode = mode
        self._by_value: dict[Any, Any] = {}

    @property
    def has_mode(self) -> bool:
        """Whether the mode was made already."""
        return self._mode is not None

    @property
    def mode(self) -> Any:
        """The `FakeTensorMode`."""
        if self._mode is None:
            from torch._subclasses.fake_tensor import FakeTensorMode
            from torch.fx.experimental.symbolic_shapes import ShapeEnv

            # Whoever makes fakes of the real inputs in it must get the sizes of the capture.
            self._mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True)
        return self._mode

    def of(self, value: Any) -> Any:
        """What stands for a value of the graph: a fake tensor, or a symbolic number."""
        if type(value) is SymValue:
            return value.sym
        found = self._by_value.get(value)
        if found is None:
            found = self._by_value[value] = value.fake if value.fake is not None else self._make(value)
        return found

    def _make(self, value: GraphValue) -> Any:
        if value.real is not None:
            return self.mode.from_tensor(value.real, static_shapes=True)
        meta: MetaRecord = value.meta
        with self.mode, torch.no_grad():
            fake = torch.empty_strided(meta.shape, meta.stride, dtype=meta.dtype, device=meta.device)
        if meta.requires_grad:
            fake.requires_grad_()
        return fake


class LazyMeta(dict[str, Any]):
    """The ``meta`` of one node; see the module."""

    __slots__ = ("_fakes", "_value", "_where")

    def __init__(self, fakes: Fakes | None = None, value: Any = None, where: Any = None) -> None:
        self._fakes = fakes
        self._value = value
        self._where = where

    def _offers(self, key: object) -> bool:
        if key == "example_value":
            return self._value is not None
        return key == "stack_trace" and self._where is not None

    def __missing__(self, key: str) -> Any:
        if not self._offers(key):
            raise KeyError(key)
        made = self._made(key)
        self[key] = made
        return made

    def _made(self, key: str) -> Any:
        if key == "stack_trace":
            return stack_text(self._where)
        assert self._fakes is not None
        return self._fakes.of(self._value)

    def __contains__(self, key: object) -> bool:
        return dict.__contains__(self, key) or self._offers(key)

    def get(self, key: str, default: Any = None) -> Any:
        """As for any dictionary; makes what is offered."""
        return self[key] if key in self else default  # noqa: SIM401

    def __copy__(self) -> LazyMeta:
        twin = LazyMeta(self._fakes, self._value, self._where)
        dict.update(twin, self)
        return twin

    copy = __copy__

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def places(where: Any) -> list[tuple[CodeType, int]]:
    """A place in the user's program as (code, line) from the outermost frame to the innermost."""
    found = []
    while where is not None:
        code, offset, where = where
        found.append((code, line_of(code, offset)))
    found.reverse()
    return found


def line_of(code: CodeType, offset: int) -> int:
    """The line of the instruction at a byte offset."""
    for start, end, line in code.co_lines():
        if start <= offset < end and line is not None:
            return line
    return code.co_firstlineno


def stack_text(where: Any) -> str:
    """A place in the user's program, as tracebacks print it."""
    lines = []
    for code, line in places(where):
        lines.append(f'  File "{code.co_filename}", line {line}, in {code.co_name}\n')
        source = linecache.getline(code.co_filename, line).strip()
        if source:
            lines.append(f"    {source}\n")
    return "".join(lines)
