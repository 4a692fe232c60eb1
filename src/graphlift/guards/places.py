"""Places: sources as rows of the guard program, and how Python reads and names them.

A row is a tuple ``(node name, parent row, operands...)``: the very data the C program is made from, and all
that is left of a source once a capture is over. Every accessor node has three faces here, side by side: which
source it comes from, how Python reads it (in the plainest way that runs none of the user's code), and what
people call it. Knows nothing of checks.
"""

from __future__ import annotations

import contextvars
import gc
import sys
import weakref
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence
from types import BuiltinMethodType, FunctionType, GetSetDescriptorType, MethodType, ModuleType
from typing import Any, Final

from graphlift import sources
from graphlift.guards.holding import GONE, NotGuardableError, class_name, held, hold, is_static_type
from graphlift.sources import Source

Row = tuple[Any, ...]


class _Missing:
    """What is at a place that is not there."""

    def __repr__(self) -> str:
        return "nothing"


MISSING: Final = _Missing()


class Rows:
    """The program while it is being written.

    Attributes:
        rows: the nodes so far.
        names: what people call the places that start a path, by row.
        descriptors: for rows about a slot of a class, the descriptor itself; the program wants it when it is
            made, and nobody keeps it.
    """

    __slots__ = ("_at", "_holders", "descriptors", "dicts", "names", "rows", "specs")

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.names: dict[int, str] = {}
        self.descriptors: dict[int, Any] = {}
        #: Rows that read what a node says is a plain dictionary.
        self.dicts: set[int] = set()
        #: What nodes about tensors check, with their operands, by the address of what it was made from.
        self.specs: dict[int, tuple[Any, tuple[Any, ...]]] = {}
        self._at: dict[Source, int] = {}
        self._holders: dict[int, Any] = {}

    def hold(self, cls: type) -> Any:
        """`holding.hold` of a class, once a class."""
        holder = self._holders.get(id(cls))
        if holder is None:
            holder = self._holders[id(cls)] = hold(cls)
        return holder

    def at(self, source: Source) -> int:
        """The row that reads `source`, added if need be; one for each source."""
        known = self._at
        index = known.get(source)
        if index is not None:
            return index
        base = source.base
        parent = -1 if base is None else known.get(base)
        if parent is None:
            parent = self.at(base)  # type: ignore[arg-type]
        make = _ROW_OF[type(source)]
        rows = self.rows
        if make is _dict_value_row and type(source.key) is str:  # most places
            index = known[source] = len(rows)
            rows.append(("dict_value", parent, source.key))
            return index
        row = make(source, parent)
        index = known[source] = len(rows)
        rows.append(row)
        if row[0] in _NOTED:
            self._note(index, source, row[0])
        return index

    def reads(self, source: Source) -> bool:
        """Whether there is a row that reads `source`."""
        return source in self._at

    def unread(self, places: Sequence[tuple[Source, Any]]) -> list[tuple[Source, Any]]:
        """Those of some places, each with something that is said of it, that no row reads."""
        known = self._at
        return [place for place in places if place[0] not in known]

    def _note(self, index: int, source: Source, op: str) -> None:
        if op == "class_slot":
            self.descriptors[index] = source.key
        else:
            self.names[index] = str(source.key) if op == "cell" else source.name()

    def add(self, *row: Any) -> int:
        """Add a node; its row number."""
        self.rows.append(row)
        return len(self.rows) - 1

    def add_about_slot(self, op: str, at: int, descriptor: Any) -> SlotOf:
        """Add a check about a slot of a class."""
        slot = SlotOf(descriptor)
        self.descriptors[self.add(op, at, slot)] = descriptor
        return slot

    def for_program(self) -> list[Row]:
        """The rows as the C program takes them."""
        rows = self.rows
        if self.descriptors:
            rows = list(rows)
            for index, descriptor in self.descriptors.items():
                rows[index] = (*rows[index][:2], descriptor)
        return rows


# --- from sources to rows ----------------------------------------------------------------------------

#: Rows whose operands do not tell all that is needed of the source.
_NOTED: Final = frozenset({"param", "function", "cell", "anchor", "class_slot"})


def _plain(op: str) -> Callable[[Source, int], Row]:
    """For places whose source's key says nothing more."""
    return lambda source, parent: (op, parent)


def _keyed(op: str) -> Callable[[Source, int], Row]:
    """For places that are read by their source's key as it is."""
    return lambda source, parent: (op, parent, source.key)


def _param_row(source: Source, parent: int) -> Row:
    assert isinstance(source, sources.ParamSource)
    return ("param", parent, source.index)


def _anchor_row(source: Source, parent: int) -> Row:
    return ("anchor", parent, hold(source.key))


def _function_field_row(source: Source, parent: int) -> Row:
    if source.key == "__dict__":
        return ("instance_dict", parent)
    return ("function_field", parent, source.key)


def _dict_value_row(source: Source, parent: int) -> Row:
    key = source.key
    return ("dict_value", parent, key if type(key) is str else hold_key(key))


def _slot_row(source: Source, parent: int) -> Row:
    descriptor: Any = source.key
    if type(descriptor) is GetSetDescriptorType or is_static_type(descriptor.__objclass__):
        return ("slot", parent, descriptor)
    return ("class_slot", parent, SlotOf(descriptor))


_ROW_OF: Final[dict[type[Source], Callable[[Source, int], Row]]] = {
    sources.ParamSource: _param_row,
    sources.FunctionSource: _plain("function"),
    sources.HandledSource: _plain("handled"),
    sources.ObjectSource: _keyed("module"),
    sources.AnchorSource: _anchor_row,
    sources.FunctionFieldSource: _function_field_row,
    sources.GlobalSource: _dict_value_row,
    sources.CellContentsSource: _plain("cell"),
    sources.InstanceDictSource: _plain("instance_dict"),
    sources.ModuleDictSource: _plain("module_dict"),
    sources.AttrSource: _dict_value_row,
    sources.SlotSource: _slot_row,
    sources.ItemSource: _keyed("item"),
    sources.KeySource: _dict_value_row,
    sources.DictKeySource: _keyed("key_at"),
    sources.DictValueSource: _keyed("value_at"),
    sources.TypeSource: _plain("type"),
    sources.TypeLookupSource: _keyed("type_lookup"),
    sources.MethodSelfSource: _plain("method_self"),
    sources.MethodFunctionSource: _plain("method_function"),
    sources.ReferentSource: _plain("referent"),
    sources.ContextValueSource: _plain("context_value"),
    sources.IteratorSource: _plain("iterated"),
    sources.StateSource: _keyed("contents"),
}


class SlotOf:
    """A slot of a class written in Python: the class weakly, and the name. Data of a ``class_slot`` row."""

    __slots__ = ("name", "owner")

    def __init__(self, descriptor: Any) -> None:
        self.owner: Final = weakref.ref(descriptor.__objclass__)
        self.name: Final[str] = descriptor.__name__

    def descriptor(self) -> Any:
        """The descriptor that reads the slot now, or None."""
        owner = self.owner()
        if owner is None:
            return None
        for found in namespace(owner).values():
            if (
                getattr(found, "__objclass__", None) is owner
                and getattr(found, "__name__", None) == self.name
            ):
                return found
        return None


def hold_key(key: Any) -> Any:
    """A dictionary key as an operand: constants as they are, other objects weakly.

    Raises:
        NotGuardableError: the key can be held neither way.
    """
    kind = type(key)
    if kind in (str, int, bool, float, bytes, complex, type(None)):
        return key
    if kind is tuple:
        held_items = tuple(map(hold_key, key))
        if any(a is not b for a, b in zip(held_items, key, strict=True)):
            raise NotGuardableError("a tuple that holds objects is no key that a guard could look up")
        return key
    return hold(key)


# --- how Python reads them -----------------------------------------------------------------------------


def namespace(value: Any) -> Any:
    """The instance dictionary of any object, whatever its class says about ``__dict__``; or `MISSING`."""
    if issubclass(type(value), type):
        return type.__dict__["__dict__"].__get__(value)
    for cls in _mro(type(value)):
        descriptor = type.__dict__["__dict__"].__get__(cls).get("__dict__")
        if descriptor is not None and type(descriptor).__name__ in ("getset_descriptor", "member_descriptor"):
            found = descriptor.__get__(value)
            return MISSING if found is None else found
    return MISSING


def _mro(cls: type) -> tuple[type, ...]:
    found: tuple[type, ...] = type.__dict__["__mro__"].__get__(cls)
    return found


def type_lookup(cls: Any, name: str) -> Any:
    """What `name` is found to be along the method resolution order, or `MISSING`."""
    if not isinstance(cls, type):
        return MISSING
    for owner in _mro(cls):
        found = type.__dict__["__dict__"].__get__(owner).get(name, MISSING)
        if found is not MISSING:
            return found
    return MISSING


def dict_value(table: Any, key: Any) -> Any:
    """The value of a dictionary, read from the storage beneath; or `MISSING`."""
    key = held(key)
    if isinstance(table, dict):
        return dict.get(table, key, MISSING)
    return table.get(key, MISSING)  # a class's namespace


def dict_keys(table: Any) -> list[Any]:
    """The keys of a dictionary in the order that iteration shows."""
    if isinstance(table, OrderedDict):
        return list(OrderedDict.__iter__(table))
    return list(dict.__iter__(table)) if isinstance(table, dict) else list(table)


def _value_at(table: Any, position: int) -> Any:
    wanted = dict_keys(table)[position]
    return next(value for key, value in dict.items(table) if key is wanted)


def _item(sequence: Any, index: int) -> Any:
    kind = next((kind for kind in (tuple, deque) if isinstance(sequence, kind)), list)
    return kind.__getitem__(sequence, index)


def _cell(cell: Any) -> Any:
    return cell.cell_contents


def _module_dict(module: Any) -> Any:
    return vars(ModuleType)["__dict__"].__get__(module)


def _function_field(function: Any, name: str) -> Any:
    if not isinstance(function, FunctionType):
        return MISSING
    return getattr(FunctionType, name).__get__(function) if name != "__globals__" else function.__globals__


def _method_self(method: Any) -> Any:
    if not isinstance(method, (MethodType, BuiltinMethodType)):
        return MISSING
    return MISSING if method.__self__ is None else method.__self__


def _method_function(method: Any) -> Any:
    return method.__func__ if isinstance(method, MethodType) else MISSING


def _referent(reference: Any) -> Any:
    return reference() if type(reference) is weakref.ref else MISSING


def _context_value(variable: Any) -> Any:
    try:
        return variable.get() if type(variable) is contextvars.ContextVar else MISSING
    except LookupError:
        return MISSING


def _class_slot(value: Any, slot: SlotOf) -> Any:
    descriptor = slot.descriptor()
    return MISSING if descriptor is None else descriptor.__get__(value)


def _iterated(iterator: Any) -> Any:
    kinds: tuple[type, ...] = (
        type(iter([])),
        type(iter(())),
        type(iter({})),
        type(iter({}.values())),
        type(iter({}.items())),
    )
    found = [item for item in gc.get_referents(iterator) if isinstance(item, (list, tuple, dict))]
    return found[0] if type(iterator) in kinds and found else MISSING


_READ: Final[dict[str, Callable[..., Any]]] = {
    "handled": sys.exception,
    "module": lambda name: sys.modules.get(name, MISSING),
    "anchor": held,
    "function_field": _function_field,
    "cell": _cell,
    "instance_dict": namespace,
    "module_dict": _module_dict,
    "dict_value": dict_value,
    "slot": lambda value, descriptor: descriptor.__get__(value),
    "class_slot": _class_slot,
    "item": _item,
    "key_at": lambda table, position: dict_keys(table)[position],
    "value_at": _value_at,
    "type": type,
    "type_lookup": type_lookup,
    "method_self": _method_self,
    "method_function": _method_function,
    "referent": _referent,
    "context_value": _context_value,
    "iterated": _iterated,
    "contents": lambda value, read: read(value),
}


def read(rows: Sequence[Row], index: int, function: Any, params: Sequence[Any]) -> Any:
    """What is at the place of row `index`, or `MISSING`; the Python face of the accessor nodes."""
    op, parent, *operands = rows[index]
    if op == "function":
        return function
    if op == "param":
        return params[operands[0]] if operands[0] < len(params) else MISSING
    if parent >= 0:
        base = read(rows, parent, function, params)
        if base is MISSING:
            return MISSING
        operands.insert(0, base)
    try:
        value = _READ[op](*operands)
    except (AttributeError, KeyError, IndexError, TypeError, ValueError):
        return MISSING
    return MISSING if value is GONE else value


# --- what people call them -----------------------------------------------------------------------------


def plain_repr(value: Any) -> str:
    """The ``repr`` of a value of a builtin class; Python refuses that of a number of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        bits = f" of {value.bit_length()} bits" if isinstance(value, int) else ""
        return f"<{type(value).__qualname__}{bits}>"


def _key_name(key: Any) -> str:
    return plain_repr(key) if type(key) is not weakref.ref else f"<{class_name(type(held(key)))}>"


def _dict_value_name(rows: Sequence[Row], names: dict[int, str], row: Row) -> str:
    parent = rows[row[1]]
    if parent[0] in ("instance_dict", "module_dict"):
        return f"{name_of(rows, names, parent[1])}.{row[2]}"
    if parent[0] == "function_field" and parent[2] in ("__globals__", "__builtins__"):
        return str(row[2])
    return f"{name_of(rows, names, row[1])}[{_key_name(row[2])}]"


_FORM: Final[dict[str, str]] = {
    "handled": "sys.exception()",
    "module": "{key}",
    "function_field": "{base}.{key}",
    "instance_dict": "{base}.__dict__",
    "module_dict": "{base}.__dict__",
    "slot": "{base}.{key.__name__}",
    "class_slot": "{base}.{key.name}",
    "item": "{base}[{key}]",
    "key_at": "list({base})[{key}]",
    "value_at": "list({base}.values())[{key}]",
    "type": "type({base})",
    "type_lookup": "{base}.{key}",
    "method_self": "{base}.__self__",
    "method_function": "{base}.__func__",
    "referent": "{base}()",
    "context_value": "{base}.get()",
    "iterated": "iterated({base})",
    "contents": "contents of {base}",
}


def name_of(rows: Sequence[Row], names: dict[int, str], index: int) -> str:
    """The place as a user would write it, e.g. ``self.layers[0].weight``."""
    if index in names:
        return names[index]
    row = rows[index]
    if row[0] == "dict_value":
        return _dict_value_name(rows, names, row)
    base = name_of(rows, names, row[1]) if row[1] >= 0 else ""
    return _FORM[row[0]].format(base=base, key=row[2] if len(row) > 2 else "")


def sort_of_place(rows: Sequence[Row], index: int) -> str:
    """What sort of place it is, in one word for people; empty where the name says it all."""
    row = rows[index]
    if row[0] == "dict_value":
        parent = rows[row[1]]
        if parent[0] == "function_field":
            return "global"
        return "attribute" if parent[0] in ("instance_dict", "module_dict") else ""
    return {
        "param": "argument",
        "cell": "closure variable",
        "slot": "attribute",
        "class_slot": "attribute",
        "type_lookup": "class attribute",
        "anchor": "class",
        "module": "module",
        "function": "function",
    }.get(row[0], "")
