"""Base of trackers of objects of builtin types: their methods, attributes and conversions.

A method of the type is a method of the tracker marked with `@method`: its positional parameters are the
positional-only parameters of the real one, its keyword-only parameters the keyword ones. Special methods
reach the tracker's slots. Owns the check of arguments: what does not fit is tried on the real type, so that
the error is CPython's own. Knows no particular type.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType
from typing import Any, ClassVar, Final, TypeVar, cast

from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import misfits
from graphlift.variables.base import NotImplementedType, VariableTracker
from graphlift.variables.object_methods import OBJECT_METHODS
from graphlift.variables.slots import attributes, operators

F = TypeVar("F", bound=Callable[..., Any])


class Method:
    """A method of a builtin type as its tracker models it.

    Attributes:
        run: called with the tracker, the translator and the arguments (`skip` counts those in front).
        least, most: how many positional arguments it takes; `most` is None for any number.
        keywords: names of keyword arguments; None when any are taken.
    """

    __slots__ = ("keywords", "least", "most", "run")

    def __init__(self, run: Callable[..., Any], skip: int = 2) -> None:
        self.run: Final = run
        function = cast(FunctionType, run)
        code = function.__code__  # `inspect.signature` would be a tenth of importing the package
        count, defaults = code.co_argcount - skip, len(function.__defaults__ or ())
        self.least: Final = max(count - defaults, 0)
        self.most: Final = None if code.co_flags & inspect.CO_VARARGS else max(count, 0)
        names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
        self.keywords: Final = None if code.co_flags & inspect.CO_VARKEYWORDS else frozenset(names)

    def accepts(self, count: int, names: Mapping[str, object]) -> bool:
        """Whether a call with so many positional and these keyword arguments fits."""
        if count < self.least or (self.most is not None and count > self.most):
            return False
        return not names or self.keywords is None or self.keywords.issuperset(names)


def method(*names: str) -> Callable[[F], F]:
    """Mark a method of a tracker as the model of the methods `names` (its own name if none are given)."""

    def mark(function: F) -> F:
        function.__dict__["models"] = names or (function.__name__,)
        return function

    return mark


class BuiltinObjectVariable(VariableTracker):
    """An object of a builtin type, or the builtin part of an object of a class derived from one."""

    __slots__ = ()

    #: Methods by their Python names; those of the base classes are included.
    methods: ClassVar[dict[str, Method]] = {}
    #: The builtin type that this class models.
    models: ClassVar[type] = object

    def __init_subclass__(cls) -> None:
        own = {
            name: Method(function)
            for function in list(cls.__dict__.values())
            for name in getattr(function, "models", ())
            if callable(function) and not isinstance(function, type)
        }
        cls.methods = {**cls.methods, **own}

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        return attributes.object_getattr(tx, self, self.python_type(tx), name)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        attributes.object_setattr(tx, self, self.python_type(tx), name, value)

    def delattr_(self, tx: Tx, name: str) -> None:
        attributes.object_setattr(tx, self, self.python_type(tx), name, None)

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        return self.type_error(tx, "'{}' object is not callable")

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        model = self.methods.get(name)
        if model is not None:
            if model.accepts(len(args), kwargs):
                return _result(tx, model.run(self, tx, *args, **kwargs))
            return self._misfit(tx, name, args, kwargs)
        special = _SPECIAL.get(name)
        if special is not None and len(args) == special[0] and not kwargs:
            return _result(tx, special[1](self, tx, *(arg.realize(tx) for arg in args)))
        if special is not None:
            return self._misfit(tx, name, args, kwargs)
        inherited = OBJECT_METHODS.get(name)
        if inherited is None or name in self.models.__dict__:
            return self.refuse(tx, f"method {name!r}")
        return _result(tx, inherited(tx, self, args, kwargs))

    def invoke(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        if name in self.methods and self.python_type(tx) is self.models:
            return self.call_method(tx, name, args, kwargs)
        return super().invoke(tx, name, args, kwargs)

    def write(self, tx: Tx, text: Callable[[], str], again: str) -> VariableTracker:
        """The ``repr`` that `text` makes; `again` where the object is met inside itself (`Py_ReprEnter`)."""
        active: set[VariableTracker] = tx.reads.setdefault(_WRITING, set())
        if self in active:
            return constant(tx, again)
        active.add(self)
        try:
            return constant(tx, text())
        finally:
            active.discard(self)

    def _misfit(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        """What the model does not take: in another form, or CPython's error, from an empty object."""
        model, function = self.methods.get(name), getattr(self.models, name, None)
        if function is not None:
            form = misfits.arranged(tx, function, misfits.Form([self, *args], kwargs))
            if form is not None and model is not None and model.accepts(len(form.args) - 1, form.kwargs):
                return _result(tx, model.run(self, tx, *form.args[1:], **form.kwargs))
            said = misfits.error(lambda: getattr(self.models(), name), len(args), list(kwargs))
            if said is not None and form is None:
                tx.raise_real(said)
        return self.refuse(
            tx, f"method {name!r} with {len(args)} positional arguments and keywords {list(kwargs)}"
        )

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.models.__name__})"


#: Where `tx.reads` keeps the objects whose ``repr`` is being made.
_WRITING: Final = (0, "repr")


class KnownItemsVariable(BuiltinObjectVariable):
    """A sequence whose items are trackers that are there now."""

    __slots__ = ()

    def items_now(self, tx: Tx) -> Sequence[Any]:
        """The items, not to be changed by the caller; of a list, the contents themselves."""
        raise NotImplementedError


def _result(tx: Tx, result: object) -> VariableTracker:
    if isinstance(result, VariableTracker):
        return result
    if isinstance(result, NotImplementedType):
        return cast(VariableTracker, tx.make.constant(NotImplemented))
    return cast(VariableTracker, tx.make.constant(result))


def _of_slot(name: str) -> Callable[..., Any]:
    def run(self: VariableTracker, tx: Tx, *args: VariableTracker) -> Any:
        return getattr(self, name)(tx, *args)

    return run


def _of_operator(name: str, op: str) -> Callable[..., Any]:
    def run(self: VariableTracker, tx: Tx, *args: VariableTracker) -> Any:
        return getattr(self, name)(tx, op, *args)

    return run


def _contains(self: VariableTracker, tx: Tx, item: VariableTracker) -> VariableTracker:
    return operators.contains(tx, item, self)


def _next(self: VariableTracker, tx: Tx) -> VariableTracker:
    item = self.next_(tx)
    if item is None:
        tx.raise_(StopIteration)
    return item


def _bool(self: VariableTracker, tx: Tx) -> bool:
    return operators.is_true(tx, self)


def _sizeof(self: VariableTracker, tx: Tx) -> VariableTracker:
    tx.fail(Reason.UNSUPPORTED_BUILTIN, f"size in memory of {self!r}")


def _add(self: VariableTracker, tx: Tx, other: VariableTracker) -> Any:
    result = self.binary(tx, "+", other)
    return self.concat(tx, other) if isinstance(result, NotImplementedType) else result


def _iadd(self: VariableTracker, tx: Tx, other: VariableTracker) -> Any:
    result = self.inplace(tx, "+", other)
    return self.inplace_concat(tx, other) if isinstance(result, NotImplementedType) else result


def _mul(self: VariableTracker, tx: Tx, other: VariableTracker) -> Any:
    result = self.binary(tx, "*", other)
    return self.repeat(tx, other) if isinstance(result, NotImplementedType) else result


def _imul(self: VariableTracker, tx: Tx, other: VariableTracker) -> Any:
    result = self.inplace(tx, "*", other)
    return self.inplace_repeat(tx, other) if isinstance(result, NotImplementedType) else result


#: Special methods that stand for a slot of the tracker: number of arguments, function.
_SPECIAL: Final[dict[str, tuple[int, Callable[..., Any]]]] = {
    "__len__": (0, _of_slot("length")),
    "__iter__": (0, _of_slot("iter_")),
    "__next__": (0, _next),
    "__bool__": (0, _bool),
    "__sizeof__": (0, _sizeof),
    "__getitem__": (1, _of_slot("getitem")),
    "__setitem__": (2, _of_slot("setitem")),
    "__delitem__": (1, _of_slot("delitem")),
    "__contains__": (1, _contains),
    "__add__": (1, _add),
    "__iadd__": (1, _iadd),
    "__mul__": (1, _mul),
    "__rmul__": (1, _mul),
    "__imul__": (1, _imul),
    "__eq__": (1, _of_operator("compare", "==")),
    "__ne__": (1, _of_operator("compare", "!=")),
    "__lt__": (1, _of_operator("compare", "<")),
    "__le__": (1, _of_operator("compare", "<=")),
    "__gt__": (1, _of_operator("compare", ">")),
    "__ge__": (1, _of_operator("compare", ">=")),
    "__and__": (1, _of_operator("binary", "&")),
    "__or__": (1, _of_operator("binary", "|")),
    "__xor__": (1, _of_operator("binary", "^")),
    "__sub__": (1, _of_operator("binary", "-")),
    "__rand__": (1, _of_operator("rbinary", "&")),
    "__ror__": (1, _of_operator("rbinary", "|")),
    "__rxor__": (1, _of_operator("rbinary", "^")),
    "__rsub__": (1, _of_operator("rbinary", "-")),
    "__iand__": (1, _of_operator("inplace", "&")),
    "__ior__": (1, _of_operator("inplace", "|")),
    "__ixor__": (1, _of_operator("inplace", "^")),
    "__isub__": (1, _of_operator("inplace", "-")),
}


def make_list(tx: Tx, found: Sequence[Var]) -> VariableTracker:
    """A list made by the program."""
    return cast(VariableTracker, tx.make.list(found))


def make_tuple(tx: Tx, found: Sequence[Var], cls: type = tuple) -> VariableTracker:
    """A tuple made by the program."""
    return cast(VariableTracker, tx.make.tuple(found, cls))


def constant(tx: Tx, value: object) -> VariableTracker:
    """A constant."""
    return cast(VariableTracker, tx.make.constant(value))


class HostObjectVariable(VariableTracker):
    """An object of the process that only emitted code needs (a class, a function)."""

    __slots__ = ("value",)

    def __init__(self, value: object) -> None:
        self.source = None
        self.value: Final = value

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)


def cannot_cycle(var: Var, depth: int = 6) -> bool:
    """Whether a value surely does not lead back to itself, so that it can be built in one go."""
    tracker = cast(VariableTracker, var)
    if tracker.leaf or (tracker.source is not None and depth < 6):
        return True
    children = getattr(tracker, "children", None)
    return depth > 0 and children is not None and all(cannot_cycle(child, depth - 1) for child in children())
