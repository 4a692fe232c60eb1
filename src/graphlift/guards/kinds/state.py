"""Kinds about the process: torch's global state, and what abstract base classes count as their own."""

from __future__ import annotations

import abc
import sys
from collections.abc import Sequence
from typing import Any, Final

from graphlift import _C
from graphlift.guards.guard import Guard, Kind, kind
from graphlift.guards.holding import held, hold
from graphlift.guards.kinds.showing import show
from graphlift.guards.places import Rows
from graphlift.guards.torch_readers import read_stacks, state_readers

_NAMES: Final = tuple(name for name, _ in state_readers())

#: Fields by which one can say what changed, in the user's words.
_WORDS: Final = {
    "grad_flags": "grad or inference mode",
    "keys_included": "the dispatch modes or transforms in force",
    "keys_excluded": "autocast or the dispatch keys in force",
    "function_modes": "the stack of torch function modes",
    "function_disabled": "whether torch functions of subclasses are on",
    "dispatch_modes": "the stack of torch dispatch modes",
    "default_dtype": "the default dtype",
    "threads": "the number of threads",
    "deterministic": "deterministic algorithms",
}


@kind
class TorchStateKind(Kind):
    """The global state that every captured tensor operation reads. Payload: (`_C.torch_state()`,) or ()."""

    name = "torch_state"
    rank = 0

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        state = guard.payload[0] if guard.payload else _C.torch_state()
        rows.add("torch_state", -1, state)
        return (), state

    def holds(self, payload: Any, *values: Any) -> bool:
        return not _changed(payload) and payload[8 * len(_NAMES) :] in (b"", read_stacks())

    def describe(self, payload: Any, *names: str) -> str:
        return "torch's global state (grad mode, autocast, modes, default dtype, backend flags) is as it was"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        changed = [_WORDS.get(name, f"torch's setting {name!r}") for name in _changed(payload)]
        return f"{', '.join(changed) or 'what lies on the stacks of modes'} changed"


def _changed(state: bytes) -> list[str]:
    """The names of the fields that differ from a former state, read through Python."""
    now = {name: reader() & (2**64 - 1) for name, reader in state_readers()}
    was = {name: int.from_bytes(state[8 * i : 8 * i + 8], sys.byteorder) for i, name in enumerate(_NAMES)}
    idle = now["keys_excluded"] == was["keys_excluded"] == _DEFAULT_EXCLUDED
    return [name for name in _NAMES if now[name] != was[name] and not (idle and name in _AUTOCAST_DTYPES)]


_AUTOCAST_DTYPES: Final = frozenset(
    name for name in _NAMES if name.startswith("autocast_") and name != "autocast_cache"
)
_DEFAULT_EXCLUDED: Final = dict(state_readers())["keys_excluded"]()


# --- abstract base classes -------------------------------------------------------------------------------


@kind
class SubclassKind(Kind):
    """Whether a class counts as one of an abstract base class. Payload: (class, base, answer).

    The class is one that another guard pins down. Only registering classes changes the answer; then it is
    asked for again if the base class is the standard library's, else the guard fails.
    """

    name = "subclass"
    rank = 0

    def compile(self, guard: Guard, rows: Rows) -> tuple[tuple[int, ...], Any]:
        cls, base, answer = guard.payload
        pair = (hold(cls), hold(base), answer)
        trusted = base.__module__.partition(".")[0] in sys.stdlib_module_names
        rows.add("abc", -1, abc.get_cache_token, abc.get_cache_token(), trusted, (pair,))
        return (), (pair, abc.get_cache_token(), trusted)

    def holds(self, payload: Any, *values: Any) -> bool:
        (cls, base, answer), token, trusted = payload
        if not trusted and abc.get_cache_token() != token:
            return False
        return issubclass(held(cls), held(base)) is answer

    def describe(self, payload: Any, *names: str) -> str:
        (cls, base, answer), *_ = payload
        return f"{show(held(cls))} is {'' if answer else 'not '}a {show(held(base))}"

    def explain(self, payload: Any, names: Sequence[str], values: Sequence[Any]) -> str:
        (cls, base, answer), *_ = payload
        was = "a subclass" if answer else "no subclass"
        return f"{show(held(cls))} was {was} of {show(held(base))}; classes were registered since"
