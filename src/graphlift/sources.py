"""Where a value came from, as pure data.

A source is a node of a tree whose roots are what an entry is handed at a call: the parameters, the
function object, or an object known to the whole process. Children are interned by their parent, so
two reads of the same place give the same object and sources compare by identity. Sources know
nothing of guards or code; `codegen/load_source.py` and `guards/compile.py` are their two readers.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

#: How names begin under which a module has the products of backends, and segments.
PRODUCT_PREFIX: Final = "__compiled_fn_"
SEGMENT_PREFIX: Final = "__resume_"

_OWN_NAME: Final = re.compile(f"(?:{PRODUCT_PREFIX}|{SEGMENT_PREFIX})[0-9]+_")


def is_own_name(name: object) -> bool:
    """Whether it is such a name: the program is not shown them among all names of a module."""
    return type(name) is str and _OWN_NAME.match(name) is not None


class Source:
    """A place that can be read again at every call without running user code.

    Attributes:
        base: the source this one is read from, or None for a root.
        key: what is read (a name, an index, a key, a descriptor); its meaning depends on the class.
    """

    __slots__ = ("_children", "base", "key")

    #: How the place is written in the user's words; `{base}` and `{key}` are filled in.
    form: ClassVar[str] = "{base}.{key}"

    def __init__(self, base: Source | None, key: object) -> None:
        self.base: Final = base
        self.key: Final = key
        self._children: dict[tuple[type[Source], object, type], Source] | None = None

    def child(self, kind: type[Source], key: object) -> Source:
        """The source of class `kind` that reads `key` from this one; the same object each time.

        Keys are told apart by type as well as by value, for `1`, `1.0` and `True` are three keys.
        """
        children = self._children
        if children is None:
            children = self._children = {}
        at = (kind, key, type(key))
        found = children.get(at)
        if found is None:
            found = children[at] = kind(self, key)
        return found

    def name(self) -> str:
        """The place as a user would write it, e.g. ``self.layers[0].weight``."""
        base = "" if self.base is None else self.base.name()
        return self.form.format(base=base, key=self.key)

    def root(self) -> Source:
        """The root this source hangs from."""
        source = self
        while source.base is not None:
            source = source.base
        return source

    # The readers below cover what most callers need; rarer places use `child` directly.

    def attr(self, name: str) -> Source:
        """Entry `name` of the object's own instance dictionary."""
        return self.child(InstanceDictSource, "__dict__").child(AttrSource, name)

    def item(self, index: int) -> Source:
        """Item `index` of a list or tuple."""
        return self.child(ItemSource, index)

    def value_of(self, key: object) -> Source:
        """The value under `key` in a dictionary."""
        return self.child(KeySource, key)

    def type(self) -> Source:
        """The object's class."""
        return self.child(TypeSource, "__class__")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name()})"


class ParamSource(Source):
    """A parameter of the root frame; `key` is (position among the code's parameters, name)."""

    __slots__ = ()

    def name(self) -> str:
        assert isinstance(self.key, tuple)
        return str(self.key[1])

    @property
    def index(self) -> int:
        """Position in the flat parameter array that guards and entries are handed."""
        assert isinstance(self.key, tuple)
        return int(self.key[0])


class FunctionSource(Source):
    """The function object whose frame is captured (root; `key` is its qualified name)."""

    __slots__ = ()
    form = "{key}"


class ObjectSource(Source):
    """An object every process has and that outlives any entry: a module's namespace, builtins.

    `key` is the name of an importable module; the place is that module object in `sys.modules`.
    """

    __slots__ = ()
    form = "{key}"


class AnchorSource(Source):
    """An object that a guard already pins down by identity, read again without its path (root).

    `key` is the object, held for as long as the source lives; whoever keeps guards beyond a capture holds it
    weakly. Used for classes: all look-ups on one class share one place, however many instances were met.
    """

    __slots__ = ()

    def name(self) -> str:
        return str(getattr(self.key, "__qualname__", type(self.key).__qualname__))


class HandledSource(Source):
    """The exception that whoever called the frame is handling, or None (root)."""

    __slots__ = ()
    form = "{key}"


class FunctionFieldSource(Source):
    """A field of a function object: `key` is one of `__globals__`, `__builtins__`, `__closure__`,
    `__defaults__`, `__kwdefaults__`, `__code__`, `__dict__`."""

    __slots__ = ()


class GlobalSource(Source):
    """A name in a module's dictionary (`base` is the dictionary); read like a dictionary value."""

    __slots__ = ()
    form = "{key}"


class CellContentsSource(Source):
    """What a closure cell holds (`base` is the cell; `key` is the variable's name)."""

    __slots__ = ()
    form = "{key}"


class InstanceDictSource(Source):
    """The instance dictionary of an object, found without running user code."""

    __slots__ = ()
    form = "{base}.__dict__"


class ModuleDictSource(Source):
    """The namespace of a Python module object."""

    __slots__ = ()
    form = "{base}.__dict__"


class AttrSource(Source):
    """A name in an instance's or a Python module's dictionary (`base` is the dictionary)."""

    __slots__ = ()

    def name(self) -> str:
        assert self.base is not None
        owner = self.base.base
        if owner is None:  # the dictionary was met before its object
            return f"{self.base.name()}[{self.key!r}]"
        return f"{owner.name()}.{self.key}"


class SlotSource(Source):
    """An attribute kept in C: `key` is the member or getset descriptor that reads it.

    Only descriptors of C types whose getter runs no user code may be used.
    """

    __slots__ = ()

    def name(self) -> str:
        assert self.base is not None
        return f"{self.base.name()}.{getattr(self.key, '__name__', self.key)}"


class ItemSource(Source):
    """An item of a list, tuple or deque (also of a subclass, read from the storage beneath)."""

    __slots__ = ()
    form = "{base}[{key!r}]"


class KeySource(Source):
    """A value of a dictionary (also of a subclass, read from the storage beneath)."""

    __slots__ = ()
    form = "{base}[{key!r}]"


class DictKeySource(Source):
    """The key object at position `key` of a dictionary, in insertion order."""

    __slots__ = ()
    form = "list({base})[{key!r}]"


class DictValueSource(Source):
    """The value under the key at position `key` of a dictionary: for keys that no guard may look up."""

    __slots__ = ()
    form = "list({base}.values())[{key!r}]"


class TypeSource(Source):
    """The class of an object."""

    __slots__ = ()
    form = "type({base})"


class TypeLookupSource(Source):
    """What a look-up of `key` along the method resolution order finds (`base` is the class)."""

    __slots__ = ()


class MethodSelfSource(Source):
    """The object that a bound method is bound to."""

    __slots__ = ()
    form = "{base}.__self__"


class MethodFunctionSource(Source):
    """The function behind a bound method."""

    __slots__ = ()
    form = "{base}.__func__"


class ReferentSource(Source):
    """What a weak reference refers to, None when that is gone."""

    __slots__ = ()
    form = "{base}()"


class ContextValueSource(Source):
    """What a context variable holds for whoever reads it now, or its default."""

    __slots__ = ()
    form = "{base}.get()"


class IteratorSource(Source):
    """What a list, tuple, range or dict iterator iterates over (`key` names the kind)."""

    __slots__ = ()
    form = "iterated({base})"


class StateSource(Source):
    """The contents of an object of a C class as a constant: `key` is the function that reads them.

    It belongs to the process and runs none of the user's code. Guards alone read such places.
    """

    __slots__ = ()

    def name(self) -> str:
        assert self.base is not None
        return f"contents of {self.base.name()}"
