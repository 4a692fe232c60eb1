"""The registry of opcode handlers, and the translator as handlers see it.

A handler is a function named like its opcode, called with the translator and the ready operand. It returns
None to go on with the next step, the index of a step to jump to, or one of the negative words below.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any, ClassVar, Final, NoReturn

from graphlift.heap import Handle
from graphlift.interpreter.frame_state import FrameState
from graphlift.protocol import Tx, Var

Handler = Callable[[Any, Any], "int | None"]


class Translator(Tx):
    """The translator of one frame, as handlers see it.

    Attributes:
        frame: the frame's state; `code`, `stack` and `symbolic_locals` are short for its parts.
        result: what a handler returned or yielded.
        bare_function: the function that MAKE_FUNCTION just made, its code and the parts given to it.
        null_before_callable: whether a call's NULL lies below the callable.
        send_keeps_receiver: whether a finished SEND leaves the receiver below the value.
    """

    frame: FrameState
    code: CodeType
    stack: list[Any]
    symbolic_locals: dict[str, Any]
    result: Any
    bare_function: tuple[Var, CodeType, dict[str, Var]] | None
    null_before_callable: ClassVar[bool]
    send_keeps_receiver: ClassVar[bool]

    @abstractmethod
    def offset(self) -> int:
        """Byte offset of the present instruction."""

    @abstractmethod
    def code_constant(self, value: object) -> Var:
        """The tracker of an entry of ``co_consts``."""

    @abstractmethod
    def call(self, function: Var, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> Var:
        """Call a tracker."""

    @abstractmethod
    def keyword_arguments(self, mapping: Var) -> dict[str, Var]:
        """The items of a dictionary that stands for ``**kwargs``; its keys must be known strings."""

    @abstractmethod
    def callable_name(self, function: Var) -> str:
        """The name of a callable as error messages give it."""

    @abstractmethod
    def named(self, value: Var, name: str) -> None:
        """The program stored `value` under `name`."""

    @abstractmethod
    def missing(self, what: str) -> NoReturn:
        """Break: an opcode whose work is not modelled."""

    @abstractmethod
    def builtins_handle(self) -> Handle:
        """The namespace in which names are looked up that the frame's globals lack."""

    @abstractmethod
    def turn(self) -> None:
        """The program jumps back: a turn of a loop is done."""

    @abstractmethod
    def entering(self, leave: Var) -> None:
        """A ``with`` block begins that will be left by calling `leave`."""

    @abstractmethod
    def handled_exception(self) -> Var | None:
        """The exception being handled at this point of the program, or None."""

    @abstractmethod
    def raise_var(self, value: Var) -> NoReturn:
        """Raise an exception instance; what is being handled becomes its ``__context__``."""

    @abstractmethod
    def suspend(self) -> FrameState:
        """The frame as it stands now, for a generator object."""

    @abstractmethod
    def reraise(self, value: Var) -> NoReturn:
        """Let an exception go on as it is."""


#: The frame is done; its value is in `tx.result`.
RETURNED: Final = -1
#: The frame is suspended; what it yields is in `tx.result`.
YIELDED: Final = -2

HANDLERS: dict[str, Handler] = {}


def handler(function: Handler) -> Handler:
    """Enter `function` as the handler of the opcode it is named after.

    Raises:
        ValueError: there is one already.
    """
    name = function.__name__
    if name in HANDLERS:
        raise ValueError(f"two handlers for {name}")
    HANDLERS[name] = function
    return function


def family(*names: str) -> Callable[[Callable[[str], Handler]], Callable[[str], Handler]]:
    """Enter a handler for each of `names`, made by the decorated function from the name."""

    def register(make: Callable[[str], Handler]) -> Callable[[str], Handler]:
        for name in names:
            made = make(name)
            made.__name__ = made.__qualname__ = name
            handler(made)
        return make

    return register
