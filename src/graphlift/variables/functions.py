"""Python functions as values: found in the program's state or made by it, called by inlining.

Owns how a function is pinned down (by identity where it is found at a stable place, else by its code,
cells and defaults) and what its fields are. Which functions are looked into is decided in `rules`. It
must not know how a frame is run. Mirrors Objects/funcobject.c.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from inspect import CO_GENERATOR
from types import CodeType, FunctionType
from typing import Any, Final

from graphlift import interop, rules
from graphlift.errors import Unsupported
from graphlift.heap import Handle
from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import (
    AnchorSource,
    AttrSource,
    FunctionFieldSource,
    GlobalSource,
    InstanceDictSource,
    ItemSource,
    ModuleDictSource,
    SlotSource,
    Source,
    TypeLookupSource,
)
from graphlift.variables import cells, namespace, rebuild
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import maker, wraps_if
from graphlift.variables.cells import CellVariable
from graphlift.variables.object_methods import OBJECT_METHODS
from graphlift.variables.slots import attributes, items, operators
from graphlift.variables.slots.binding import bind_arguments, bind_positional
from graphlift.variables.slots.type_lookup import anchor


def is_stable(source: Source) -> bool:
    """Whether the object at this place is the same one from call to call, unless somebody replaces it."""
    kind = type(source)
    return kind in (AnchorSource, GlobalSource, TypeLookupSource) or (
        kind is AttrSource and type(source.base) is ModuleDictSource
    )


_FIELDS: Final = FunctionType.__dict__

#: A model of a Python function: called instead of looking into it.
Model = Callable[[Tx, Sequence[Any], Mapping[str, Any]], Any]
_MODELS: Final[dict[FunctionType, Model]] = {}


def models(*functions: Any) -> Callable[[Model], Model]:
    """Register what is done for a call of these Python functions instead of looking into them; where the
    model answers None, they are looked into all the same."""

    def register(model: Model) -> Model:
        for function in functions:
            _MODELS[function] = model
        return model

    return register


def called_or_bound(
    function: VariableTracker,
    tx: Tx,
    name: str,
    args: Sequence[VariableTracker],
    kwargs: Mapping[str, VariableTracker],
) -> VariableTracker | None:
    """What `__call__` and `__get__` of a function, or of what behaves like one, give; None for others."""
    if name == "__call__":
        return function.call(tx, args, kwargs)
    if name == "__get__" and args and not kwargs:
        instance = args[0].realize(tx)
        unbound = instance.is_constant() and instance.as_constant() is None
        return function if unbound else tx.make.bound_method(function, instance)  # type: ignore[return-value]
    return None


class FunctionVariable(VariableTracker):
    """A Python function.

    Attributes:
        real: the function object, or None if the program made it.
        code: its code object.
        handle: what can be changed about it: `namespace` is its ``__dict__``, `slots` its C fields.
        module_globals: the namespace in which it looks up global names.
        closure: its cells.
        made_defaults, made_kwdefaults: defaults of a function that the program made.
    """

    __slots__ = (
        "closure",
        "code",
        "handle",
        "is_plain",
        "made_defaults",
        "made_kwdefaults",
        "may_inline",
        "module_globals",
        "names",
        "real",
    )

    def __init__(
        self,
        code: CodeType,
        module_globals: Handle,
        closure: Sequence[Handle],
        handle: Handle,
        source: Source | None = None,
    ) -> None:
        self.source = source
        self.real: Final[FunctionType | None] = handle.real
        self.code: Final = code
        self.module_globals: Final = module_globals
        self.closure: Final = tuple(closure)
        self.handle: Final = handle
        self.made_defaults: Sequence[Var] = ()
        self.made_kwdefaults: Mapping[str, Var] = {}
        #: ``__name__`` and ``__qualname__`` of a function that the program made.
        self.names: tuple[str, str] = (code.co_name, code.co_qualname)
        #: Whether it is looked into, once that was asked; and whether nothing else comes first.
        self.may_inline: bool | None = None
        self.is_plain = False
        handle.tracker = self

    # --- what is it ------------------------------------------------------------------------------

    def python_type(self, tx: Tx) -> type:
        return FunctionType

    def hash_key(self, tx: Tx) -> Hashable:
        if self.real is None:
            return self
        if self.source is not None:
            tx.guard("is", self.source, self.real)
        return self.real

    def qualname(self) -> str:
        """For messages."""
        return self._name_now("__qualname__")

    def _name_now(self, field: str) -> str:
        written: Any = self._written(field)
        if written is not None and written.is_constant():
            return str(written.as_constant())
        if self.real is None:
            return self.names[field == "__qualname__"]
        return str(_FIELDS[field].__get__(self.real))

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`."""
        module: str | None
        if self.real is not None:
            module = self.real.__module__
        else:
            found = self.read_member(tx, _FIELDS["__module__"], "__module__").realize(tx)
            module = found.as_constant() if found.is_constant() else None
        return self.qualname() if module in (None, "builtins") else f"{module}.{self.qualname()}"

    # --- calls -----------------------------------------------------------------------------------

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        real = self.real
        if real is not None and not self.is_plain:
            model = _MODELS.get(real)
            result: VariableTracker | None = None if model is None else model(tx, args, kwargs)
            if result is not None:
                return result
            beneath = self._beneath_tag(tx, real)
            if beneath is not None:
                return beneath.call(tx, args, kwargs)
            if real.__dict__ and interop.is_constant_result(real):
                return self._constant_result(tx, real, args, kwargs)
            self._check_may_inline(tx, real)
            self.is_plain = model is None
        code = self.code
        bound = None if kwargs else bind_positional(code, args)
        if bound is None:
            bound = bind_arguments(
                tx, code, self.qualname(), args, kwargs, lambda at, name: self.default(tx, at, name)
            )
        made: Any = tx.inline(self, code, bound, self.closure, self.module_globals)
        if code.co_flags & CO_GENERATOR:
            names = self._name_now("__name__"), self._name_now("__qualname__")
            if names != (self.code.co_name, self.code.co_qualname):
                made.names = names
        return made  # type: ignore[no-any-return]

    def _constant_result(
        self,
        tx: Tx,
        real: FunctionType,
        args: Sequence[VariableTracker],
        kwargs: Mapping[str, VariableTracker],
    ) -> VariableTracker:
        """What the function gives now, for good: the user said that this never changes."""
        given = [arg.realize(tx) for arg in (*args, *kwargs.values())]
        if not all(arg.is_constant() for arg in given):
            tx.fail(Reason.UNSUPPORTED_OPERATION, f"arguments of {real.__qualname__} that are no constants")
        if self.source is not None:
            tx.guard("is", self.source, real)
        values = [arg.as_constant() for arg in given]
        result = real(*values[: len(args)], **dict(zip(kwargs, values[len(args) :], strict=True)))
        return tx.make.from_value(result, None).realize(tx)  # type: ignore[no-any-return]

    def _beneath_tag(self, tx: Tx, real: FunctionType) -> VariableTracker | None:
        """What a wrapper of torch's stands for, see `interop.tagged`."""
        name = interop.tagged(real)
        if name is None:
            return None
        found = cells.load(tx, self.closure[self.code.co_freevars.index(name)], name)
        return None if found is None else found.realize(tx)

    def call_method(
        self, tx: Tx, name: str, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        found = called_or_bound(self, tx, name, args, kwargs)
        if found is not None:
            return found
        if name not in OBJECT_METHODS or name == "__init__":
            return self.refuse(tx, f"method {name!r}")
        result: VariableTracker = OBJECT_METHODS[name](tx, self, args, kwargs)
        return result

    def _check_may_inline(self, tx: Tx, real: FunctionType) -> None:
        if real.__code__.co_name == "set_trace":  # of pdb, and of all that take its place
            tx.fail(Reason.DEBUGGER, f"{real.__module__}.{real.__qualname__}")
        if self.may_inline is None:
            self.may_inline = self.is_own(real) or rules.classify(real) == "inline"
        if not self.may_inline:
            reason = Reason.USER_BREAK if interop.is_graph_break(real) else Reason.SKIPPED_CALLABLE
            # Behind a cut, locals that are not read again are gone, which weak references would show.
            weak = real.__module__ in ("weakref", "_weakrefset")
            raise Unsupported(reason, f"{real.__module__}.{real.__qualname__}", whole=weak)

    @staticmethod
    def is_own(real: FunctionType) -> bool:
        """Whether it is one of graphlift's polyfills, which are always looked into."""
        return (real.__module__ or "").startswith("graphlift.polyfills.")

    def default(self, tx: Tx, position: int, name: str) -> Var | None:
        """The default of a parameter (`position` -1: keyword-only), or None when it has none."""
        written = self._written("__defaults__" if position >= 0 else "__kwdefaults__")
        if written is not None:
            return self._written_default(tx, written.realize(tx), position, name)
        if self.real is None:
            if position < 0:
                return self.made_kwdefaults.get(name)
            index = position - (self.code.co_argcount - len(self.made_defaults))
            return self.made_defaults[index] if index >= 0 else None
        if position < 0:
            return self._real_keyword_default(tx, self.real, name)
        return self._real_default(tx, self.real, position)

    def _written_default(self, tx: Tx, defaults: Any, position: int, name: str) -> Var | None:
        """The default of a parameter where the program replaced them, or may have changed them."""
        if defaults.is_constant() and defaults.as_constant() is None:
            return None
        if position < 0:
            key = tx.make.constant(name)
            found = operators.contains(tx, key, defaults)
            return items.getitem(tx, defaults, key) if found.as_constant() else None
        values = defaults.unpack(tx)
        index = position - (self.code.co_argcount - len(values))
        return values[index] if index >= 0 else None

    def _real_default(self, tx: Tx, real: FunctionType, position: int) -> Var | None:
        defaults = real.__defaults__
        source = None if self.source is None else self.source.child(FunctionFieldSource, "__defaults__")
        if defaults is None:
            if source is not None:
                tx.guard("constant", source, None)
            return None
        if source is not None:
            tx.guard("length", source, len(defaults))
        index = position - (self.code.co_argcount - len(defaults))
        if index < 0:
            return None
        if source is None:
            return tx.make.from_value(defaults[index], None)
        return tx.make.lazy(defaults[index], source.item(index))

    def _real_keyword_default(self, tx: Tx, real: FunctionType, name: str) -> Var | None:
        defaults = real.__kwdefaults__
        source = None if self.source is None else self.source.child(FunctionFieldSource, "__kwdefaults__")
        if defaults is None:
            if source is not None:
                tx.guard("constant", source, None)
            return None
        return namespace.lookup(tx, namespace.handle_at(tx, defaults, source), name)

    # --- attributes ------------------------------------------------------------------------------

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        return attributes.generic_getattr(tx, self, FunctionType, name)

    def setattr_(self, tx: Tx, name: str, value: VariableTracker) -> None:
        attributes.generic_setattr(tx, self, FunctionType, name, value)

    def delattr_(self, tx: Tx, name: str) -> None:
        attributes.generic_setattr(tx, self, FunctionType, name, None)

    def instance_dict(self, tx: Tx) -> Handle | None:
        handle = self.handle
        if handle.namespace is None:
            if self.real is None:
                handle.namespace = Handle()
                handle.namespace.table = {}
            else:
                own = _FIELDS["__dict__"].__get__(self.real)
                source = None if self.source is None else self.source.child(InstanceDictSource, "__dict__")
                handle.namespace = namespace.handle_at(tx, own, source)
        return handle.namespace

    def is_written(self, name: str) -> bool:
        """Whether the program wrote to one of its fields, or deleted it."""
        slots = self.handle.slots
        field = _FIELDS[name]
        return slots is not None and (field in (slots.table or ()) or field in (slots.removed or ()))

    def _written(self, name: str) -> Var | None:
        slots = self.handle.slots
        if slots is None or not slots.table:
            return None
        entry = slots.table.get(_FIELDS[name])
        return None if entry is None else entry[1]

    def read_member(self, tx: Tx, descriptor: Any, name: str) -> VariableTracker:
        value: Any = self._written(name)
        if value is None:
            value = (
                self._made_field(tx, name)
                if self.real is None
                else self._real_field(tx, self.real, descriptor, name)
            )
        assert isinstance(value, VariableTracker)
        return value

    def _real_field(self, tx: Tx, real: FunctionType, descriptor: Any, name: str) -> Var:
        if name == "__dict__":
            own = self.instance_dict(tx)
            assert own is not None
            return tx.make.from_value(own.real, own.source)
        value = descriptor.__get__(real)
        source = self.source
        if name == "__code__":
            return tx.make.from_value(value, None)
        if source is None:
            return tx.make.from_value(value, None)
        if name in ("__globals__", "__builtins__", "__closure__", "__defaults__", "__kwdefaults__"):
            return tx.make.lazy(value, source.child(FunctionFieldSource, name))
        return tx.make.lazy(value, source.child(SlotSource, descriptor))

    def _made_field(self, tx: Tx, name: str) -> Var:
        make = tx.make
        if name == "__name__":
            return make.constant(self.names[0])
        if name == "__qualname__":
            return make.constant(self.names[1])
        if name == "__doc__":
            consts = self.code.co_consts
            return make.constant(consts[0] if consts and isinstance(consts[0], str) else None)
        if name == "__code__":
            return make.from_value(self.code, None)
        if name == "__defaults__":
            return make.tuple(self.made_defaults) if self.made_defaults else make.constant(None)
        if name == "__kwdefaults__":
            if not self.made_kwdefaults:
                return make.constant(None)
            pairs = [(make.constant(key), value) for key, value in self.made_kwdefaults.items()]
            changeable = make.dict(pairs)
            self.store_field(tx, name, changeable)  # calls ask it from now on
            return changeable
        if name == "__module__":
            found = namespace.lookup(tx, self.module_globals, "__name__", GlobalSource)
            return make.constant(None) if found is None else found
        if name == "__globals__":
            return globals_value(tx, self.module_globals)
        if name == "__closure__":
            return (
                make.tuple([cell_variable(cell) for cell in self.closure])
                if self.closure
                else make.constant(None)
            )
        if name == "__type_params__":
            return make.tuple(())
        if name == "__annotations__":
            empty = make.dict([])
            self.store_field(tx, name, empty)
            return empty
        if name == "__dict__":
            own = self.instance_dict(tx)
            assert own is not None
            return make.namespace_dict(own, self)
        return self.refuse(tx, f"attribute {name!r}")

    def write_member(self, tx: Tx, descriptor: Any, name: str, value: VariableTracker | None) -> None:
        if name not in _WRITABLE:
            self.refuse(tx, f"setting attribute {name!r}")
        wanted, is_none = _OF_CLASS.get(name, (object, True))
        if value is None:
            if name not in _OF_CLASS:
                self.refuse(tx, f"deleting attribute {name!r}")
            value = tx.make.constant(None)  # type: ignore[assignment]
        kind = value.realize(tx).python_type(tx)  # type: ignore[union-attr]
        if not issubclass(kind, wanted) and not (is_none and kind is type(None)):
            text = _CALLED.get(name, f"a {wanted.__name__} object")
            tx.raise_(TypeError, f"{name} must be set to {text}")
        if name == "__annotations__" and kind is type(None):
            value = tx.make.dict([])  # type: ignore[assignment]  # what the next read would make
        self.store_field(tx, name, value)  # type: ignore[arg-type]

    def store_field(self, tx: Tx, name: str, value: Var) -> None:
        """Write what the function keeps in C under `name`."""
        handle = self.handle
        if handle.slots is None:
            handle.slots = Handle(self.real, self.source)
            handle.slots.table = {}
            handle.slots.tracker = self
        tx.heap.put(handle.slots, _FIELDS[name], (tx.make.constant(name), value))

    # --- becoming real ---------------------------------------------------------------------------

    def reconstruct(self, codegen: Codegen) -> None:
        cells = [cell_variable(cell) for cell in self.closure]
        rebuild.function(codegen, self, cells)

    def write_back(self, codegen: Codegen, handle: Handle) -> None:
        """Emit the writes to what an existing function keeps in C (`handle` is `slots`)."""
        rebuild.written_members(codegen, handle, FunctionType)

    def __repr__(self) -> str:
        return f"FunctionVariable({self.qualname()})"


#: Fields that `functools.update_wrapper` and decorators write.
_WRITABLE: Final = frozenset(
    {
        "__name__",
        "__qualname__",
        "__doc__",
        "__module__",
        "__annotations__",
        "__defaults__",
        "__kwdefaults__",
        "__type_params__",
    }
)


#: What some of them must be set to, and whether None will do, too. Mirrors func_set_defaults and its like.
_OF_CLASS: Final[dict[str, tuple[type, bool]]] = {
    "__name__": (str, False),
    "__qualname__": (str, False),
    "__defaults__": (tuple, True),
    "__kwdefaults__": (dict, True),
    "__annotations__": (dict, True),
    "__type_params__": (tuple, False),
}
_CALLED: Final = {
    "__name__": "a string object",
    "__qualname__": "a string object",
    "__type_params__": "a tuple",
}


def globals_value(tx: Tx, handle: Handle) -> Var:
    """The dictionary of global names whose handle this is."""
    if handle.real is not None:
        return tx.make.from_value(handle.real, handle.source)
    known: Var | None = handle.tracker
    if known is None:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, "global names of code that lives in no module")
    return known


def cell_variable(cell: Handle) -> CellVariable:
    """The tracker of a cell, one a handle."""
    return cells.of(cell)


def cell_handle(tx: Tx, cell: Any, function: Source | None, index: int) -> Handle:
    """The handle of a cell of an existing function; its contents are read on demand.

    Another function's cell may be the same one: guarded, unless both functions are pinned by identity.
    """
    if function is None:
        return tx.heap.handle_of(cell, None)
    source = function.child(FunctionFieldSource, "__closure__").item(index)
    known = tx.heap.known(cell)
    if known is not None and is_stable(function) and _is_of_stable(known.source):
        return known
    return namespace.handle_at(tx, cell, source)


def _is_of_stable(cell: Source | None) -> bool:
    function = None if cell is None or cell.base is None else cell.base.base
    return function is not None and type(cell) is ItemSource and is_stable(function)


@maker
def function(
    tx: Tx,
    code: CodeType,
    module_globals: Handle,
    *,
    name: str | None = None,
    qualname: str | None = None,
    defaults: Sequence[Var] = (),
    kwdefaults: Mapping[str, Var] | None = None,
    closure: Sequence[Handle] = (),
    annotations: Sequence[Var] = (),
) -> FunctionVariable:
    """See `protocol.Make.function`."""
    made = FunctionVariable(code, module_globals, closure, Handle())
    made.made_defaults = tuple(defaults)
    made.made_kwdefaults = dict(kwdefaults or {})
    made.names = (name or code.co_name, qualname or code.co_qualname)
    if annotations:
        pairs = zip(annotations[::2], annotations[1::2], strict=True)
        made.store_field(tx, "__annotations__", tx.make.dict(list(pairs)))
    return made


def is_function(value: object) -> bool:
    """Whether `value` is a plain Python function."""
    return type(value) is FunctionType


@wraps_if(is_function, order=30)
def wrap_function(tx: Tx, value: FunctionType, source: Source | None) -> FunctionVariable:
    """A function that exists: pinned by identity at stable places, else by its code."""
    if source is None and not FunctionVariable.is_own(value):
        source = anchor(tx, value)
    code = value.__code__
    if source is not None:
        if not is_stable(source):
            tx.guard("type", source, FunctionType)
        elif type(source) is not AnchorSource:
            tx.guard("is", source, value)
        tx.guard("is", source.child(FunctionFieldSource, "__code__"), code)
    module_globals = function_globals(tx, value, source)
    closure = [cell_handle(tx, cell, source, index) for index, cell in enumerate(value.__closure__ or ())]
    return FunctionVariable(code, module_globals, closure, tx.heap.handle_of(value, source), source)


def function_globals(tx: Tx, value: FunctionType, source: Source | None) -> Handle:
    """The namespace of a function's global names; guarded unless it follows from the function's identity.

    One that is no module's (`exec`) is found again through the function.
    """
    own = None if source is None else source.child(FunctionFieldSource, "__globals__")
    handle = tx.globals_handle(value.__globals__, None, None if FunctionVariable.is_own(value) else own)
    if own is None or source is None or is_stable(source):
        return handle
    if handle.source not in (None, own):
        tx.guard("same", own, handle.source)
    return handle
