"""What is left to do of an instruction when a function that it called comes back to it.

The closed list of the ways in which an instruction ends behind a call that was cut: for each, where it leads,
and the code that does the rest. Errors come from CPython's own instructions where it has one for them; else
they are raised in the user's frame. Knows nothing of how a segment begins and leaves.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

from graphlift.bytecode.decode import Decoded
from graphlift.bytecode.instruction import Label
from graphlift.bytecode.verbs import Verbs
from graphlift.bytecode.versions import LAYOUT
from graphlift.codegen.originals import Original
from graphlift.codegen.shapes import BESIDE, PAIR, Exit, Shape, check_shape, handler_exits, leave, pushes_pair
from graphlift.operators import COMPARE_METHODS, REFLECTED_METHODS, SWAPPED


class Finish(NamedTuple):
    """What is left to do with what the function returned.

    Attributes:
        kind: a name in `_FINISH`.
        extra: how many values that needs; they are passed behind the frame's own.
    """

    kind: str
    extra: int = 0

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its values."""
        return tuple(f".extra{at}" for at in range(self.extra))


PUSH = Finish("push")

#: How many stack entries an instruction takes that are no longer needed when the function comes back.
_TAKEN = {
    "LOAD_ATTR": 1,
    "LOAD_METHOD": 1,
    "STORE_ATTR": 2,
    "DELETE_ATTR": 1,
    "BINARY_SUBSCR": 2,
    "BINARY_SLICE": 3,
    "STORE_SUBSCR": 3,
    "STORE_SLICE": 4,
    "DELETE_SUBSCR": 2,
    "BINARY_OP": 2,
    "COMPARE_OP": 2,
    "CONTAINS_OP": 2,
    "UNARY_NEGATIVE": 1,
    "UNARY_POSITIVE": 1,
    "UNARY_INVERT": 1,
    "UNARY_NOT": 1,
    "TO_BOOL": 1,
    "POP_JUMP_IF_TRUE": 1,
    "POP_JUMP_IF_FALSE": 1,
    "JUMP_IF_TRUE_OR_POP": 0,
    "JUMP_IF_FALSE_OR_POP": 0,
    "GET_ITER": 1,
    "FOR_ITER": 0,
    "BEFORE_WITH": 1,
    "WITH_EXCEPT_START": 0,
}

#: Instructions that leave nothing behind.
_LEAVES_NOTHING = frozenset({"STORE_ATTR", "DELETE_ATTR", "STORE_SUBSCR", "STORE_SLICE", "DELETE_SUBSCR"})


def operands_of(decoded: Decoded, index: int) -> int:
    """How many stack entries the step takes; KeyError if no function can be cut inside it."""
    step = decoded.step(index)
    beside = BESIDE.get(step.op)
    return _TAKEN[step.handlers[-1]] if beside is None else beside + int(step.operand)


def call_exits(original: Original, shape: Shape, operands: int, finish: Finish) -> list[Exit]:
    """The ways out of a step in whose place an inner segment is called.

    Arguments:
        operands: how many entries the step takes from above ``shape.stack``.
    """
    check_shape(original, shape, operands)
    decoded, index, bound = original.decoded, shape.index, set(shape.live)
    _, handlers, operand, _, _ = decoded.step(index)
    handler = handlers[-1]
    below = shape.stack
    jump = below
    if handler in _LEAVES_NOTHING or handler.startswith("POP_JUMP_IF_"):
        behind = below
    elif handler == "FOR_ITER":
        behind, jump = (*below, "value"), below[:-1]
    elif handler.endswith("_OR_POP"):
        behind = below[:-1]
    elif finish.kind == "enter":
        behind = (*below, "value", "value")
    else:
        behind = (*below, *(PAIR if pushes_pair(handler, operand) else ("value",)))
    exits = [leave("next", original, index + 1, bound, behind)]
    if decoded.jumps(index):
        exits.append(leave("jump", original, operand, bound, jump))
    return [*exits, *handler_exits(original, shape)]


class Rest:
    """Emits the rest of an instruction around the call of the inner segment.

    Arguments:
        emitter: where to; the frame's stack is in place.
        original, index: the step.
        finish: what is left to do.
        run: emits the call, which leaves the function's result.
        jump: where the instruction jumps to.
    """

    def __init__(
        self,
        emitter: Verbs,
        original: Original,
        index: int,
        finish: Finish,
        run: Callable[[], None],
        jump: Label,
    ) -> None:
        _, handlers, self._operand, _, _ = original.decoded.step(index)
        self._handler = handlers[-1]
        self._pair = pushes_pair(self._handler, self._operand)
        self._emitter = emitter
        self._finish = finish
        self._run = run
        self._jump = jump

    def emit(self) -> None:
        """Emit it all."""
        _FINISH[self._finish.kind](self)
        self._end()

    def _end(self) -> None:
        """What the instruction does with the value that is now on top."""
        emitter, handler = self._emitter, self._handler
        if handler in _LEAVES_NOTHING:
            emitter.pop()
        elif handler in ("POP_JUMP_IF_TRUE", "POP_JUMP_IF_FALSE"):
            emitter.conditional_jump("TRUE" if handler.endswith("TRUE") else "FALSE", self._jump)
        elif handler in ("JUMP_IF_TRUE_OR_POP", "JUMP_IF_FALSE_OR_POP"):
            emitter.conditional_jump("TRUE" if "TRUE" in handler else "FALSE", self._jump)
            emitter.pop()
        elif handler == "UNARY_NOT" or (handler == "CONTAINS_OP" and self._operand):
            emitter.emit("UNARY_NOT")
        elif handler == "COMPARE_OP" and self._operand[1]:
            emitter.to_bool()
        elif self._pair:
            emitter.push_null()
            if not LAYOUT.null_after_callable:
                emitter.swap(2)

    # --- one kind each -----------------------------------------------------------------------------

    def push(self) -> None:
        """The result is the value."""
        self._run()

    def instance(self) -> None:
        """``__init__``: the value is the object; anything but None is an error."""
        emitter, over = self._emitter, Label("initialised")
        self._run()
        emitter.copy(1)
        emitter.conditional_jump("NONE", over)
        self._raise(init_error)
        emitter.place(over)
        emitter.pop()
        emitter.load_fast(".extra0")

    def truth(self) -> None:
        """``__bool__``: anything but a bool is an error."""
        emitter, over = self._emitter, Label("is a bool")
        self._run()
        for known in (True, False):
            emitter.copy(1)
            emitter.load_const(known)
            emitter.is_()
            emitter.conditional_jump("TRUE", over)
        self._raise(bool_error)
        emitter.place(over)

    def truth_of(self) -> None:
        """``__contains__``: the value is the result's truth."""
        emitter = self._emitter
        self._run()
        emitter.unary("not")
        emitter.unary("not")

    def iterator(self) -> None:
        """``__iter__``: the result must be an iterator, which GET_ITER checks."""
        self._run()
        self._call(Iterable, 1)
        self._emitter.get_iter()

    def item(self) -> None:
        """``__next__``: a StopIteration is the end."""
        emitter = self._emitter

        def end() -> None:
            emitter.pop()
            emitter.pop_except()
            emitter.pop()
            emitter.jump(self._jump)

        self._catching(StopIteration, end, self._run)

    def enter(self) -> None:
        """``__enter__``: the bound ``__exit__`` goes below."""
        self._run()
        self._emitter.load_fast(".extra0")
        self._emitter.swap(2)

    def attribute(self) -> None:
        """``__getattr__`` or ``__getattribute__``: an AttributeError is told what was looked for."""
        self._telling(self._run)

    def _telling(self, run: Callable[[], None]) -> None:
        emitter = self._emitter

        def tell() -> None:
            emitter.load_fast(".extra0")
            emitter.load_const(self._operand[0])
            self._call(tell_attribute, 3)

        self._catching(AttributeError, tell, run)

    def getter(self) -> None:
        """A property or descriptor: as `attribute`, unless it was to be called at once."""
        if self._pair:
            self._run()
        else:
            self.attribute()

    def fallback(self) -> None:
        """What comes before ``__getattr__``, which is called after an AttributeError."""
        emitter, found = self._emitter, Label("found")

        def fall_back() -> None:
            emitter.pop()
            emitter.pop_except()
            emitter.prepare_call()
            emitter.load_fast(".extra1")
            emitter.callable_ready()
            emitter.load_const(self._operand[0])
            emitter.call(1)
            emitter.jump(found)

        self._telling(lambda: self._catching(AttributeError, fall_back, self._run, found))

    def binary(self) -> None:
        """A method of an operator: after NotImplemented the reflected one of the right operand is asked."""
        self._run()
        self._ask_right(reflected)

    def compare(self) -> None:
        """A method of a comparison: as `binary`; equality is identity where nobody answers."""
        self._run()
        self._ask_right(swapped)

    def _ask_right(self, find: Callable[[str, object, object], Any]) -> None:
        emitter, symbol, done = self._emitter, self._operand[0], Label("answered")
        self._jump_if_answered(done)
        emitter.load_const(symbol)
        emitter.load_fast(".extra0")
        emitter.load_fast(".extra1")
        self._call(find, 3)
        emitter.load_fast(".extra0")
        emitter.call_on_stack(1)
        self._jump_if_answered(done)
        emitter.load_fast(".extra0")
        emitter.load_fast(".extra1")
        if find is swapped and symbol in ("==", "!="):
            emitter.is_(symbol == "!=")
        else:
            emitter.load_const(symbol)
            self._call(no_operator if find is reflected else no_comparison, 3)
            emitter.raise_()
        emitter.place(done)

    def _jump_if_answered(self, done: Label) -> None:
        """Jump with the top unless it is NotImplemented, which is dropped."""
        emitter = self._emitter
        emitter.copy(1)
        emitter.load_const(NotImplemented)
        emitter.is_()
        emitter.conditional_jump("FALSE", done)
        emitter.pop()

    # --- parts -------------------------------------------------------------------------------------

    def _call(self, function: Any, count: int) -> None:
        """``function`` of the top values, which may not fail."""
        emitter = self._emitter
        emitter.load_const(function)
        emitter.rotate_down(count + 1)
        emitter.call_on_stack(count)

    def _raise(self, error: Callable[[Any], BaseException]) -> None:
        """Raise the error that `error` makes of the top."""
        self._call(error, 1)
        self._emitter.raise_()

    def _catching(
        self,
        kind: type[BaseException],
        handle: Callable[[], None],
        run: Callable[[], None],
        done: Label | None = None,
    ) -> None:
        """Run; an exception of a `kind` is on top for `handle`, which leaves one value or jumps away.

        Arguments:
            done: where `run` goes on to; placed here.
        """
        emitter = self._emitter
        failed, other, done = Label("failed"), Label("another exception"), done or Label("done")
        with emitter.protected(failed):
            run()
        emitter.jump(done)
        emitter.place(failed)
        emitter.push_exc_info()
        emitter.load_const(kind)
        emitter.check_exc_match()
        emitter.pop_jump_if(other, False)
        handle()
        emitter.place(other)
        emitter.swap(2)
        emitter.pop_except()
        emitter.reraise()
        emitter.place(done)


_FINISH: dict[str, Callable[[Rest], None]] = {
    "push": Rest.push,
    "discard": Rest.push,
    "instance": Rest.instance,
    "truth": Rest.truth,
    "truth_of": Rest.truth_of,
    "iterator": Rest.iterator,
    "item": Rest.item,
    "enter": Rest.enter,
    "attribute": Rest.attribute,
    "getter": Rest.getter,
    "fallback": Rest.fallback,
    "binary": Rest.binary,
    "compare": Rest.compare,
}


# --- in the compiled program ------------------------------------------------------------------------


def init_error(result: object) -> TypeError:
    """What is raised when ``__init__`` returned something."""
    return TypeError(f"__init__() should return None, not '{type(result).__name__}'")


def bool_error(result: object) -> TypeError:
    """What is raised when ``__bool__`` returned no bool."""
    return TypeError(f"__bool__ should return bool, returned {type(result).__name__}")


class Iterable:
    """Its iterator is what it was made with, found without a Python frame."""

    __slots__ = ("__iter__",)

    def __init__(self, iterator: object) -> None:
        self.__iter__ = itertools.repeat(iterator).__next__


def tell_attribute(error: AttributeError, owner: object, name: str) -> AttributeError:
    """Note in an AttributeError what was looked for, as CPython does where nothing is noted yet."""
    fields = AttributeError.__dict__
    if fields["name"].__get__(error) is None and fields["obj"].__get__(error) is None:
        fields["name"].__set__(error, name)
        fields["obj"].__set__(error, owner)
    return error


def reflected(symbol: str, left: object, right: object) -> Any:
    """The reflected method of a binary operator, bound; what answers NotImplemented if it is not asked."""
    return _no_answer if type(left) is type(right) else _special(right, REFLECTED_METHODS[symbol])


def _no_answer(left: object) -> Any:
    return NotImplemented


def swapped(symbol: str, left: object, right: object) -> Any:
    """The method by which the right operand of a comparison is asked, bound."""
    return _special(right, COMPARE_METHODS[SWAPPED[symbol]])


def _special(owner: object, name: str) -> Any:
    cls = type(owner)
    for base in type.__dict__["__mro__"].__get__(cls):
        namespace = type.__dict__["__dict__"].__get__(base)
        if name in namespace:
            found = namespace[name]
            return found.__get__(owner, cls) if hasattr(type(found), "__get__") else found
    return _no_answer


def no_operator(left: object, right: object, symbol: str) -> TypeError:
    """What is raised when no operand answered."""
    shown = "** or pow()" if symbol == "**" else symbol
    names = f"'{type(left).__name__}' and '{type(right).__name__}'"
    return TypeError(f"unsupported operand type(s) for {shown}: {names}")


def no_comparison(left: object, right: object, symbol: str) -> TypeError:
    """What is raised when neither side of a comparison answered."""
    names = f"'{type(left).__name__}' and '{type(right).__name__}'"
    return TypeError(f"'{symbol}' not supported between instances of {names}")
