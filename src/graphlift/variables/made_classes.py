"""Classes that captured code makes: class statements, and calls of metaclasses.

During the capture a class without behaviour stands for the one that each call makes: it has the same bases,
order of look-ups, layout and names, and nothing of it can be run. What the program put into the class are
trackers, kept like attributes that are written to any class. Where the class is needed at run time it is
built as `type.__new__` builds it, filled by then, and without a second run of ``__init_subclass__`` and
``__set_name__``, which were interpreted. Mirrors type_new of Objects/typeobject.c.
"""

from __future__ import annotations

import _abc  # type: ignore[import-not-found]
import builtins
from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType, FunctionType
from typing import Any, Final

from graphlift import _C
from graphlift.errors import ObservedException
from graphlift.heap import Handle
from graphlift.polyfills import class_statements as polyfills
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import GlobalSource
from graphlift.variables import cells, namespace
from graphlift.variables.base import UNKNOWN, VariableTracker
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.cells import CellVariable
from graphlift.variables.classes import (
    CLASS_METHODS,
    KEPT_IN_NAMESPACE,
    ClassVariable,
    NewFunctionVariable,
    constructs,
)
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.containers import ContainerObject
from graphlift.variables.descriptors import bare_wrapper
from graphlift.variables.functions import FunctionVariable, models
from graphlift.variables.mappings import DictVariable
from graphlift.variables.sequences import TupleVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import (
    guard_mro,
    made_namespace,
    mro_of,
    note_made,
    raw_lookup,
    type_lookup,
)
from graphlift.variables.super_ import SuperVariable

_PLAIN: Final = (str, int, float, bool, bytes, complex, type(None), type(Ellipsis))
_OBJECT_INIT_SUBCLASS: Final = object.__dict__["__init_subclass__"]
_ABSTRACT: Final = "__abstractmethods__"


# --- in the compiled program, and for the stand-in ------------------------------------------------


class _Quiet:
    """Stands behind a class while that is made, so that no ``__init_subclass__`` of its bases is run."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass


def _quiet_mro(cls: type) -> list[type]:
    order = type.mro(cls)
    return [order[0], _Quiet, *order[1:]]


def new_class(meta: Any, name: str, bases: tuple[type, ...], names: dict[str, Any]) -> type:
    """What ``type.__new__`` makes, without anything of the program being run."""
    made: type
    if all(raw_lookup(base, "__init_subclass__")[0] is _OBJECT_INIT_SUBCLASS for base in bases):  # type: ignore[index]
        made = type.__new__(meta, name, bases, names)
        return made
    quiet = type.__new__(type(meta), meta.__name__, (meta,), {"__slots__": (), "mro": _quiet_mro})
    made = type.__new__(quiet, name, bases, names)
    _C.set_metaclass(made, meta)
    type.__setattr__(made, "__bases__", bases)  # works the order of look-ups out anew
    return made


def build_class(
    meta: Any, name: str, names: tuple[str, ...], constants: dict[str, Any], *bases: type
) -> type:
    """A class whose names are all there, in order, but only constants beneath them."""
    return new_class(meta, name, bases, dict.fromkeys(names) | constants)


def fill_class(made: type, names: tuple[str, ...], *values: Any) -> None:
    """Put attributes into a class."""
    for name, value in zip(names, values, strict=True):
        type.__setattr__(made, name, value)


# --- the tracker -----------------------------------------------------------------------------------


class MadeClassVariable(ClassVariable):
    """A class that the program makes in each call.

    Attributes:
        value: the class that stands for it during the capture.
        handle: its namespace.
        meta, bases: the trackers of its metaclass and its bases.
        names: the names that it was made with, in order.
        constants: those of them, and ``__slots__`` and ``__qualname__``, that are known values.
        abstract: whether it is one of `abc.ABCMeta`'s.
    """

    __slots__ = ("__weakref__", "abstract", "bases", "constants", "handle", "meta", "names")
    found_otherwise = True

    def __init__(self, value: type, meta: Var, bases: Sequence[Var], constants: dict[str, Any]) -> None:
        super().__init__(value)
        self.meta: Final = meta
        self.bases: Final = tuple(bases)
        self.constants: Final = constants
        self.names: tuple[str, ...] = ()
        self.handle: Handle = Handle()
        self.abstract = False

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if name == _ABSTRACT and value is not None:
            known = value.snapshot(tx)
            if known is UNKNOWN:
                self.refuse(tx, f"setting attribute {name!r}")
            type.__setattr__(self.value, _ABSTRACT, known)
        if name in ("__name__", "__qualname__") and value is not None:
            self._rename(tx, name, value)
        elif name != "__bases__" or not self._has_bases(tx, value):
            super().write_member(tx, descriptor, name, value)

    def _rename(self, tx: Tx, name: str, value: VariableTracker) -> None:
        """What stands for the class gets the name; the class is made under it."""
        known = value.as_constant() if value.is_constant() else UNKNOWN
        if known is UNKNOWN:
            self.refuse(tx, f"setting attribute {name!r}")
        before = getattr(self.value, name)
        try:
            type.__setattr__(self.value, name, known)
        except (TypeError, ValueError) as error:
            tx.raise_real(error)
        tx.heap.on_undo(type.__setattr__, self.value, name, before)

    def _has_bases(self, tx: Tx, value: VariableTracker | None) -> bool:
        """Whether these are the bases that the class has."""
        if not isinstance(value, TupleVariable):
            return False
        bases = [base.realize(tx) for base in value.items]
        classes = [base.value for base in bases if isinstance(base, ClassVariable)]
        return len(classes) == len(bases) and tuple(classes) == self.value.__bases__

    def _store(self, tx: Tx, name: str, value: VariableTracker | None) -> None:
        """The stand-in has the same names, which abstract classes ask for."""
        super()._store(tx, name, value)
        if not _is_field(type(self.value), name):
            if value is None:
                type.__delattr__(self.value, name)
            else:
                known = value.realize(tx)
                is_none = known.is_constant() and known.as_constant() is None
                type.__setattr__(self.value, name, None if is_none else _placeholder())

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Nothing: it is built with what it holds."""

    def reconstruct(self, codegen: Codegen) -> None:
        known = {**self.constants, "__qualname__": self.value.__qualname__}
        constants = ConstantVariable(tuple(known.items()))
        codegen.call(
            _build,
            [
                self.meta,
                ConstantVariable(self.value.__name__),
                ConstantVariable(self.names),
                constants,
                *self.bases,
            ],
        )
        codegen.later(lambda: self._fill(codegen))

    def _fill(self, codegen: Codegen) -> None:
        table = self.handle.table or {}
        rest: dict[Any, Any] = {}
        for name, (_, value) in table.items():
            known = value.as_constant() if value.is_constant() else UNKNOWN
            if name not in self.constants or self.constants[name] is not known:
                rest[name] = value
        for name in self.names:
            if name not in table:
                codegen.run(type.__delattr__, [self, ConstantVariable(name)])
        if rest:
            codegen.run(fill_class, [self, ConstantVariable(tuple(rest)), *rest.values()])
        if self.abstract:
            codegen.run(_abc._abc_init, [self])


def _build(
    meta: Any, name: str, names: tuple[str, ...], constants: tuple[tuple[str, Any], ...], *bases: type
) -> type:
    return build_class(meta, name, names, dict(constants), *bases)


# --- type.__new__ ----------------------------------------------------------------------------------


@constructs(type, whole=True)
def _new_type(tx: Tx, cls_var: Any, cls: type, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if cls is type and len(args) == 1 and not kwargs:
        value = args[0].realize(tx)
        return attributes.class_of(tx, value, value.python_type(tx))
    if len(args) != 3:
        text = "type() takes 1 or 3 arguments"
        tx.raise_(
            TypeError,
            text if cls is type else f"type.__new__() takes exactly 3 arguments ({len(args)} given)",
        )
    name, bases, names = (arg.realize(tx) for arg in args)
    _check_kinds(tx, name, bases, names)
    classes = [base.realize(tx) for base in _items(bases)]
    meta = _winner(tx, cls, classes)
    if meta is not cls:
        meta_var: Any = tx.make.from_value(meta, None)
        new = type_lookup(tx, meta, "__new__")
        assert new is not None
        if type(new.raw) is not BuiltinFunctionType:
            return attributes.bind(tx, new, None, meta).realize(tx).call(tx, [meta_var, *args], kwargs)
        cls_var = meta_var
    made = _make(tx, cls_var, meta, name.as_constant(), classes, _table(tx, names))
    _tell_names(tx, made)
    SuperVariable(made, made, made.value).invoke(tx, "__init_subclass__", [], kwargs)
    return made


def _items(bases: Any) -> Sequence[Any]:
    part = bases.storage if isinstance(bases, ContainerObject) else bases
    assert isinstance(part, TupleVariable)
    return part.items


def _check_kinds(tx: Tx, *parts: Any) -> None:
    for number, (part, kind) in enumerate(zip(parts, (str, tuple, dict), strict=True)):
        found = part.python_type(tx)
        if kind not in mro_of(found):
            text = f"type.__new__() argument {number + 1} must be {kind.__name__}, not {found.__name__}"
            tx.raise_(TypeError, text)
    if not parts[0].is_constant():
        tx.fail(Reason.CLASS_DEFINITION, "a class whose name is not known")


def _winner(tx: Tx, meta: type, bases: Sequence[Any]) -> type:
    """The metaclass to be used, as type_new_get_bases works it out."""
    others = [base for base in bases if not isinstance(base, ClassVariable)]
    if any(attributes.hasattr_(tx, base, "__mro_entries__") for base in others):
        tx.raise_(TypeError, "type() doesn't support MRO entry resolution; use types.new_class()")
    for base in bases:
        kind = base.python_type(tx)
        if meta in mro_of(kind):
            meta = kind
        elif kind not in mro_of(meta):
            tx.raise_(TypeError, polyfills.CONFLICT)
    if others:
        tx.raise_(TypeError, "bases must be types")
    for base in bases:
        guard_mro(tx, base.value)
    for name in ("mro", "__init_subclass__", "__hash__", "__eq__"):  # classes are kept in dictionaries here
        attr = type_lookup(tx, meta, name)
        if attr is None or attr.owner not in (type, object):
            tx.fail(Reason.CLASS_DEFINITION, f"a class whose metaclass {meta.__qualname__} has `{name}`")
    return meta


def _table(tx: Tx, names: Any) -> dict[str, Any]:
    """The namespace that was given, as a copy."""
    part = names.storage if isinstance(names, ContainerObject) else names
    if not isinstance(part, DictVariable):
        tx.fail(Reason.CLASS_DEFINITION, f"a class made from {names!r}")
    table = part.table(tx)
    if not all(type(name) is str for name in table):
        tx.fail(Reason.CLASS_DEFINITION, "a class with names that are no strings")
    return {str(name): value.realize(tx) for name, (_, value) in table.items()}


def _make(
    tx: Tx, meta_var: Any, meta: type, name: str, bases: Sequence[ClassVariable], table: dict[str, Any]
) -> MadeClassVariable:
    """The class itself, its own names in place."""
    cell = table.pop("__classcell__", None)
    if cell is not None and not isinstance(cell, CellVariable):
        kind = repr(cell.python_type(tx))
        tx.raise_(TypeError, f"type.__new__: __classcell__ must be a nonlocal cell, not {kind}")
    if "__module__" not in table:
        module = namespace.lookup(tx, tx.frame.module_globals, "__name__", GlobalSource)  # type: ignore[attr-defined]
        if module is not None:
            table["__module__"] = module.realize(tx)
    constants = _constants(tx, meta, table)
    shadow = {each: constants[each] if each in constants else _placeholder() for each in table}
    try:
        real = new_class(meta, name, tuple(base.value for base in bases), shadow)
    except (TypeError, ValueError) as error:
        tx.raise_real(error)
    _C.hide_subclass(real)
    made = MadeClassVariable(real, meta_var, bases, constants)
    note_made(real, made)
    tx.capture.objects[id(real)] = (real, made)
    table.pop("__qualname__", None)
    made.names = tuple(table)
    made.handle = made_namespace(tx, real, made)
    assert made.handle.table is not None
    for each, value in table.items():
        made.handle.table[each] = (tx.make.constant(each), _wrapped(tx, each, value))
    if cell is not None:
        cells.store(tx, cell.handle, made)
    return made


def _constants(tx: Tx, meta: type, table: Mapping[str, Any]) -> dict[str, Any]:
    """The known values in a class's namespace."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        of_c = name == "__new__" and type(value) is NewFunctionVariable  # as any other, it would take effect
        if of_c or (value.is_constant() and type(value.as_constant()) in _PLAIN):
            found[name] = value.as_constant()
        elif name == "__slots__":
            slots = value.snapshot(tx)
            if type(slots) not in (tuple, list, dict):
                tx.fail(Reason.CLASS_DEFINITION, "a class whose `__slots__` are not known")
            found[name] = tuple(slots)
        elif name == "__qualname__":
            tx.raise_(TypeError, f"type __qualname__ must be a str, not {value.python_type(tx).__name__}")
        elif name not in KEPT_IN_NAMESPACE and _is_field(meta, name):
            tx.fail(Reason.CLASS_DEFINITION, f"a class with an own `{name}`")
    return found


def _is_field(meta: type, name: str) -> bool:
    """Whether storing under this name on an existing class would not go to its namespace."""
    found = raw_lookup(meta, name)
    return found is not None and hasattr(type(found[0]), "__set__")


def _placeholder() -> Callable[..., None]:
    def placeholder(*args: object, **kwargs: object) -> None:
        """Stands in a class that stands for another."""

    return placeholder


def _wrapped(tx: Tx, name: str, value: VariableTracker) -> Any:
    """Some special methods are static or class methods without being marked as such."""
    kind: Any = {
        "__new__": staticmethod,
        "__init_subclass__": classmethod,
        "__class_getitem__": classmethod,
    }.get(name)
    if kind is None or value.python_type(tx) is not FunctionType:
        return value
    return bare_wrapper(tx, kind, value)


def _tell_names(tx: Tx, made: MadeClassVariable) -> None:
    """Call ``__set_name__`` of what has it."""
    assert made.handle.table is not None
    for name, (key, value) in list(made.handle.table.items()):
        kind = value.python_type(tx)
        attr = type_lookup(tx, kind, "__set_name__")
        if attr is None:
            continue
        try:
            attributes.call_attr(tx, attr, value, kind, [made, key])
        except ObservedException as error:
            text = f"Error calling __set_name__ on {kind.__name__!r} instance {name!r} in "
            text += repr(made.value.__name__)
            if _FAILS_BY_ITSELF:
                attributes.getattr_(tx, error.value, "add_note").realize(tx).call(
                    tx, [tx.make.constant(text)], {}
                )
                raise
            tx.run_host(polyfills.raise_from, [tx.make.constant(text), error.value])


def _fails_by_itself() -> bool:
    """Whether the exception of a ``__set_name__`` leaves as it is, with a note."""

    class Failing:
        def __set_name__(self, owner: type, name: str) -> None:
            raise KeyError

    try:
        type("Owner", (), {"failing": Failing()})
    except Exception as error:
        return type(error) is KeyError
    return True


_FAILS_BY_ITSELF: Final = _fails_by_itself()


# --- class statements ------------------------------------------------------------------------------


@builtin(builtins.__build_class__)
def _build_class(tx: Tx, body: Var, name: Var, /, *bases: Var, **keywords: Var) -> Any:
    named = tx.make.dict([(tx.make.constant(key), value) for key, value in keywords.items()])
    return tx.run_host(polyfills.build_class, [body, name, tx.make.tuple(bases), named])


@models(polyfills.run_class_body)
def _run_body(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    body, names = args[0].realize(tx), args[1]
    if not isinstance(body, FunctionVariable):
        tx.raise_(TypeError, "__build_class__: func must be a function")
    return tx.run_body(body.code, names, body.closure, body.module_globals)


def _prepare(tx: Tx, cls: ClassVariable, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.dict([])


CLASS_METHODS[type, "__prepare__"] = _prepare


# --- abc -------------------------------------------------------------------------------------------


@builtin(_abc._abc_init)
def _abc_init(tx: Tx, cls: Var, /) -> None:
    made = cls.realize(tx)
    if not isinstance(made, MadeClassVariable):
        made.refuse(tx, "making it abstract")
    _abc._abc_init(made.value)
    entries = list((made.handle.table or {}).items())
    own = tx.make.dict([(key, value) for _, (key, value) in entries])
    names = tx.run_host(polyfills.abstract_names, [made, own])
    attributes.setattr_(tx, made, _ABSTRACT, names)
    tx.heap.set_slot(made, "abstract", True)
