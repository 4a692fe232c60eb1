"""``str``, ``repr`` and ``format`` of values. Mirrors `PyObject_Str`, `PyObject_Repr`, `PyObject_Format`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import UNKNOWN, VariableTracker, c_name
from graphlift.variables.constant import SPECIAL_METHODS
from graphlift.variables.folding import FOLDABLE, SIZE_LIMIT, fold, known
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import Binding, type_lookup

_NOTHING: Final = object()


def str_(tx: Tx, a: Var) -> VariableTracker:
    """``str(a)``."""
    return _text(tx, a, "__str__", str)


def repr_(tx: Tx, a: Var) -> VariableTracker:
    """``repr(a)``."""
    return _text(tx, a, "__repr__", repr)


def _text(tx: Tx, a: Var, name: str, function: Any) -> VariableTracker:
    value = known(tx, a)
    if value is not UNKNOWN:
        return fold(tx, function, value)
    operand: VariableTracker = a.realize(tx)
    cls = operand.python_type(tx)
    attr = type_lookup(tx, cls, name)
    assert attr is not None
    made: VariableTracker = attributes.call_attr(tx, attr, operand, cls, []).realize(tx)
    if not issubclass(made.python_type(tx), str):
        kind = made.python_type(tx).__name__
        tx.raise_(TypeError, f"{name} returned non-string (type {kind})")
    return made


def ascii_(tx: Tx, a: Var) -> VariableTracker:
    """``ascii(a)``."""
    text = known(tx, repr_(tx, a))
    if text is UNKNOWN:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "ascii() of a value that is not known")
    return fold(tx, _escape, text)


def _escape(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def converts_itself(tx: Tx, cls: type) -> bool:
    """Whether a class has a conversion of its own that C may ask for when it formats a number."""
    found = [type_lookup(tx, cls, name) for name in ("__float__", "__int__", "__index__")]
    return any(attr is not None and attr.binding is not Binding.C_METHOD for attr in found)


def format_(tx: Tx, a: Var, spec: Var) -> VariableTracker:
    """``format(a, spec)``."""
    value, how = known(tx, a), known(tx, spec)
    if how is UNKNOWN:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "format() with a format that is not known")
    if not isinstance(how, str):
        tx.raise_(TypeError, f"format() argument 2 must be str, not {type(how).__name__}")
    if value is not UNKNOWN:
        if len(how) > 5 and any(run.isdecimal() and int(run) > SIZE_LIMIT for run in _numbers(how)):
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "format() to a very long text")
        special = SPECIAL_METHODS.get((type(value), "__format__"))
        if special is not None:
            return special(tx, value, [spec.realize(tx)], {})
        return fold(tx, format, value, how)
    operand: VariableTracker = a.realize(tx)
    attr = attributes.user_special(tx, operand, "__format__")
    if attr is not None:
        made = attributes.call_attr(tx, attr, operand, operand.python_type(tx), [spec])
        result: VariableTracker = made.realize(tx)
        kind = result.python_type(tx)
        if str not in kind.__mro__:
            tx.raise_(TypeError, f"__format__ must return a str, not {kind.__name__}")
        return result
    cls = operand.python_type(tx)
    found = type_lookup(tx, cls, "__format__")
    beneath = getattr(operand, "storage", None)
    if found is not None and getattr(found.raw, "__objclass__", None) in FOLDABLE and beneath is not None:
        plain = known(tx, beneath)
        if not how:
            return str_(tx, a)
        if converts_itself(tx, cls):
            tx.fail(Reason.UNSUPPORTED_BUILTIN, "format() of a number that converts itself")
        if plain is not UNKNOWN:
            return fold(tx, _format_derived, cls.__name__, plain, how)
    if found is not None and getattr(found.raw, "__objclass__", None) is getattr(
        operand, "formats", _NOTHING
    ):
        return operand.call_method(tx, "__format__", [spec.realize(tx)], {})
    if found is None or found.raw is not object.__dict__["__format__"]:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"format() of {operand!r}")
    if how:
        tx.raise_(TypeError, f"unsupported format string passed to {c_name(cls)}.__format__")
    return str_(tx, a)


def _format_derived(name: str, value: Any, how: str) -> str:
    """``format`` of an object of a derived class with this name, which errors tell."""
    cls: Any = type(value)
    try:
        return str(cls.__format__(value, how))
    except (TypeError, ValueError):
        return str(cls.__format__(type(name, (cls,), {})(value), how))


def reprs(tx: Tx, items: Iterable[Var]) -> list[str]:
    """``repr`` of each item; a break when one is not known."""
    texts = []
    for item in items:
        text = known(tx, repr_(tx, item))
        if text is UNKNOWN:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"repr() of {item!r}")
        texts.append(text)
    return texts


def _numbers(spec: str) -> list[str]:
    return "".join(c if c.isdecimal() else " " for c in spec).split()
