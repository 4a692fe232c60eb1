"""Makes trackers real: from the graph's results, from their source, or by building them once.

Owns the instruction list of an entry's body. The graph call in front of it is written when the body is
done and the graph's outputs are known (`entry_code.py`). It must not know tracker classes.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from graphlift.bytecode.decode import decode
from graphlift.bytecode.emit import Emitter
from graphlift.bytecode.instruction import Label
from graphlift.codegen.load_source import BindingSlots, load_source
from graphlift.errors import Unsupported
from graphlift.protocol import Codegen, Var, Where
from graphlift.reasons import Reason
from graphlift.sources import Source

#: The local that holds the graph's results.
GRAPH_OUT = "graph_out_0"

_LASTING = frozenset({"builtins", "graphlift", "torch"})
_CODE_CONSTANTS = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def is_lasting(value: object) -> bool:
    """Whether an object belongs to the process and not to the user, so that code may hold it."""
    module = getattr(value, "__module__", None)
    root = module.partition(".")[0] if isinstance(module, str) else ""
    if not root and isinstance(getattr(value, "__objclass__", None), type):
        root = value.__objclass__.__module__.partition(".")[0]  # type: ignore[attr-defined]
    return root in _LASTING or (root in sys.stdlib_module_names and root != "__main__")


class PyCodegen(Codegen):
    """Emits the body of one entry.

    Arguments:
        anchor: gives the source of an object of the user's that is pinned down by its identity.

    Attributes:
        emitter: the instruction list so far.
        slots: what the entry's binding must hold.
        outputs: values of the graph that the body takes out of its result, in order.
    """

    def __init__(self, anchor: Callable[[object], Source]) -> None:
        self.emitter = Emitter()
        self.slots = BindingSlots()
        self.outputs: dict[Any, int] = {}
        self._saved: dict[Var, str] = {}
        self._made: dict[Var, Label] = {}
        self._making: set[Var] = set()
        self._fills: list[Callable[[], None]] = []
        self._places: list[Callable[[], None]] = []
        self._depth = 0
        self._temporaries = 0
        self._anchor = anchor

    # --- values ----------------------------------------------------------------------------

    def __call__(self, var: Var) -> None:
        """See `protocol.Codegen.__call__`."""
        var = var.whole()
        local = self._saved.get(var)
        if local is None and var in self._made:
            local = self._save_made(var)
        if local is not None:
            self.emitter.load_fast(local)
        elif var.source is not None and not self._is_code_constant(var):
            self.load_source(var.source)
        elif var in self._making:
            raise Unsupported(Reason.UNSUPPORTED_VALUE, f"{var!r} would be needed before it can be built")
        else:
            self._make(var)

    def _is_code_constant(self, var: Any) -> bool:
        return var.is_constant() and type(var.as_constant()) in _CODE_CONSTANTS

    def _make(self, var: Any) -> None:
        self._making.add(var)
        self._depth += 1
        var.reconstruct(self)
        self._depth -= 1
        self._making.discard(var)
        if not self._is_code_constant(var):
            label = Label("made")
            self._made[var] = label
            self.emitter.place(label)
        while self._fills and not self._depth:  # only now every object that they may lead back to exists
            self._fills.pop(0)()

    def _save_made(self, var: Var) -> str:
        """Keep an object in a local from the point where it was made, for it is needed again."""
        label = self._made.pop(var)
        local = self.temporary()
        at = self.emitter.items.index(label)
        side = Emitter()
        side.copy(1)
        side.store_fast(local)
        self.emitter.items[at:at] = side.items
        self._saved[var] = local
        return local

    def has_made(self, var: Var) -> bool:
        """Whether the object exists at run time."""
        return var in self._made or var in self._saved

    def filled(self, var: Var) -> None:
        """See `protocol.Codegen.filled`."""
        self(var)
        self.emitter.pop()
        while self._fills:
            self._fills.pop(0)()

    def temporary(self) -> str:
        """The name of a fresh local."""
        self._temporaries += 1
        return f".made_{self._temporaries}"

    def later(self, fill: Callable[[], None]) -> None:
        """See `protocol.Codegen.later`."""
        self._fills.append(fill)

    def at_last(self, place: Callable[[], None]) -> None:
        """See `protocol.Codegen.at_last`."""
        self._places.append(place)

    def put_in_place(self) -> None:
        """Emit what was to come at last; called when the side effects are emitted."""
        while self._places:
            self._places.pop(0)()

    # --- loads -----------------------------------------------------------------------------

    def load_const(self, value: object) -> None:
        """See `protocol.Codegen.load_const`."""
        self.emitter.load_const(value)

    def load_source(self, source: Source) -> None:
        """See `protocol.Codegen.load_source`."""
        load_source(self.emitter, source, self.slots)

    def load_object(self, value: object) -> None:
        """See `protocol.Codegen.load_object`."""
        if is_lasting(value):
            self.emitter.load_const(value)
        else:
            self.load_source(self._anchor(value))

    def load_graph_output(self, value: object) -> None:
        """See `protocol.Codegen.load_graph_output`."""
        index = self.outputs.setdefault(value, len(self.outputs))
        self.emitter.load_fast(GRAPH_OUT)
        self.emitter.load_const(index)
        self.emitter.subscr()

    def load_attr(self, name: str) -> None:
        """See `protocol.Codegen.load_attr`."""
        self.emitter.load_attr(name)

    # --- doing -----------------------------------------------------------------------------

    def call(self, function: object, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> None:
        """See `protocol.Codegen.call`."""
        self.emitter.prepare_call()
        self.load_object(function)
        self.emitter.callable_ready()
        for arg in args:
            self(arg)
        named = kwargs or {}
        for value in named.values():
            self(value)
        self.emitter.call(len(args) + len(named), tuple(named))

    def run(self, function: object, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> None:
        """See `protocol.Codegen.run`."""
        self.call(function, args, kwargs)
        self.emitter.pop()

    @contextmanager
    def standing_at(self, where: Where) -> Iterator[None]:
        """See `protocol.Codegen.standing_at`."""
        code, offset, caller = where
        before = self.emitter.position
        if caller is None:
            decoded = decode(code)
            self.emitter.position = decoded.position(decoded.index_at(offset))
        yield
        self.emitter.position = before

    def set_attr(self, owner: Var, name: str, value: Var) -> None:
        """See `protocol.Codegen.set_attr`."""
        self(value)
        self(owner)
        self.emitter.store_attr(name)

    def set_item(self, owner: Var, key: Var, value: Var) -> None:
        """See `protocol.Codegen.set_item`."""
        self(value)
        self(owner)
        self(key)
        self.emitter.store_subscr()

    def build(self, kind: Literal["tuple", "list", "set", "map", "slice", "string"], count: int) -> None:
        """See `protocol.Codegen.build`."""
        getattr(self.emitter, f"build_{kind}")(count)
