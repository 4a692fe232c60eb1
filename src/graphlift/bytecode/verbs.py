"""What emitted code says, whatever the Python: one method a thing done to the stack.

Owns the verbs that all versions spell alike; `versions/` overrides what differs. A verb appends to `items`;
bytes are the business of `emit`. It must not know opcode numbers or arguments.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

from graphlift.bytecode.instruction import Instruction, Item, Label, Position, TryBegin, TryEnd
from graphlift.bytecode.operands import FUNCTION_PARTS

_UNARY = {"-": "UNARY_NEGATIVE", "~": "UNARY_INVERT"}

Conversion = Literal["", "s", "r", "a"]


class Verbs(ABC):
    """An instruction list under construction.

    Locals are named as in `operands.unique_slot_names`. Where a verb's comment shows the stack, the top is on
    the right.

    Attributes:
        items: what was emitted so far.
        position: given to each instruction emitted from now on; None is the function's first line.
    """

    def __init__(self) -> None:
        self.items: list[Item] = []
        self.position: Position | None = None
        self._placed: set[Label] = set()

    # --- the list itself -----------------------------------------------------------------------

    def emit(self, op: str, operand: Any = None) -> None:
        """Append one instruction by its opcode's name, with its operand resolved (see `operands`)."""
        self.items.append(Instruction(op, operand, self.position))

    def place(self, label: Label) -> None:
        """Let `label` stand for this point; labels enter the list only here."""
        self._placed.add(label)
        self.items.append(label)

    @contextmanager
    def at(self, position: Position | None) -> Iterator[None]:
        """Give `position` to what is emitted inside."""
        before, self.position = self.position, position
        try:
            yield
        finally:
            self.position = before

    @contextmanager
    def protected(self, handler: Label, lasti: bool = False) -> Iterator[TryBegin]:
        """Let exceptions of what is emitted inside go on at `handler`, at the depth of this point."""
        begin = TryBegin(handler, lasti)
        self.items.append(begin)
        yield begin
        self.items.append(TryEnd(begin))

    @contextmanager
    def outside(self, begin: TryBegin) -> Iterator[None]:
        """Suspend the innermost range for what is emitted inside, as when a handler leaves for good."""
        self.items.append(TryEnd(begin))
        yield
        self.items.append(begin)

    def last(self) -> Instruction | None:
        """The instruction just emitted, if nothing can jump between it and the next one."""
        item = self.items[-1] if self.items else None
        return item if isinstance(item, Instruction) else None

    # --- start and end of the code -------------------------------------------------------------

    def prologue(self, cells: Sequence[str] = (), free: Sequence[str] = ()) -> None:
        """What every function begins with: take over free variables, make cells, resume."""
        if free:
            self.emit("COPY_FREE_VARS", tuple(free))
        for name in cells:
            self.emit("MAKE_CELL", name)
        self.emit("RESUME", 0)

    def return_value(self) -> None:
        self.emit("RETURN_VALUE")

    @abstractmethod
    def return_const(self, value: object) -> None:
        """Return a constant."""

    # --- the stack -----------------------------------------------------------------------------

    def pop(self) -> None:
        self.emit("POP_TOP")

    def copy(self, depth: int = 1) -> None:
        """Push what lies `depth` deep; 1 is the top."""
        self.emit("COPY", depth)

    def swap(self, depth: int) -> None:
        """Exchange the top with what lies `depth` deep."""
        if depth > 1:
            self.emit("SWAP", depth)

    def push_null(self) -> None:
        self.emit("PUSH_NULL")

    def rotate_down(self, depth: int) -> None:
        """Move the top below the `depth - 1` values under it."""
        for at in range(depth, 1, -1):
            self.swap(at)

    # --- constants and names -------------------------------------------------------------------

    def load_const(self, value: object) -> None:
        self.emit("LOAD_CONST", value)

    def load_fast(self, name: str) -> None:
        """Load a local that is bound for certain: an unbound one crashes the process on 3.12 and later."""
        self.emit("LOAD_FAST", name)

    @abstractmethod
    def load_fast_check(self, name: str) -> None:
        """Load a local that may be unbound; that raises UnboundLocalError."""

    def store_fast(self, name: str) -> None:
        """Store in a local; a name that the header does not have becomes a new local."""
        self.emit("STORE_FAST", name)

    def delete_fast(self, name: str) -> None:
        self.emit("DELETE_FAST", name)

    def load_global(self, name: str) -> None:
        """Load a global or builtin; joins with the NULL of a call being prepared (see `prepare_call`)."""
        self.emit("LOAD_GLOBAL", (name, False))

    def store_global(self, name: str) -> None:
        self.emit("STORE_GLOBAL", name)

    def delete_global(self, name: str) -> None:
        self.emit("DELETE_GLOBAL", name)

    @abstractmethod
    def load_closure(self, name: str) -> None:
        """Load the cell itself of a cell or free variable."""

    def load_deref(self, name: str) -> None:
        self.emit("LOAD_DEREF", name)

    def store_deref(self, name: str) -> None:
        self.emit("STORE_DEREF", name)

    def delete_deref(self, name: str) -> None:
        self.emit("DELETE_DEREF", name)

    def import_name(self, name: str) -> None:
        """level, fromlist -> module"""
        self.emit("IMPORT_NAME", name)

    def import_from(self, name: str) -> None:
        """module -> module, attribute"""
        self.emit("IMPORT_FROM", name)

    # --- attributes and items ------------------------------------------------------------------

    def load_attr(self, name: str) -> None:
        """object -> attribute"""
        self.emit("LOAD_ATTR", (name, False))

    def store_attr(self, name: str) -> None:
        """value, object ->"""
        self.emit("STORE_ATTR", name)

    def delete_attr(self, name: str) -> None:
        """object ->"""
        self.emit("DELETE_ATTR", name)

    def subscr(self) -> None:
        """container, key -> item"""
        self.emit("BINARY_SUBSCR")

    def store_subscr(self) -> None:
        """value, container, key ->"""
        self.emit("STORE_SUBSCR")

    def delete_subscr(self) -> None:
        """container, key ->"""
        self.emit("DELETE_SUBSCR")

    # --- containers ----------------------------------------------------------------------------

    def build_tuple(self, count: int) -> None:
        self.emit("BUILD_TUPLE", count)

    def build_list(self, count: int) -> None:
        self.emit("BUILD_LIST", count)

    def build_set(self, count: int) -> None:
        self.emit("BUILD_SET", count)

    def build_map(self, count: int) -> None:
        """key, value, key, value, ... -> dict of `count` entries"""
        self.emit("BUILD_MAP", count)

    def build_const_key_map(self, keys: tuple[object, ...]) -> None:
        """value, value, ... -> dict"""
        self.load_const(keys)
        self.emit("BUILD_CONST_KEY_MAP", len(keys))

    def build_string(self, count: int) -> None:
        self.emit("BUILD_STRING", count)

    def build_slice(self, count: int = 2) -> None:
        """start, stop, and step if `count` is 3 -> slice"""
        self.emit("BUILD_SLICE", count)

    def list_append(self, depth: int = 1) -> None:
        """list, ..., item -> list, ...; the list lies `depth` deep below the item."""
        self.emit("LIST_APPEND", depth)

    def list_extend(self, depth: int = 1) -> None:
        """list, ..., iterable -> list, ..."""
        self.emit("LIST_EXTEND", depth)

    def set_add(self, depth: int = 1) -> None:
        self.emit("SET_ADD", depth)

    def set_update(self, depth: int = 1) -> None:
        self.emit("SET_UPDATE", depth)

    def map_add(self, depth: int = 1) -> None:
        """dict, ..., key, value -> dict, ..."""
        self.emit("MAP_ADD", depth)

    def dict_update(self, depth: int = 1) -> None:
        self.emit("DICT_UPDATE", depth)

    def dict_merge(self, depth: int = 1) -> None:
        """As `dict_update`, for keyword arguments: a key that is there already raises TypeError."""
        self.emit("DICT_MERGE", depth)

    @abstractmethod
    def list_to_tuple(self) -> None:
        """list -> tuple"""

    def unpack_sequence(self, count: int) -> None:
        """iterable -> last item, ..., first item"""
        self.emit("UNPACK_SEQUENCE", count)

    def unpack_ex(self, before: int, after: int) -> None:
        """iterable -> items after, list of the rest, items before; the first item is on top."""
        self.emit("UNPACK_EX", (before, after))

    # --- operators -----------------------------------------------------------------------------

    def binary(self, symbol: str, inplace: bool = False) -> None:
        """left, right -> result; `symbol` is written without the ``=`` of an in-place operator."""
        self.emit("BINARY_OP", (symbol, inplace))

    def unary(self, symbol: str) -> None:
        """value -> result, for ``-``, ``~``, ``+`` and ``not``"""
        if symbol == "+":
            self.unary_positive()
        elif symbol == "not":
            self.to_bool()
            self.emit("UNARY_NOT")
        else:
            self.emit(_UNARY[symbol])

    @abstractmethod
    def unary_positive(self) -> None:
        """value -> +value"""

    def compare(self, symbol: str) -> None:
        """left, right -> result"""
        self.emit("COMPARE_OP", (symbol, False))

    def is_(self, negated: bool = False) -> None:
        """left, right -> left is right"""
        self.emit("IS_OP", negated)

    def contains(self, negated: bool = False) -> None:
        """item, container -> item in container"""
        self.emit("CONTAINS_OP", negated)

    def to_bool(self) -> None:  # noqa: B027 - most versions need nothing
        """Make sure that the top is fit for a test or for `not`, as this version wants it."""

    @abstractmethod
    def format_value(self, conversion: Conversion = "", spec: bool = False) -> None:
        """value, and the format spec if `spec` -> string"""

    # --- calls ---------------------------------------------------------------------------------

    @abstractmethod
    def prepare_call(self) -> None:
        """To be said before the callable is loaded; `callable_ready` after it, `call` after the arguments."""

    @abstractmethod
    def callable_ready(self) -> None:
        """To be said when the callable is on the stack, before its first argument."""

    @abstractmethod
    def load_method(self, name: str) -> None:
        """Replace an object by its method, ready for arguments and `call`, without making a bound method."""

    @abstractmethod
    def call(self, count: int, keywords: Sequence[str] = ()) -> None:
        """Call with `count` arguments, the last of which have the names `keywords`."""

    def call_on_stack(self, count: int, keywords: Sequence[str] = ()) -> None:
        """callable, arguments -> result, for a callable that was loaded without `prepare_call`."""
        if count > len(keywords):
            # A callable and its first argument look like a method and its self.
            self.call(count - 1, keywords)
            return
        self.push_null()
        if self.null_goes_above():
            self.rotate_down(count + 1)
        else:
            self.rotate_down(count + 2)
        self.call(count, keywords)

    @abstractmethod
    def null_goes_above(self) -> bool:
        """Whether a plain call's NULL lies above the callable."""

    def call_ex(self, keywords: bool = False) -> None:
        """callable as for `call`, tuple, and dict if `keywords` -> result"""
        self.emit("CALL_FUNCTION_EX", keywords)

    @abstractmethod
    def make_function(self, parts: Sequence[str] = ()) -> None:
        """values of `parts` in the order of `FUNCTION_PARTS`, code -> function"""

    # --- jumps ---------------------------------------------------------------------------------

    def jump(self, label: Label) -> None:
        self.emit("JUMP_BACKWARD" if self.placed(label) else "JUMP_FORWARD", label)

    def placed(self, label: Label) -> bool:
        """Whether a label lies behind, so that a jump to it goes backward."""
        return label in self._placed

    def pop_jump_if(self, label: Label, truth: bool = True) -> None:
        """value -> ; jump if its truth is `truth`"""
        self.to_bool()
        self.conditional_jump("TRUE" if truth else "FALSE", label)

    def pop_jump_if_none(self, label: Label, none: bool = True) -> None:
        """value -> ; jump if it is None, or if it is not"""
        self.conditional_jump("NONE" if none else "NOT_NONE", label)

    @abstractmethod
    def conditional_jump(self, test: Literal["TRUE", "FALSE", "NONE", "NOT_NONE"], label: Label) -> None:
        """Pop and jump by `test`; the value is fit for it."""

    def get_iter(self) -> None:
        """iterable -> iterator"""
        self.emit("GET_ITER")

    def for_iter(self, done: Label) -> None:
        """iterator -> iterator, item; goes to `done` when there are no more, where `end_for` must stand"""
        self.emit("FOR_ITER", done)

    @abstractmethod
    def end_for(self, done: Label) -> None:
        """Place the label at which a loop ends; the iterator is gone after it."""

    # --- exceptions and with blocks ------------------------------------------------------------

    def raise_(self, count: int = 1) -> None:
        """exception, and cause if `count` is 2 -> raise; 0 raises the present one again"""
        self.emit("RAISE_VARARGS", count)

    def reraise(self, lasti_depth: int = 0) -> None:
        """exception -> raise, at the offset that lies `lasti_depth` below it, if that is not 0"""
        self.emit("RERAISE", lasti_depth)

    def push_exc_info(self) -> None:
        """exception -> the exception handled before, exception; it is now the one being handled

        Every way out of a handler must `pop_except`, also the ways that exceptions take; see `handler_end`.
        """
        self.emit("PUSH_EXC_INFO")

    def pop_except(self) -> None:
        """the exception handled before -> ; it is again the one being handled"""
        self.emit("POP_EXCEPT")

    def handler_end(self, cleanup: Label) -> None:
        """Place the label to which a handler's own range (with offset) leads: undo `push_exc_info`, go on."""
        self.place(cleanup)
        self.copy(3)
        self.pop_except()
        self.reraise(1)

    def check_exc_match(self) -> None:
        """exception, class -> exception, whether it matches"""
        self.emit("CHECK_EXC_MATCH")

    def before_with(self) -> None:
        """manager -> its bound ``__exit__``, what ``__enter__`` returned"""
        self.emit("BEFORE_WITH")

    def with_except_start(self) -> None:
        """exit, lasti, exception before, exception -> the same, result of calling exit"""
        self.emit("WITH_EXCEPT_START")

    # --- generators ----------------------------------------------------------------------------

    def generator_prologue(self, cells: Sequence[str] = (), free: Sequence[str] = ()) -> None:
        """As `prologue`, for code with the flag of a generator or coroutine."""
        if free:
            self.emit("COPY_FREE_VARS", tuple(free))
        for name in cells:
            self.emit("MAKE_CELL", name)
        self.emit("RETURN_GENERATOR")
        self.pop()
        self.emit("RESUME", 0)

    @abstractmethod
    def yield_value(self) -> None:
        """value -> what is sent in"""


def ordered_parts(parts: Sequence[str]) -> tuple[str, ...]:
    """`parts` of a function, which must be in stack order; raises ValueError if they are not."""
    ordered = tuple(part for part in FUNCTION_PARTS if part in parts)
    if ordered != tuple(parts):
        raise ValueError(f"parts of a function out of order: {tuple(parts)}")
    return ordered
