"""The graph while it is being captured: a list of operations as plain tuples.

Owns the layout of an entry and the walking of arguments. Making FX nodes or code of it is for others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from graphlift.graph_value import GraphContainer, GraphValue, SymValue


class Operation(NamedTuple):
    """One call.

    Attributes:
        target: what is called: a function, or the name of a method.
        method: whether `target` is a method of the first argument.
        args, kwargs: its arguments; values of the graph may be nested in tuples, lists, dicts, slices.
        value: what it gives: a `GraphValue`, `SymValue`, `GraphContainer`, or None if nobody can use it.
            An operation that writes to its argument gives that argument's own value again.
        where: the place in the user's program, or None.
        keep: whether it must stay when nobody uses its value.
        raises: whether it may fail by the values of its arguments.
        random: whether it draws random numbers.
        written: values whose memory or metadata it changes.
    """

    target: Any
    method: bool
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    value: Any
    where: Any
    keep: bool
    raises: bool
    written: tuple[Any, ...] = ()
    random: bool = False


def writes_input(operation: Operation) -> bool:
    """Whether an operation changes memory or metadata of an input of the graph."""
    written = operation.written
    return bool(written) and any((value.base or value).index < 0 for value in written)


#: Classes whose instances are values of the graph.
VALUES: Final = frozenset({GraphValue, SymValue, GraphContainer})


def values_in(nest: Any) -> Iterator[Any]:
    """The graph's values in a nest of containers, in order."""
    kind = type(nest)
    if kind in VALUES:
        yield nest
    elif kind is tuple or kind is list:
        for item in nest:
            yield from values_in(item)
    elif kind is dict:
        for item in nest.values():
            yield from values_in(item)
    elif kind is slice:
        yield from values_in((nest.start, nest.stop, nest.step))


def operands(operation: Operation) -> list[Any]:
    """The graph's values among an operation's arguments, in order."""
    found = []
    for value in operation.args:
        kind = type(value)
        if kind in VALUES:
            found.append(value)
        elif kind is tuple or kind is list or kind is slice or kind is dict:
            found.extend(values_in(value))
    if operation.kwargs:
        for value in operation.kwargs.values():
            kind = type(value)
            if kind in VALUES:
                found.append(value)
            elif kind is tuple or kind is list or kind is slice or kind is dict:
                found.extend(values_in(value))
    return found
