"""The C core, as the rest of graphlift sees it."""

from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, final

# --- eval_frame.c ------------------------------------------------------------------------------

def set_frame_callback(
    callback: Callable[[CodeType, FunctionType, dict[str, Any]], CodeType | None] | None,
) -> Callable[[CodeType, FunctionType, dict[str, Any]], CodeType | None] | None:
    """Set the calling thread's Python frame evaluator (None: remove it); returns the former one."""

def set_frame_handler(
    handler: Callable[[object, FunctionType, tuple[Any, ...]], Entry | None] | None,
) -> None:
    """Set what is asked about a hooked frame that has no cache entry.

    Called as ``handler(context, function, params)`` with the hook off; `context` is the one of the
    compiled call in which the frame runs. None leaves the frame to CPython and marks the code.
    """

def hook_depth() -> int:
    """How many times the hook is installed in this interpreter now."""

def hook_installed() -> bool:
    """Whether CPython's evaluator pointer is ours at this moment."""

def mark_skip(code: CodeType, skip: bool = True) -> None:
    """Tell the hook to pass this code object through without asking."""

def plain_call(function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    """Call with the hook off and compiled functions running plainly on this thread."""

# --- code_cache.c ------------------------------------------------------------------------------

@final
class Entry:
    """What one capture made: guards, and the code to run when they hold.

    `function` takes the flat parameters of the code (``*args`` and ``**kwargs`` as one tuple and one
    dict each), behind a leading binding argument when `guards` has outputs. None means: run the
    original, hook on (a frame that could not be captured under these guards).
    `swap_code` is the same for a hooked frame: the parameters keep the original's layout and the
    binding is the first local after them.
    """

    def __init__(
        self,
        guards: GuardProgram,
        function: FunctionType | None,
        swap_code: CodeType | None = None,
        owner: object = None,
        data: object = None,
    ) -> None: ...
    guards: GuardProgram
    function: FunctionType | None
    swap_code: CodeType | None
    owner: object
    data: object
    hits: int
    valid: bool
    def invalidate(self) -> None: ...

@final
class Cache:
    """The entries of one code object under one group of capture settings; newest hit first."""

    entries: tuple[Entry, ...]
    skip: bool
    def add(self, entry: Entry) -> None: ...
    def remove(self, entry: Entry) -> None: ...
    def clear(self) -> None: ...

def cache_of(code: CodeType, settings: object) -> Cache:
    """The cache of `code` under `settings` (compared by identity); made when first asked for."""

def drop_caches(code: CodeType) -> None: ...

# --- compiled_function.c -----------------------------------------------------------------------

@final
class CompiledFunction:
    """A callable that stands for a Python function: guards, then the entry's code.

    Arguments:
        function: the Python function it stands for.
        settings: capture settings, compared by identity; choose the cache.
        capture: ``capture(compiled, params) -> Entry | None``, called when no entry's guards hold.
        context: handed to the frame handler for frames that run inside.
    """

    def __init__(
        self,
        function: FunctionType,
        settings: object,
        capture: Callable[[CompiledFunction, tuple[Any, ...]], Entry | None],
        context: object = None,
    ) -> None: ...
    @property
    def __wrapped__(self) -> FunctionType: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
    def __get__(self, instance: object, owner: type | None = None) -> Any: ...
    def __getattr__(self, name: str) -> Any: ...

@final
class Jump:
    """What a segment returns to go on with the next one: the callable and its live values."""

    def __init__(self, target: CompiledFunction, values: tuple[Any, ...]) -> None: ...
    target: CompiledFunction
    values: tuple[Any, ...]

def set_bypass(bypass: bool) -> bool:
    """Make every compiled function run its original (process-wide); returns the former setting."""

def enter_capture() -> None:
    """A capture begins on this thread: compiled calls made meanwhile run plainly (counted)."""

def leave_capture() -> None: ...
def capturing() -> bool: ...

# --- guards/ -----------------------------------------------------------------------------------

@final
class GuardProgram:
    """A straight program of accessors and checks, run on a function and its flat parameters."""

    def __init__(self, nodes: Sequence[tuple[Any, ...]], outputs: Sequence[int] = ()) -> None: ...
    def check(self, function: FunctionType, params: tuple[Any, ...]) -> int:
        """-1 when all holds, else the index of the first node that does not."""
    def bind(self, function: FunctionType, params: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The values of `outputs`, or None when a guard fails."""

# --- tensor_reader.c ---------------------------------------------------------------------------

def init_tensor_reader(tensor_type: type, samples: Sequence[Any], force_fallback: bool = False) -> str:
    """Learn the tensor layout from sample tensors; returns ``"fast"`` or why the fallback is used."""

def read_tensor(tensor: Any) -> tuple[Any, ...]:
    """(dtype code, device type, device index, key set, requires_grad, sizes, strides, offset)."""

# --- torch_state.c -----------------------------------------------------------------------------

def init_torch_state(readers: Sequence[Callable[[], Any]], force_fallback: bool = False) -> str: ...
def torch_state() -> bytes:
    """The global torch state that every captured tensor operation reads, as one comparable value."""
