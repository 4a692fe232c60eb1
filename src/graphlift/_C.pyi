"""The C core, as the rest of graphlift sees it."""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType, NotImplementedType
from typing import Any, final

# --- eval_frame.c ------------------------------------------------------------------------------

def set_frame_callback(
    callback: Callable[[CodeType, FunctionType, dict[str, Any]], CodeType | None] | None,
) -> Callable[[CodeType, FunctionType, dict[str, Any]], CodeType | None] | None:
    """Set the calling thread's Python frame evaluator (None: remove it); returns the former one.

    Asked about every function frame that starts on this thread, except generators', with the arguments
    by name. Code that it returns runs in the frame's place and must keep its argument layout and free
    variables (else ValueError in the frame's caller).
    """

def set_frame_handler(
    handler: Callable[[object, FunctionType, tuple[Any, ...]], Entry | NotImplementedType | None] | None,
) -> None:
    """Set what is asked about a hooked frame that no cache entry fits (process-wide).

    Called as ``handler(context, function, params)`` with the hook off and compiled functions running
    plainly; `context` is the one of the compiled call in which the frame runs. It answers with an Entry
    (which it has added to the cache itself, if it is to be kept), with None, which leaves the frame to
    CPython and sets `Cache.skip`, or with NotImplemented, which leaves it this once, with all that runs in
    it. What it raises is raised in the frame's caller.
    """

def hook_depth() -> int:
    """How many reasons there are now to have the hook installed: hooked threads, frame callbacks."""

def hook_installed() -> bool:
    """Whether CPython's evaluator pointer is ours at this moment."""

def set_review_handler(
    handler: Callable[[object, FunctionType, Entry], object] | None,
) -> Callable[[object, FunctionType, Entry], object] | None:
    """Set what is asked about an entry that has been hit `Entry.review_at` times (process-wide).

    Called as ``handler(context, function, entry)`` like the frame handler, just before the entry runs;
    `Entry.review_at` has been put out of reach. What it raises is only reported. Returns the former.
    """

def mark_skip(code: CodeType, skip: bool = True) -> None:
    """Tell the hook to pass this code object through without asking."""

# --- collector.c --------------------------------------------------------------------------------

def young_objects() -> int:
    """Objects made since the last garbage collection, less those that are gone: ``gc.get_count()[0]``."""

def set_young_objects(count: int, /) -> None:
    """Count from there on to the next collection of young objects. Raises ValueError for a negative count."""

# --- classes.c ----------------------------------------------------------------------------------

def set_metaclass(cls: type, meta: type, /) -> None:
    """Make a class an instance of a base of its metaclass (`type`, too) that is laid out alike.

    Raises a TypeError for any other metaclass. The class keeps its order of look-ups; setting ``__bases__``
    works it out anew.
    """

def item_slots(cls: type, /) -> tuple[bool, bool, bool]:
    """What a class has in C for storing items: `mp_ass_subscript`, `tp_as_sequence`, `sq_ass_item`."""

def new_slot(cls: type, /) -> int:
    """The address of the C function by which a class makes its objects (`tp_new`)."""

def has_only_strings(table: type | dict[Any, Any], /) -> bool:
    """Whether a dict, or the tables of names of a class and its bases, are known to have exact strings for
    keys only, so that a look-up compares by no code of the user's."""

def looks_up_generically(method: object, /) -> bool:
    """Whether a `__getattribute__` of a class in C does what that of object does."""

def is_read_only(descriptor: object, /) -> bool:
    """Whether a member descriptor refuses to be set."""

def hide_subclass(cls: type, /) -> None:
    """Take a class off what ``__subclasses__()`` of its bases gives; they no longer tell it of changes."""

# --- regions.c ----------------------------------------------------------------------------------

def plain_call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call with the hook off and compiled functions running plainly on this thread."""

def call_on_top(function: Callable[[], Any], /) -> Any:
    """Call a function as if nobody called it: ``f_back`` of its frame is None, for good."""

def call_hooked(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call with the hook on, under the context and settings of the compiled call that runs.

    For emitted code, around what may reach further frames worth capturing. Outside a compiled call, and
    where compiled functions run plainly, it is a plain call. A Python function whose calls led to no
    capture and hit no entry four times in a row is called without the hook for the next 1, 2, 4, … calls.
    """

def forget_quiet_counts(code: CodeType) -> None:
    """Let `call_hooked` look at every call of this code object again."""

# --- entry.c, code_cache.c ------------------------------------------------------------------------------

@final
class Entry:
    """What one capture made: guards, and the code to run when they hold.

    `function` takes the flat parameters of the code (``*args`` and ``**kwargs`` as one tuple and one
    dict each), behind a leading binding argument when `guards` has outputs. None means: run the
    original, hook on (a frame that could not be captured under these guards).
    `swap_code` is the same for a hooked frame: the parameters keep the original's layout, free variables
    stay, and the binding is the first local after them, which must not be a cell. Where it is None, or
    cannot be put in the frame, `function` is called in the frame's place.
    An entry that is not valid is passed over, and taken out of its cache before the next capture.
    When `hits` has reached `review_at` the review handler is asked about it. `worthwhile` says whether a hook
    that led to no more than this entry has led to something.
    """

    def __init__(
        self,
        guards: GuardProgram,
        function: FunctionType | None,
        swap_code: CodeType | None = None,
        owner: object = None,
        data: object = None,
    ) -> None: ...
    @property
    def guards(self) -> GuardProgram: ...
    @property
    def function(self) -> FunctionType | None: ...
    @property
    def swap_code(self) -> CodeType | None: ...
    owner: object
    data: object
    hits: int
    review_at: int
    worthwhile: bool
    @property
    def valid(self) -> bool: ...
    def invalidate(self) -> None: ...

@final
class Cache:
    """The entries of one code object under one group of capture settings.

    `skip` says that nothing more is captured here: calls that no entry fits run the original, hook on, and
    entries that never fit are forgotten. `plain` says that the original never needs the hook. A compiled
    function's original that led to nothing four times in a row runs without the hook for the next 1, 2, 4, …
    calls.
    """

    @property
    def entries(self) -> tuple[Entry, ...]:
        """Newest hit first. A snapshot: changes give a new tuple while somebody holds this one."""
    @property
    def settings(self) -> object: ...
    skip: bool
    plain: bool
    def add(self, entry: Entry) -> None:
        """Put an entry in front (also one that is there already)."""
    def remove(self, entry: Entry) -> None:
        """Take an entry out if it is there, and all that are not valid any more."""
    def clear(self) -> None:
        """Forget all entries and the skip mark."""
    def give_up(self) -> None:
        """Forget all entries and set the skip mark."""

def cache_of(code: CodeType, settings: object) -> Cache:
    """The cache of `code` under `settings` (compared by identity); made when first asked for."""

def drop_caches(code: CodeType) -> None:
    """Forget every cache of `code`; compiled functions look theirs up anew at their next call."""

# --- compiled_function.c, jump.c ---------------------------------------------------------------

class CompiledFunction:
    """A callable that stands for a Python function: guards, then the entry's code.

    Arguments:
        function: the Python function it stands for.
        settings: capture settings, compared by identity; choose the cache.
        capture: ``capture(compiled, params)``, called when no entry's guards hold, with the hook off and
            compiled functions running plainly. Answers with an Entry (which it has added to the cache
            itself, if it is to be kept), with None (run the original, hook on) or with NotImplemented
            (run the original plainly, this once).
        context: handed to the frame handler for frames that run inside.
        callee_at: the positional parameter that the function calls, if that is all it does: when another
            callee comes, the hook is turned on for it, whatever calls led to before. -1: none.

    Attributes set on it stay its own, except `__code__`, `__defaults__` and `__kwdefaults__`, which are
    the function's; what it lacks is read from the function. It runs its original plainly during a capture
    or `plain_call` on its thread, when bypassed, and while the thread is traced (`sys.settrace`).
    """

    def __init__(
        self,
        function: FunctionType,
        settings: object,
        capture: Callable[[CompiledFunction, tuple[Any, ...]], Entry | NotImplementedType | None],
        context: object = None,
        callee_at: int = -1,
    ) -> None: ...
    @property
    def __wrapped__(self) -> FunctionType: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@final
class Jump:
    """What a segment returns to go on with the next one: the callable and its live values.

    The values are the flat parameters of the target's code, one each. Positional arguments only. A jump is
    followed once and gives up what it holds then; both attributes are None from there on.
    """

    def __init__(self, target: CompiledFunction, values: tuple[Any, ...], /) -> None: ...
    @property
    def target(self) -> CompiledFunction | None: ...
    @property
    def values(self) -> tuple[Any, ...] | None: ...

def taken() -> None:
    """Say that the frame that a jump led to has its parameters, so that nothing else need hold them.

    The first thing that such code does; without it the values live until the code ends.
    """

def enter(jump: Jump, /) -> Any:
    """Go on at a jump's target, and with all that follows; give the last result.

    How a segment calls the segment of the frame that its own frame had called.

    Raises:
        RuntimeError: the jump was followed before.
    """

def set_bypass(bypass: bool) -> bool:
    """Make every compiled function run its original (process-wide); returns the former setting."""

def enter_capture() -> None:
    """A capture begins on this thread: compiled calls made meanwhile run plainly (counted)."""

def leave_capture() -> None: ...
def capturing() -> bool: ...

# --- guards/ -----------------------------------------------------------------------------------

@final
class GuardProgram:
    """A straight program of accessors and checks, run on a function and its flat parameters.

    A node is a tuple (name, index of the accessor it reads, operands...); roots have -1 there.
    """

    def __init__(self, nodes: Sequence[tuple[Any, ...]], outputs: Sequence[int] = ()) -> None: ...
    def __len__(self) -> int: ...
    def check(self, function: Any, params: tuple[Any, ...]) -> int:
        """-1 when all holds, else the index of the first node that does not."""
    def bind(self, function: Any, params: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The values of `outputs`, or None when a guard fails."""
    def set_audit(self, audit: Callable[[Any, tuple[Any, ...], int], object] | None) -> None:
        """Call it after each run with (function, params, failed node or -1); what it raises is raised."""
    def measure(self, function: Any, params: tuple[Any, ...], times: int) -> tuple[int, float]:
        """Run many times: the last result as of `check`, and the mean time in ns."""
    def profile(self, function: Any, params: tuple[Any, ...], times: int) -> list[float]:
        """Run each node many times: its best mean time in ns; ends at the first that does not hold. Where a
        run is remembered, what is asked in place of each node."""
    def memos(self) -> tuple[int, int, int]:
        """How many runs are remembered, how many facts they rest on, and the bytes they take."""

def iterator_state(iterator: object) -> tuple[Any, ...] | None:
    """(iterated, items given) of a list, tuple or dict iterator, (start, step, length) left of a range
    iterator, None for one that is used up or of another kind. Given is -1 where the next step would raise."""

def reversed_at(sequence: object, index: int, /) -> reversed[Any]:
    """``reversed(sequence)`` that gives the item at `index` next; the sequence is asked nothing."""

# --- known_hashes.c ----------------------------------------------------------------------------

def call_hashed(
    function: Callable[..., Any], args: tuple[Any, ...], keys: tuple[Any, ...], hashes: tuple[int, ...], /
) -> Any:
    """Call a C function while `keys`, objects of classes written in Python, have these hashes and equal only
    themselves.

    The function must let go of nothing that could run code of anybody's.
    """

def stored_hashes(container: object, /) -> list[tuple[Any, int]]:
    """(key, hash) as a dictionary or set keeps them, in the order of its table."""

def bytearray_exports(value: bytearray, /) -> int:
    """How many others look at its memory; it cannot be resized while somebody does."""

# --- tensor_reader.c ---------------------------------------------------------------------------

def init_tensor_reader(
    tensor_type: type,
    samples: Sequence[Any],
    reader: Callable[[Any], tuple[Any, ...]],
    place_reader: Callable[[Any], tuple[int, int, int, int]],
    force_fallback: bool = False,
) -> str:
    """Learn the tensor layout from sample tensors; returns ``"fast"`` or why `reader` is asked instead.

    The classes of the samples count as those whose attributes run no Python code.
    """

def dtype_code(dtype: Any) -> int:
    """The number by which guards know a dtype."""

def read_tensor(tensor: Any) -> tuple[Any, ...]:
    """(dtype code, device type, device index, key set, requires_grad, sizes, strides, offset)."""

def read_metadata(tensor: Any) -> tuple[Any, ...]:
    """(dtype, device, layout, key set, requires_grad, is_leaf, sizes, strides, offset)."""

def tensor_place(tensor: Any) -> tuple[int, int, int, int] | None:
    """(storage identity, data pointer, bytes, offset in elements); None for a tensor without storage."""

# --- torch_state.c -----------------------------------------------------------------------------

def init_torch_state(
    readers: Sequence[tuple[str, Callable[[], int]]],
    stacks_reader: Callable[[], bytes],
    functorch_key: int,
    set_grad: Callable[[bool], object],
    force_fallback: bool = False,
) -> str:
    """Take the fields, by name; returns ``"fast"``, or the names of those read through Python.

    `stacks_reader` tells what lies on the stacks of modes and transforms, when they are not empty.
    """

def check_torch_state() -> str:
    """Compare all fields with their readers now and give up what differs; returns as `init_torch_state`."""

def torch_state() -> bytes:
    """The global torch state that every captured tensor operation reads, as one comparable value."""

def class_version(cls: type, /) -> int:
    """A number that is another one after an attribute of a class or of a base of it was set or deleted.

    0 where CPython has no number left for the class.
    """

def torch_state_fields() -> tuple[str, ...]:
    """The names of the 64-bit words at the start of `torch_state`, in order."""
