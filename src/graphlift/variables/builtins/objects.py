"""Builtin functions about objects: types, attributes, identity, length, truth of collections."""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import _thread
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple, NoReturn

from graphlift.errors import ObservedException
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import keys
from graphlift.variables.base import NotImplementedType, VariableTracker
from graphlift.variables.builtin_object import BuiltinObjectVariable, constant
from graphlift.variables.builtins.registry import builtin, refused
from graphlift.variables.classes import ClassVariable
from graphlift.variables.functions import globals_value
from graphlift.variables.object_methods import constant_name
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes, items, operators
from graphlift.variables.slots.class_checks import abstract, has_made_hook, is_instance, is_subclass
from graphlift.variables.slots.type_lookup import Binding, type_lookup

refused(Reason.INPUT_OUTPUT, input, open)
refused(Reason.DEBUGGER, breakpoint)
refused(Reason.UNSUPPORTED_BUILTIN, dir, __import__, locals)


@builtin(len)
def _len(tx: Tx, value: Var) -> Any:
    return items.length(tx, value)


@builtin(isinstance)
def _isinstance(tx: Tx, value: Var, kinds: Var) -> Any:
    asked = _Asked("__instancecheck__", "isinstance() arg 2 must be a type, a tuple of types, or a union")
    return _any_class(tx, value, kinds, asked, lambda kind: is_instance(tx, value.realize(tx), kind))


@builtin(issubclass)
def _issubclass(tx: Tx, value: Var, kinds: Var) -> Any:
    asked = _Asked("__subclasscheck__", "issubclass() arg 2 must be a class, a tuple of classes, or a union")

    def test(kind: ClassVariable) -> bool:
        cls = value.realize(tx)
        if not isinstance(cls, ClassVariable):
            _refuse_no_class(tx, cls, "issubclass() arg 1 must be a class")
        return is_subclass(tx, cls, kind)

    return _any_class(tx, value, kinds, asked, test)


@builtin(_abc._abc_instancecheck)
def _abc_instance_check(tx: Tx, cls: Var, instance: Var, /) -> Any:
    asked, value = cls.realize(tx), instance.realize(tx)
    if has_made_hook(asked.value):
        kind = attributes.class_of(tx, value, value.python_type(tx))
        return attributes.getattr_(tx, asked, "__subclasscheck__").realize(tx).call(tx, [kind], {})
    return abstract(tx, value.python_type(tx), asked.value)


@builtin(_abc._abc_subclasscheck)
def _abc_subclass_check(tx: Tx, cls: Var, subclass: Var, /) -> Any:
    kind = subclass.realize(tx)
    if not isinstance(kind, ClassVariable):
        tx.raise_(TypeError, "issubclass() arg 1 must be a class")
    return abstract(tx, kind.value, cls.realize(tx).value)


def _refuse_no_class(tx: Tx, value: VariableTracker, text: str) -> NoReturn:
    """The TypeError about what is no class; breaks for what counts as one because it has `__bases__`."""
    if attributes.hasattr_(tx, value, "__bases__"):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check of or against {value!r}, which has `__bases__`")
    tx.raise_(TypeError, text)


class _Asked(NamedTuple):
    """What is asked of classes: the special method, and the text of the error for what is none."""

    special: str
    text: str


def _any_class(tx: Tx, value: Var, kinds: Var, asked: _Asked, test: Callable[[ClassVariable], bool]) -> bool:
    """Whether `test` holds for a class or for one of nested tuples or a union of classes; an object whose
    class has the special method is asked by it.

    Raises a TypeError in the program for anything else.
    """
    kind = kinds.realize(tx)
    if isinstance(kind, ClassVariable):
        return test(kind)
    if isinstance(kind, TupleVariable):
        return any(_any_class(tx, value, item, asked, test) for item in kind.items)
    args = union_members(tx, kind)
    if args is not None:
        return any(_any_class(tx, value, _class_of_none(tx, arg), asked, test) for arg in args)
    cls = kind.python_type(tx)
    hook = type_lookup(tx, cls, asked.special)
    if hook is None:
        first = value.realize(tx)
        if asked.special == "__subclasscheck__" and not isinstance(first, ClassVariable):
            _refuse_no_class(tx, first, "issubclass() arg 1 must be a class")
        _refuse_no_class(tx, kind, asked.text)
    if hook.binding is Binding.C_METHOD:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {kind!r}")
    return operators.is_true(tx, attributes.call_attr(tx, hook, kind, cls, [value]))


def union_members(tx: Tx, kind: VariableTracker) -> Sequence[Var] | None:
    """The members of a union of types, or None for anything else."""
    if not kind.is_constant():
        return None
    value = kind.as_constant()
    members = getattr(value, "__args__", None)
    if type(value).__name__ not in ("UnionType", "_UnionGenericAlias") or members is None:
        return None
    return [tx.make.from_value(member, None) for member in members]


def _class_of_none(tx: Tx, member: Var) -> Var:
    value = member.realize(tx)
    if value.is_constant() and value.as_constant() is None:
        return tx.make.from_value(type(None), None)
    return member


# --- attributes ---------------------------------------------------------------------------------------


@builtin(getattr)
def _getattr(tx: Tx, value: Var, name: Var, default: Var | None = None) -> Any:
    text = constant_name(tx, name)
    if default is None:
        return attributes.getattr_(tx, value, text)
    try:
        return attributes.getattr_(tx, value, text)
    except ObservedException as error:
        if not issubclass(error.value.python_type(tx), AttributeError):
            raise
        return default


@builtin(hasattr)
def _hasattr(tx: Tx, value: Var, name: Var) -> Any:
    return attributes.hasattr_(tx, value, constant_name(tx, name))


@builtin(setattr)
def _setattr(tx: Tx, value: Var, name: Var, new: Var) -> None:
    attributes.setattr_(tx, value, constant_name(tx, name), new)


@builtin(delattr)
def _delattr(tx: Tx, value: Var, name: Var) -> None:
    attributes.delattr_(tx, value, constant_name(tx, name))


@builtin(vars)
def _vars(tx: Tx, value: Var | None = None) -> Any:
    if value is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "vars() without an argument")
    try:
        return attributes.getattr_(tx, value, "__dict__")
    except ObservedException as error:
        if not issubclass(error.value.python_type(tx), AttributeError):
            raise
        tx.raise_(TypeError, "vars() argument must have __dict__ attribute")


@builtin(globals)
def _globals(tx: Tx) -> Any:
    frame: Any = getattr(tx, "frame", None)  # of the program: models run in the frame that calls them
    if frame is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "globals()")
    return globals_value(tx, frame.module_globals)


# --- identity and truth -------------------------------------------------------------------------------


@builtin(callable)
def _callable(tx: Tx, value: Var) -> Any:
    operand: VariableTracker = value.realize(tx)
    return type_lookup(tx, operand.python_type(tx), "__call__") is not None


class IdentityVariable(BuiltinObjectVariable):
    """``id(value)``: an integer of which only this much is known, that it tells objects apart.

    Attributes:
        value: the object.
    """

    __slots__ = ("value",)
    models = int

    def __init__(self, value: VariableTracker) -> None:
        self.source = None
        self.value: Final = value

    def children(self) -> tuple[Var, ...]:
        """What it holds."""
        return (self.value,)

    def python_type(self, tx: Tx) -> type:
        return int

    def hash_key(self, tx: Tx) -> Hashable:
        return keys.IdKey(tx, self.value)

    def store_key(self, tx: Tx) -> Hashable:
        if self.value.is_constant():  # equal constants may be one object or not
            tx.fail(Reason.IDENTITY, f"id() of {self.value!r} as a key")
        return self.hash_key(tx)

    def truth(self, tx: Tx) -> bool:
        return True

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op not in ("==", "!=") or not isinstance(other, IdentityVariable):
            tx.fail(Reason.IDENTITY, "comparison of an id()")
        return constant(tx, operators.same_object(tx, self.value, other.value) is (op == "=="))

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        tx.fail(Reason.IDENTITY, "arithmetic with an id()")

    rbinary = binary

    def unary(self, tx: Tx, op: str) -> VariableTracker:
        tx.fail(Reason.IDENTITY, "arithmetic with an id()")

    def call_method(self, tx: Tx, name: str, args: Any, kwargs: Any) -> VariableTracker:
        tx.fail(Reason.IDENTITY, f"method {name!r} of an id()")

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.filled(self.value)  # needed twice, it is kept: nothing else is made at its address meanwhile
        codegen.call(id, [self.value])


@builtin(id)
def _id(tx: Tx, value: Var) -> Any:
    operand: VariableTracker = value.realize(tx)
    return IdentityVariable(operand)


class ThreadVariable(BuiltinObjectVariable):
    """``threading.get_ident()``: one integer during a call, another one maybe in the next."""

    __slots__ = ()
    models = int

    def python_type(self, tx: Tx) -> type:
        return int

    def hash_key(self, tx: Tx) -> Hashable:
        return ThreadVariable

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op not in ("==", "!=") or not isinstance(other, ThreadVariable):
            tx.fail(Reason.IDENTITY, "comparison of a thread's identity")
        return constant(tx, op == "==")

    def binary(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        tx.fail(Reason.IDENTITY, "arithmetic with a thread's identity")

    rbinary = binary

    def call_method(self, tx: Tx, name: str, args: Any, kwargs: Any) -> VariableTracker:
        tx.fail(Reason.IDENTITY, f"method {name!r} of a thread's identity")

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(_thread.get_ident, [])


@builtin(_thread.get_ident)
def _get_ident(tx: Tx) -> Any:
    return ThreadVariable()


@builtin(hash)
def _hash(tx: Tx, value: Var) -> Any:
    operand: VariableTracker = value.realize(tx)
    attr = attributes.user_special(tx, operand, "__hash__")
    if attr is None or attributes.is_none(tx, attr):
        return keys.hash_(tx, operand)
    return keys.hash_of(tx, attributes.call_attr(tx, attr, operand, operand.python_type(tx), []))
