"""Callables that hold another callable: bound methods and partials.

Mirrors Objects/classobject.c and ``functools.partial``.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence
from types import MethodType
from typing import Any, Final

from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import MethodFunctionSource, MethodSelfSource, SlotSource, Source
from graphlift.variables import namespace, rebuild
from graphlift.variables.base import NOT_IMPLEMENTED, NotImplementedType, VariableTracker
from graphlift.variables.builder import maker, wraps
from graphlift.variables.classes import constructs
from graphlift.variables.object_methods import OBJECT_METHODS
from graphlift.variables.slots import attributes, operators
from graphlift.variables.slots.type_lookup import TypeAttr, type_lookup
from graphlift.variables.user_defined import UserDefinedObject


class BoundMethodVariable(VariableTracker):
    """A function bound to its first argument.

    Attributes:
        function: what is called.
        instance: what it is called with first.
    """

    __slots__ = ("function", "instance")

    def __init__(self, function: Any, instance: Any, source: Source | None = None) -> None:
        self.source = source
        self.function: Final = function
        self.instance: Final = instance

    def python_type(self, tx: Tx) -> type:
        return MethodType

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        function = self.function.realize(tx)
        if tx.takes("__call__", self):
            tx.last_call(function)
        result: VariableTracker = function.call(tx, [self.instance, *args], kwargs)
        return result

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name == "__func__":
            return self.function.realize(tx)  # type: ignore[no-any-return]
        if name == "__self__":
            return self.instance.realize(tx)  # type: ignore[no-any-return]
        attr = type_lookup(tx, MethodType, name)
        if attr is not None and name != "__doc__":
            bound: VariableTracker = attributes.bind(tx, attr, self, MethodType)
            return bound
        found: VariableTracker = attributes.getattr_(tx, self.function, name)
        return found

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        if name in ("__getattribute__", "__setattr__", "__init__") or name not in OBJECT_METHODS:
            return self.refuse(tx, f"method {name!r}")
        result: VariableTracker = OBJECT_METHODS[name](tx, self, args, kwargs)
        return result

    def compare(self, tx: Tx, op: str, other: VariableTracker) -> VariableTracker | NotImplementedType:
        if op not in ("==", "!=") or not isinstance(other, BoundMethodVariable):
            return NOT_IMPLEMENTED
        same = operators.equal(tx, self.function, other.function)
        same = same and operators.same_object(tx, self.instance.realize(tx), other.instance.realize(tx))
        return tx.make.constant(same is (op == "=="))  # type: ignore[return-value]

    def hash_key(self, tx: Tx) -> Hashable:
        instance = self.instance.realize(tx)
        if not isinstance(instance, UserDefinedObject):
            return self.refuse(tx, "hash()")
        return (MethodType, self.function.realize(tx).hash_key(tx), instance.identity(tx))

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`."""
        name = getattr(self.function, "called_name", None)
        return "method" if name is None else str(name(tx))

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.call(MethodType, [self.function, self.instance])

    def __repr__(self) -> str:
        return f"BoundMethodVariable({self.function!r})"


@maker
def bound_method(tx: Tx, function: Any, instance: Any) -> BoundMethodVariable:
    """See `protocol.Make.bound_method`."""
    return BoundMethodVariable(function, instance)


@wraps(MethodType)
def wrap_method(tx: Tx, value: MethodType, source: Source | None) -> Var:
    """A bound method that exists."""
    if source is None:
        return BoundMethodVariable(
            tx.make.from_value(value.__func__, None), tx.make.from_value(value.__self__, None)
        )
    tx.guard("type", source, MethodType)
    function = tx.make.lazy(value.__func__, source.child(MethodFunctionSource, "__func__"))
    instance = tx.make.lazy(value.__self__, source.child(MethodSelfSource, "__self__"))
    return BoundMethodVariable(function, instance, source)


@constructs(MethodType, whole=True)
def _new_method(
    tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> BoundMethodVariable:
    if kwargs or len(args) != 2:
        tx.raise_(TypeError, f"method expected 2 arguments, got {len(args)}")
    if type_lookup(tx, args[0].realize(tx).python_type(tx), "__call__") is None:
        tx.raise_(TypeError, "first argument must be callable")
    if args[1].realize(tx).is_constant() and args[1].realize(tx).as_constant() is None:
        tx.raise_(TypeError, "instance must not be None")
    return BoundMethodVariable(args[0], args[1])


@attributes.binds(MethodType)
def _bind_bound(tx: Tx, attr: TypeAttr, obj: VariableTracker | None, cls: type) -> Any:
    """A bound method stays bound to what it is bound to."""
    return attr.value(tx)


# --- partials -----------------------------------------------------------------------------------

_PARTIAL_FIELDS: Final = {name: functools.partial.__dict__[name] for name in ("func", "args", "keywords")}


class PartialVariable(UserDefinedObject):
    """A ``functools.partial`` object.

    Attributes:
        function: what is called.
        args: the arguments in front.
        keywords: tracker of the dictionary of keyword arguments.
    """

    __slots__ = ("args", "function", "keywords")

    def __init__(
        self, function: Any, args: Sequence[Any], keywords: Any, handle: Handle, source: Source | None = None
    ) -> None:
        super().__init__(functools.partial, handle, source)
        self.function: Final = function
        self.args: Final = tuple(args)
        self.keywords: Final = keywords
        handle.tracker = self

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        named = {**self.keyword_arguments(tx), **kwargs}
        function = self.function.realize(tx)
        if tx.takes("__call__", self):
            tx.last_call(function)
        result: VariableTracker = function.call(tx, [*self.args, *args], named)
        return result

    def keyword_arguments(self, tx: Tx) -> dict[str, Any]:
        """The keyword arguments kept so far."""
        own = self.keywords.realize(tx).handle
        namespace.complete(tx, own)
        return {key.as_constant(): value for key, value in own.table.values()}

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name == "__call__":
            return self.call(tx, args, kwargs)
        return super().call_method(tx, name, args, kwargs)

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        if name == "func":
            return self.function.realize(tx)  # type: ignore[no-any-return]
        if name == "args":
            return tx.make.tuple(self.args)  # type: ignore[return-value]
        if name == "keywords":
            return self.keywords.realize(tx)  # type: ignore[no-any-return]
        return super().read_member(tx, descriptor, name)

    def may_write(self, descriptor: Any) -> bool:
        return False

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.filled(self.keywords)  # they are copied
        codegen.call(new_partial, [self.function, self.keywords, *self.args])
        codegen.later(lambda: rebuild.attributes(codegen, self, self.handle))

    def __repr__(self) -> str:
        return f"PartialVariable({self.function!r})"


def new_partial(function: Any, keywords: dict[str, Any], *args: Any) -> functools.partial[Any]:
    """A partial made real (runs in the compiled program)."""
    return functools.partial(function, *args, **keywords)


@wraps(functools.partial)
def wrap_partial(tx: Tx, value: functools.partial[Any], source: Source | None) -> Var:
    """A partial that exists: its three fields are read in C."""
    if source is None:
        tx.fail(Reason.UNSUPPORTED_VALUE, "a partial without a place")
    tx.guard("type", source, functools.partial)
    args_source = source.child(SlotSource, _PARTIAL_FIELDS["args"])
    tx.guard("length", args_source, len(value.args))
    args = [tx.make.lazy(arg, args_source.item(index)) for index, arg in enumerate(value.args)]
    function = tx.make.lazy(value.func, source.child(SlotSource, _PARTIAL_FIELDS["func"]))
    keywords = tx.make.lazy(value.keywords, source.child(SlotSource, _PARTIAL_FIELDS["keywords"]))
    return PartialVariable(function, args, keywords, tx.heap.handle_of(value, source), source)


@constructs(functools.partial, whole=True)
def _new_partial(
    tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> PartialVariable:
    """One around another is made flat, as in C."""
    if cls is not functools.partial:
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object of {cls.__qualname__}, a class derived from partial")
    if not args:
        tx.raise_(TypeError, "type 'partial' takes at least one argument")
    function, args = args[0], args[1:]
    inner = function.realize(tx)
    if type_lookup(tx, inner.python_type(tx), "__call__") is None:
        tx.raise_(TypeError, "the first argument must be callable")
    own = inner.handle.namespace if isinstance(inner, PartialVariable) else None
    if isinstance(inner, PartialVariable) and (own is None or not own.table):
        named = {**inner.keyword_arguments(tx), **kwargs}
        return PartialVariable(inner.function, [*inner.args, *args], _dictionary(tx, named), Handle())
    return PartialVariable(function, args, _dictionary(tx, kwargs), Handle())


def _dictionary(tx: Tx, named: Mapping[str, Any]) -> Any:
    return tx.make.dict([(tx.make.constant(name), value) for name, value in named.items()])
