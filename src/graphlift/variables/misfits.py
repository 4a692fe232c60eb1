"""Calls of C functions that do not have the form of their models: arranged anew, or CPython's own error.

A model takes positionally what the real function takes positionally *or* by keyword, so the names are
looked up in the real function's signature. Where the signature says that a call cannot be right, the error is
that of the real function, called with stand-ins; it must not be one about their type. Mirrors
Python/getargs.c.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from graphlift.protocol import Tx

_VARIABLE: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Form(NamedTuple):
    """The arguments of a call."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]


class _First:
    """Stands for an argument of which nothing is known."""


class _Second:
    """Another one, for telling whether an error speaks of it."""


@functools.cache
def _signature(function: Callable[..., Any]) -> inspect.Signature | None:
    try:
        return inspect.signature(function)
    except (ValueError, TypeError):
        return None


def arranged(tx: Tx, function: Callable[..., Any], form: Form) -> Form | None:
    """The call with all arguments positional that may be, defaults filled in between; None if it cannot be
    told."""
    signature = _signature(function)
    if signature is None:
        return None
    try:
        bound = signature.bind(*form.args, **form.kwargs)
    except TypeError:
        return None
    given = dict(bound.arguments)
    bound.apply_defaults()
    for name, value in bound.arguments.items():
        kind = signature.parameters[name].kind
        if name not in given and kind not in _VARIABLE:
            bound.arguments[name] = tx.make.from_value(value, None)
    positional, last = list(bound.args), 0
    for at, (name, parameter) in enumerate(signature.parameters.items()):
        if name in given and parameter.kind is not inspect.Parameter.KEYWORD_ONLY:
            last = at + 1
    keywords = {name: value for name, value in bound.kwargs.items() if name in form.kwargs}
    if not any(item.kind is inspect.Parameter.VAR_POSITIONAL for item in signature.parameters.values()):
        positional = positional[:last]
    return Form(positional, keywords)


def error(make: Callable[[], Callable[..., Any]], count: int, names: Sequence[str]) -> TypeError | None:
    """What the real function says of so many positional arguments and such keywords; None where it says
    nothing that holds for arguments of any type.

    Arguments:
        make: gives the function, bound to a new object if it is a method.
    """
    said = []
    for stand_in in (_First, _Second):
        try:
            make()(*[stand_in() for _ in range(count)], **{name: stand_in() for name in names})
        except TypeError as failed:
            said.append(failed)
        except Exception:  # the arguments fit, only the stand-ins were no good
            return None
    if len(said) < 2 or str(said[0]) != str(said[1]):
        return None
    return said[0]
