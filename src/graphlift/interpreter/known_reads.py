"""Attributes that a ``__getattribute__`` of the program's looked up, and would look up to the same again.

Configurations of model libraries do that for every attribute, and are asked for the same few all the time.
What such a look-up gave is kept for the rest of the capture where all of it was reading: it wrote nothing,
recorded nothing, and looked only into existing objects, dictionaries and cells that the program has not
written to. While none of these is written to, it would give the same object again.

Owns which steps a look-up may consist of. They are told by name; whatever is not named here, or meets
something else than it is for, makes the look-up one that has to be run each time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from graphlift import _C, events
from graphlift.bytecode import versions
from graphlift.bytecode.by_code import ByCode
from graphlift.bytecode.opcodes import Row
from graphlift.guards.holding import is_static_type
from graphlift.heap import Handle
from graphlift.interpreter.dispatch import Handler, Translator
from graphlift.interpreter.frame_state import NULL
from graphlift.protocol import Var
from graphlift.variables.c_methods import BuiltinMethodVariable
from graphlift.variables.cells import CellVariable
from graphlift.variables.classes import ClassVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.functions import FunctionVariable
from graphlift.variables.mappings import DictVariable
from graphlift.variables.methods import BoundMethodVariable
from graphlift.variables.slots.type_lookup import classes_written, mro_of
from graphlift.variables.super_ import SuperVariable
from graphlift.variables.user_defined import UserDefinedObject

Step = tuple[Handler, Any, int]


class Looking:
    """A look-up while it is run.

    Attributes:
        rests_on: the objects that it looked into.
        called: functions that it called, whose frames have not begun yet: one that never does has a model.
        pure: whether it was nothing but reading so far.
    """

    __slots__ = ("called", "pure", "rests_on")

    def __init__(self) -> None:
        self.rests_on: Final[dict[Handle, None]] = {}
        self.called: Final[set[Any]] = set()
        self.pure = True


class KnownReads:
    """What look-ups of a capture gave.

    Attributes:
        looking: the look-up that is being run, if it may turn out to be one to be kept.
    """

    def __init__(self) -> None:
        self.looking: Looking | None = None
        self._known: dict[tuple[Any, ...], tuple[Var, tuple[Handle, ...]]] = {}

    def get(self, tx: Any, key: tuple[Any, ...], look_up: Callable[[], Var]) -> Var:
        """See `protocol.Tx.look_up_once`."""
        found = self._known.get(key)
        if found is not None and all(map(_is_as_it_was, found[1])) and not classes_written(tx):
            if self.looking is not None:
                self.looking.rests_on.update(dict.fromkeys(found[1]))
            return found[0]
        if self.looking is not None or tx.capture.careful or events.listening(events.Step):
            return look_up()
        heap, graph = tx.heap, tx.graph
        before = (heap.mark(), graph.mark())
        looking = self.looking = Looking()
        try:
            value = look_up()
        finally:
            self.looking = None
        pure = looking.pure and not looking.called and not classes_written(tx)
        is_existing = getattr(value, "source", None) is not None  # and so not made just now
        if pure and is_existing and (heap.mark(), graph.mark()) == before:
            self._known[key] = (value, tuple(looking.rests_on))
        return value

    def clear(self) -> None:
        """Forget everything: the capture is over."""
        self._known.clear()


def _is_as_it_was(handle: Handle) -> bool:
    if handle.dirty:
        return False
    own, slots = handle.namespace, handle.slots
    return (own is None or not own.dirty) and (slots is None or not slots.dirty)


# --- the steps of a look-up --------------------------------------------------------------------------------

#: Steps that look at nothing but the frame.
_FREE: Final = frozenset({
    "NOP", "RESUME", "COPY_FREE_VARS", "LOAD_FAST", "LOAD_FAST_CHECK", "LOAD_CONST", "STORE_FAST", "POP_TOP",
    "COPY", "SWAP", "PUSH_NULL", "PRECALL", "JUMP_FORWARD", "POP_JUMP_IF_NONE", "POP_JUMP_IF_NOT_NONE",
    "IS_OP", "RETURN_VALUE", "RETURN_CONST",
})  # fmt: skip

#: Whether a step, about to be taken, only reads; it notes into what.
Check = Callable[[Any, Any, Looking], bool]

_CHECKS: Final[dict[str, Check]] = {}


def _check(*names: str) -> Callable[[Check], Check]:
    def register(check: Check) -> Check:
        for name in names:
            _CHECKS[name] = check
        return check

    return register


def _rests_on(looking: Looking, handle: Handle) -> bool:
    """Note an object; False where the program made it or wrote to it."""
    looking.rests_on[handle] = None
    return handle.real is not None and _is_as_it_was(handle)


def _is_plain_object(tx: Any, looking: Looking, value: Any) -> bool:
    """Whether it is an existing object of a class written in Python alone, with names for attributes."""
    if type(value) is not UserDefinedObject or value.storage is not None:
        return False
    if not _rests_on(looking, value.handle):
        return False
    own = value.instance_dict(tx)
    if own is not None and not (type(own.real) is dict and _C.has_only_strings(own.real)):
        return False
    return all(base is object or not is_static_type(base) for base in mro_of(value.cls))


def _is_plain_dict(looking: Looking, value: Any) -> bool:
    if not isinstance(value, DictVariable):
        return False
    real = value.handle.real
    return _rests_on(looking, value.handle) and type(real) is dict and _C.has_only_strings(real)


def _is_name(value: Any) -> bool:
    return type(value) is ConstantVariable and type(value.value) is str


def _reads_attribute(tx: Any, looking: Looking, owner: Any, name: str) -> bool:
    if type(owner) is SuperVariable:
        owner = owner.instance.realize(tx)
    elif isinstance(owner, DictVariable):
        return name == "get" and _is_plain_dict(looking, owner)
    return name != "__weakref__" and _is_plain_object(tx, looking, owner)


@_check("LOAD_ATTR")
def _load_attr(tx: Translator, operand: tuple[str, bool], looking: Looking) -> bool:
    return _reads_attribute(tx, looking, tx.stack[-1].realize(tx), operand[0])


@_check("LOAD_SUPER_ATTR")
def _load_super_attr(tx: Translator, operand: tuple[str, bool, bool], looking: Looking) -> bool:
    function = tx.stack[-3].realize(tx)
    return (
        isinstance(function, ClassVariable)
        and function.value is super
        and _reads_attribute(tx, looking, tx.stack[-1].realize(tx), operand[0])
    )


@_check("LOAD_GLOBAL")
def _load_global(tx: Translator, operand: Any, looking: Looking) -> bool:
    return _rests_on(looking, tx.frame.module_globals) and _rests_on(looking, tx.builtins_handle())


@_check("LOAD_DEREF")
def _load_deref(tx: Translator, name: str, looking: Looking) -> bool:
    cell = tx.symbolic_locals.get(name)
    return isinstance(cell, CellVariable) and _rests_on(looking, cell.handle)


@_check("CONTAINS_OP")
def _contains(tx: Translator, operand: Any, looking: Looking) -> bool:
    return _is_name(tx.stack[-2].realize(tx)) and _is_plain_dict(looking, tx.stack[-1].realize(tx))


@_check("BINARY_SUBSCR")
def _subscript(tx: Translator, operand: Any, looking: Looking) -> bool:
    return _is_name(tx.stack[-1].realize(tx)) and _is_plain_dict(looking, tx.stack[-2].realize(tx))


@_check("COMPARE_OP")
def _compare(tx: Translator, operand: Any, looking: Looking) -> bool:
    return all(type(value.realize(tx)) is ConstantVariable for value in tx.stack[-2:])


@_check("POP_JUMP_IF_FALSE", "POP_JUMP_IF_TRUE", "TO_BOOL", "UNARY_NOT")
def _branch(tx: Translator, operand: Any, looking: Looking) -> bool:
    return type(tx.stack[-1].realize(tx)) is ConstantVariable


@_check("CALL")
def _call(tx: Translator, count: int, looking: Looking) -> bool:
    if tx.frame.keyword_names:
        return False
    stack = tx.stack
    args = [value.realize(tx) for value in stack[len(stack) - count :]]
    first, second = stack[-count - 2], stack[-count - 1]
    if first is NULL:
        function = second
    elif second is NULL:
        function = first
    else:
        return False
    function = function.realize(tx)
    if isinstance(function, ClassVariable):
        return function.value is super and not args and _implied(tx, looking)
    if isinstance(function, BuiltinMethodVariable):
        owner = function.instance.realize(tx)
        if not args or not _is_name(args[0]):
            return False
        if isinstance(owner, DictVariable):
            return function.name == "get" and _is_plain_dict(looking, owner)
        by_object = function.name == "__getattribute__" and len(args) == 1
        return by_object and _reads_attribute(tx, looking, owner, args[0].value)
    if isinstance(function, BoundMethodVariable):
        function = function.function.realize(tx)
    if not isinstance(function, FunctionVariable):
        return False
    looking.called.add(function)  # the rest is asked at its beginning
    return True


def _implied(tx: Translator, looking: Looking) -> bool:
    """What ``super()`` takes from its frame."""
    if not tx.code.co_argcount:
        return False
    cell = tx.symbolic_locals.get("__class__")
    if not isinstance(cell, CellVariable) or not _rests_on(looking, cell.handle):
        return False
    first: Any = tx.symbolic_locals.get(tx.code.co_varnames[0])
    return first is not None and _is_plain_object(tx, looking, first.realize(tx))


def _begins(tx: Any, looking: Looking) -> bool:
    """Whether the frame is that of an existing function with nothing of its own that a call would read."""
    function = tx.function
    if not isinstance(function, FunctionVariable) or function.real is None:
        return False
    looking.called.discard(function)
    real = function.real
    plain = real.__code__ is tx.code and real.__defaults__ is None and real.__kwdefaults__ is None
    return plain and _rests_on(looking, function.handle)


# --- running them ------------------------------------------------------------------------------------------

_watched: Final[ByCode[list[Step]]] = ByCode()


def steps_of(tx: Any, looking: Looking, steps: list[Step]) -> list[Step]:
    """The steps of a frame that begins during a look-up, each checked before it is taken."""
    if not looking.pure:
        return steps
    if tx.frame.ip or not _begins(tx, looking):
        looking.pure = False
        return steps
    made = _watched.get(tx.code)
    if made is None:
        numbers = tx.frame.decoded.numbers
        made = [_watch(versions.ROWS[number], step) for number, step in zip(numbers, steps, strict=True)]
        _watched[tx.code] = made
    return made


def _watch(row: Row | None, step: Step) -> Step:
    names: tuple[str, ...] = () if row is None else row.handlers
    if names and _FREE.issuperset(names):
        return step
    check = _CHECKS.get(names[0]) if len(names) == 1 else None
    handler, operand, behind = step

    def run(tx: Any, operand: Any) -> int | None:
        looking = tx.capture.known_reads.looking
        if looking is not None and looking.pure and (check is None or not check(tx, operand, looking)):
            looking.pure = False
        return handler(tx, operand)

    return (run, operand, behind)
