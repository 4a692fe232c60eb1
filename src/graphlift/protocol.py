"""What the layers above promise to those below: the translator, the tracker, the makers, the emitter.

Trackers (`variables/`) are written against these classes and never import the interpreter, the graph
or the code generator.
"""

from __future__ import annotations

import builtins
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import CodeType
from typing import Any, ClassVar, Literal, NoReturn

from graphlift.heap import Handle, Heap
from graphlift.reasons import Reason
from graphlift.sources import Source

#: Where an operation stands in the user's program: code, byte offset, and the caller's place.
Where = tuple[CodeType, int, "Where | None"]


class Var:
    """A Python value during a capture, known in one particular way (see `variables/base.py`)."""

    __slots__ = ("source",)

    source: Source | None

    #: ``name_hint(tx, name)``: the program stored the value under that name; None where nobody minds.
    name_hint: Any = None

    def realize(self, tx: Tx) -> Any:
        """The tracker of the value's own kind, a `variables.base.VariableTracker`."""
        raise NotImplementedError

    def whole(self) -> Var:
        """The tracker of the object that exists at run time: itself, or that of the object of a derived class
        whose builtin part this is."""
        return self


class Codegen(ABC):
    """Emits the code that makes values real after the graph ran. All verbs leave one value on the stack
    unless they say otherwise."""

    @abstractmethod
    def __call__(self, var: Var) -> None:
        """Make `var` real: from the graph's results, from its source, or by building it (once)."""

    @abstractmethod
    def load_const(self, value: object) -> None:
        """Load a constant that a code object may hold (never an object of the user's)."""

    @abstractmethod
    def load_source(self, source: Source) -> None:
        """Load what is at a source."""

    @abstractmethod
    def load_object(self, value: object) -> None:
        """Load a process-wide object (a function of graphlift, torch or the standard library, a type)."""

    @abstractmethod
    def load_graph_output(self, value: object) -> None:
        """Load a `GraphValue` or `SymValue` that the graph computes; it becomes an output."""

    @abstractmethod
    def load_attr(self, name: str) -> None:
        """Replace the top of the stack by its attribute."""

    @abstractmethod
    def set_attr(self, owner: Var, name: str, value: Var) -> None:
        """``owner.name = value``; leaves nothing on the stack."""

    @abstractmethod
    def set_item(self, owner: Var, key: Var, value: Var) -> None:
        """``owner[key] = value``; leaves nothing on the stack."""

    @abstractmethod
    def run(self, function: object, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> None:
        """As `call`, but the result is dropped; leaves nothing on the stack."""

    @abstractmethod
    def call(self, function: object, args: Sequence[Var], kwargs: Mapping[str, Var] | None = None) -> None:
        """Call a process-wide function with the values of trackers."""

    @abstractmethod
    def standing_at(self, where: Where) -> AbstractContextManager[None]:
        """Show what is emitted meanwhile at a place of the user's, if that lies in the frame itself."""

    @abstractmethod
    def build(self, kind: Literal["tuple", "list", "set", "map", "slice", "string"], count: int) -> None:
        """Build a container from the topmost `count` values (2 * count for a map)."""

    @abstractmethod
    def later(self, fill: Callable[[], None]) -> None:
        """Run `fill` (which emits code and leaves the stack as it was) when the object now being built
        exists: for objects that may contain themselves."""

    @abstractmethod
    def filled(self, var: Var) -> None:
        """Make `var` real together with its contents, ahead of `later`; leaves nothing on the stack.

        Raises:
            Unsupported: the contents lead back to an object that is just being built.
        """

    @abstractmethod
    def at_last(self, place: Callable[[], None]) -> None:
        """Run `place` (which emits code and leaves the stack as it was) when all objects are filled and all
        side effects done: for iterators, whose place in a sequence depends on how long that is by then."""


class Make(ABC):
    """Makers of trackers; another file's tracker is made only through these.

    Each is filled in by the file that owns the class (see `variables/builder.py: maker`).
    """

    @abstractmethod
    def from_value(self, value: object, source: Source | None) -> Var:
        """The tracker of an existing object, guarded as its kind demands; the same for the same object.

        Without a source only constants, process-wide objects (functions, classes, modules of installed
        packages) and objects already met are accepted.
        """

    @abstractmethod
    def lazy(self, value: object, source: Source) -> Var:
        """As `from_value`, but put off until something is asked of it."""

    @abstractmethod
    def constant(self, value: object) -> Var:
        """A Python constant."""

    @abstractmethod
    def list(self, items: Sequence[Var], cls: type = list) -> Var:
        """A list made by the program."""

    @abstractmethod
    def tuple(self, items: Sequence[Var], cls: type = tuple) -> Var:
        """A tuple (or named tuple, `torch.Size`) made by the program."""

    @abstractmethod
    def dict(self, entries: Sequence[builtins.tuple[Var, Var]], cls: type = dict) -> Var:
        """A dictionary made by the program."""

    @abstractmethod
    def namespace_dict(self, handle: Handle, owner: Var) -> Var:
        """The dictionary whose handle this is: the ``__dict__`` of `owner` as a value."""

    @abstractmethod
    def derived(self, cls: Var) -> Var:
        """An empty object of a class derived from a builtin container; nothing of the class's is run."""

    @abstractmethod
    def set(self, items: Sequence[Var], cls: type = set) -> Var:
        """A set or frozenset made by the program."""

    @abstractmethod
    def slice(self, start: Var, stop: Var, step: Var) -> Var:
        """A slice object."""

    @abstractmethod
    def function(
        self,
        code: CodeType,
        module_globals: Handle,
        *,
        name: str | None = None,
        qualname: str | None = None,
        defaults: Sequence[Var] = (),
        kwdefaults: Mapping[str, Var] | None = None,
        closure: Sequence[Handle] = (),
        annotations: Sequence[Var] = (),
    ) -> Var:
        """A function made by the program (``MAKE_FUNCTION``).

        `annotations` are names and values in turn, as CPython hands them over.
        """

    @abstractmethod
    def bound_method(self, function: Var, instance: Var) -> Var:
        """A bound method."""

    @abstractmethod
    def builtin_method(self, name: str, instance: Var, owner: type | None = None) -> Var:
        """A method of a builtin type bound to a tracker that models it by `call_method`.

        Arguments:
            owner: the C class whose class method it is.
        """

    @abstractmethod
    def exception(self, cls: type[BaseException], args: Sequence[Var]) -> Var:
        """An instance of a builtin exception class."""

    @abstractmethod
    def instance(self, cls: Var) -> Var:
        """A fresh instance of a user's class, its ``__init__`` not yet run."""

    @abstractmethod
    def iterator(self, items: Sequence[Var], text: str | bytes | None = None) -> Var:
        """An iterator over trackers that are known already; `text`: they are its parts."""

    @abstractmethod
    def sequence_iterator(self, sequence: Var) -> Var:
        """What ``iter()`` gives for an object that has ``__getitem__`` only."""

    @abstractmethod
    def generator(self, frame: Any) -> Var:
        """A suspended frame of a generator function called by the program."""

    @abstractmethod
    def symbol(self, number: float, source: Source) -> Var:
        """A number of the program that is not fixed by the capture."""

    @abstractmethod
    def graph_result(self, result: object) -> Var:
        """Trackers for what `Graph.call` returned: tensors, symbolic numbers, constants, tuples of these."""


class Tx(ABC):
    """The translator of one frame, as trackers and slots see it.

    Attributes:
        operation: what the present instruction does, as (name of the special method, operand), while nothing
            else was done for it; None: there is more to do than that, or nobody asks (see `takes`).
    """

    operation: tuple[str, Any] | None
    heap: Heap
    make: Make
    #: The capture's `OutputGraph` (layer 6); trackers of tensors know its type by convention.
    graph: Any
    #: The capture's settings and shared state (layer 7).
    capture: Any
    #: Instances of `Var` read from the program's state, one consistent snapshot per capture.
    reads: dict[tuple[int, Hashable], Any]
    #: Set by handlers that go on after calling user code in a way that cannot be resumed.
    settings: ClassVar[Any]

    @abstractmethod
    def guard(self, kind: str, source: Source, *payload: object) -> None:
        """Assume something about `source`; `kind` names a guard kind, `payload` is what must hold.

        The user's present line is kept as the reason. Repeating a guard costs a dictionary look-up.
        """

    @abstractmethod
    def present(self, source: Source) -> None:
        """Assume that something is at `source`; to be called once a place."""

    @abstractmethod
    def where(self) -> Where:
        """The present place in the user's program."""

    @abstractmethod
    def inline(
        self,
        function: Var,
        code: CodeType,
        bound: dict[str, Var],
        closure: Sequence[Handle],
        module_globals: Handle,
    ) -> Var:
        """Run a Python function's code on trackers and give what it returns (a generator object for
        generator functions). `bound` maps each parameter to its value."""

    @abstractmethod
    def run_body(self, code: CodeType, names: Var, closure: Sequence[Handle], module_globals: Handle) -> Var:
        """Run the body of a class with a mapping for its names; gives what it returns, the cell of
        ``__class__`` or None."""

    @abstractmethod
    def resume_generator(self, frame: Any, sent: Var | None, error: Var | None = None) -> tuple[bool, Var]:
        """Run a suspended frame on: send a value in, or throw `error`. Returns (True, yielded) or
        (False, return value)."""

    @abstractmethod
    def takes(self, name: str, operand: Var) -> bool:
        """Whether the special method `name` of `operand` is what the present instruction consists of.

        True once at most for each instruction, and only where the graph may be cut (see `last_call`).
        """

    @abstractmethod
    def last_call(self, function: Var, finish: str = "push", *values: Var) -> None:
        """Announce: the call of `function` that comes now is the last thing the instruction does, but for a
        `finish` (see `codegen.continuations`), which needs `values`. The graph can be cut inside."""

    @abstractmethod
    def run_host(
        self, function: Callable[..., Any], args: Sequence[Var], kwargs: Mapping[str, Var] | None = None
    ) -> Var:
        """Inline a polyfill: a plain Python function of graphlift's that stands for C code."""

    @abstractmethod
    def globals_handle(
        self, module_globals: dict[str, object], source: Source | None, otherwise: Source | None = None
    ) -> Handle:
        """The handle of a namespace of global names.

        Arguments:
            source: where it is; None: it is that of a loaded module, found by its name.
            otherwise: where it is if it is no loaded module's.
        """

    @abstractmethod
    def look_up_once(self, key: tuple[Any, ...], look_up: Callable[[], Any]) -> Any:
        """What `look_up` gives, which is determined by `key` and by what it looks into; or what it gave under
        the same key before, where it would do nothing else again."""

    @abstractmethod
    def is_watched(self) -> bool:
        """Whether a handler of the program stands around this point, so that it could tell whether something
        failed here or later; the end of a ``with`` that only puts torch's state back is none."""

    @abstractmethod
    def handled_exception(self) -> Var | None:
        """The exception that the program is handling at this point (``sys.exception()``), or None."""

    @abstractmethod
    def recorded(self, index: int) -> None:
        """An operation that writes or can fail was recorded; breaks if it could fail too late."""

    @abstractmethod
    def fail(self, reason: Reason, context: str = "") -> NoReturn:
        """Break here: raise `Unsupported`."""

    @abstractmethod
    def raise_(self, cls: type[BaseException], *args: object) -> NoReturn:
        """Raise a builtin exception in the user's program; `args` are constants or trackers."""

    @abstractmethod
    def raise_real(self, error: BaseException) -> NoReturn:
        """Raise in the user's program what a real operation on constants raised here."""
