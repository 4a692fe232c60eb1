"""A plain function that computes a captured graph, made from the record (not from FX).

Owns the choice of registers and the statement that each operation is. Each operation is a line of its own, so
the line of a traceback tells the operation.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Sequence
from itertools import count
from types import FunctionType
from typing import Any, Final

from graphlift.meta_propagation.template import CONSTANT_CLASSES
from graphlift.output_graph.record import VALUES, Operation, operands
from graphlift.output_graph.stencils import FIRST_CONST, Filler

#: Operators that are written between their operands.
INFIX: Final[dict[Any, str]] = {
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
#: Classes of which a code object may hold an instance.
_CONSTANTS: Final = (CONSTANT_CLASSES - {bool, type(None)}) | {type(Ellipsis), bytes}

_numbers = count()
#: The line of a graph's first operation in its forward; each has a line of its own.
FIRST_LINE: Final = 2


def _is_constant(value: Any) -> bool:
    kind = type(value)
    if kind is tuple:
        return all(map(_is_constant, value))
    return value is None or kind is bool or kind in _CONSTANTS


class _Statement:
    """One operation as text with placeholders, and what the placeholders stand for."""

    __slots__ = ("_places", "consts", "objects", "values")

    def __init__(self) -> None:
        self.values: list[Any] = []
        self.consts: list[Any] = []
        self.objects: list[Any] = []
        self._places: dict[Any, str] = {}

    def text(self, operation: Operation) -> str:
        """The right-hand side, or the whole of a statement that sets an item."""
        target, args = operation.target, operation.args
        if operation.method:
            return f"{self.atom(args[0])}.{target}({self._arguments(args[1:], operation.kwargs)})"
        if not operation.kwargs:
            plain = self._operator(target, args)
            if plain is not None:
                return plain
        return f"{self._object(target)}({self._arguments(args, operation.kwargs)})"

    def _operator(self, target: Any, args: Sequence[Any]) -> str | None:
        count = len(args)
        if count == 3 and target is operator.setitem:
            return f"{self.atom(args[0])}[{self._index(args[1])}] = {self.atom(args[2])}"
        if count == 2:
            sign = INFIX.get(target)
            if sign is not None and (type(args[0]) in VALUES or type(args[1]) in VALUES):
                return f"{self.atom(args[0])} {sign} {self.atom(args[1])}"
            if target is operator.getitem:
                return f"{self.atom(args[0])}[{self._index(args[1])}]"
        elif count == 1 and target in _PREFIX and type(args[0]) in VALUES:
            return f"{_PREFIX[target]}{self.atom(args[0])}"
        return None

    def _arguments(self, args: Sequence[Any], kwargs: Any) -> str:
        parts = [self.atom(x) for x in args]
        parts += [f"{name}={self.atom(x)}" for name, x in kwargs.items()]
        return ", ".join(parts)

    def _index(self, index: Any) -> str:
        if type(index) is tuple and not all(map(_is_constant, index)):
            return "".join([f"{self._subscript(x)}, " for x in index])
        return self._subscript(index)

    def _subscript(self, index: Any) -> str:
        if type(index) is slice:
            bounds = (index.start, index.stop, index.step)
            return ":".join("" if x is None else self.atom(x) for x in bounds)
        return self.atom(index)

    def atom(self, value: Any) -> str:
        """An argument."""
        kind = type(value)
        if kind in VALUES:
            return self.local(value)
        if value is None or kind is bool:
            return str(value)
        if kind in _CONSTANTS:
            self.consts.append(value)
            return str(FIRST_CONST + len(self.consts) - 1)
        return self._nest(value)

    def _nest(self, value: Any) -> str:
        """A container, or an object that is neither value nor constant.

        The compiler makes one constant of a tuple of constants; here that is one from the beginning.
        """
        kind = type(value)
        if kind is tuple or kind is list:
            if value and all(map(_is_constant, value)):
                self.consts.append(tuple(value))
                whole = str(FIRST_CONST + len(self.consts) - 1)
                return whole if kind is tuple else f"[*{whole}]"
            items = "".join([f"{self.atom(x)}, " for x in value])
            return f"({items})" if kind is tuple else f"[{items}]"
        if kind is dict:
            pairs = f"{self._object(zip)}({self.atom(tuple(value))}, {self.atom([*value.values()])})"
            return f"{self._object(dict)}({pairs})"
        if kind is slice:
            return f"{self._object(slice)}({self._arguments((value.start, value.stop, value.step), {})})"
        return self._object(value)

    def local(self, value: Any) -> str:
        """A value of the graph."""
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = f"L{len(self.values)}"
            self.values.append(value)
        return place

    def _object(self, value: Any) -> str:
        self.objects.append(value)
        return f"G{len(self.objects) - 1}"


class _Writer:
    """Writes one function."""

    def __init__(
        self,
        inputs: Sequence[Any],
        operations: Sequence[Operation],
        outputs: Sequence[Any],
        uses: Sequence[Sequence[Any]],
    ) -> None:
        self._registers: dict[Any, int] = {value: n for n, value in enumerate(inputs)}
        self._free: list[int] = []
        self.local_count = len(inputs)
        self._dying, self._used = _last_uses(uses, outputs)
        self.filler = Filler()
        for position, operation in enumerate(operations):
            self._operation(position, operation)
        last = _Statement()
        results = "".join([f"{last.local(value)}, " for value in outputs])
        self._fill(f"return ({results})", last, [self._registers[value] for value in last.values])

    def _operation(self, position: int, operation: Operation) -> None:
        statement = _Statement()
        text = statement.text(operation)
        known = self._registers
        registers = [known[value] for value in statement.values]
        dying = self._dying[position]
        # Inputs stay: whoever called holds them anyway.
        dead = [(statement.local(value), known.pop(value)) for value in dying if value.index >= 0]
        value = operation.value
        if value in self._used and value not in known and value not in dying:
            if dead:
                place, register = dead.pop()
            else:
                place, register = f"L{len(registers)}", self._new_register()
                registers.append(register)
            known[value] = register
            text = f"{place} = {text}"
        if dead:
            text += "; del " + ", ".join([name for name, _ in dead])
            self._free.extend([register for _, register in dead])
        self._fill(text, statement, registers)

    def _new_register(self) -> int:
        if self._free:
            return self._free.pop()
        self.local_count += 1
        return self.local_count - 1

    def _fill(self, text: str, statement: _Statement, registers: Sequence[int]) -> None:
        self.filler.add(text, registers, statement.consts, statement.objects)


def _last_uses(uses: Sequence[Sequence[Any]], outputs: Sequence[Any]) -> tuple[list[list[Any]], set[Any]]:
    """For each operation, of which the operands are told, the values that nobody reads after it; and all
    values that are read at all."""
    later = set(outputs)
    dying: list[list[Any]] = []
    for values in reversed(uses):
        last = [value for value in dict.fromkeys(values) if value not in later]
        later.update(last)
        dying.append(last)
    dying.reverse()
    return dying, later


def make_forward(
    inputs: Sequence[Any],
    operations: Sequence[Operation],
    outputs: Sequence[Any],
    uses: Sequence[Sequence[Any]] | None = None,
) -> FunctionType:
    """The function of `inputs` (flat, positional) that gives a tuple of `outputs`.

    `uses` are the operands of each operation, if they are known already.
    """
    writer = _Writer(inputs, operations, outputs, [*map(operands, operations)] if uses is None else uses)
    filename = f"<graphlift graph {next(_numbers)}>"
    code = writer.filler.code("forward", filename, len(inputs), writer.local_count)
    # An operation that warns imports in the name of the function that called it.
    function = FunctionType(code, {"__builtins__": vars(builtins), **writer.filler.globals}, "forward")
    function.__module__ = __name__
    return function
