"""On whose behalf frames are captured: owner, limits, records, and what became dynamic.

A context belongs to one compiled object. The C core asks it for an entry when no guard holds, for the
object's own frames and for frames that run inside (`capture_call`, `handle_frame`).
"""

from __future__ import annotations

import threading
import weakref
from types import CodeType, FunctionType
from typing import Any

from graphlift import _C, config, events
from graphlift.bytecode.by_code import ByCode
from graphlift.compiled import stance
from graphlift.compiled.settings import Settings
from graphlift.convert_frame import Conversion, recompile_reasons
from graphlift.dynamic import DynamicPolicy, Seen
from graphlift.errors import GraphliftError, Unsupported
from graphlift.quiet import may_capture
from graphlift.reasons import Reason
from graphlift.records import CaptureLog, CaptureRecord
from graphlift.rules import is_root_candidate, is_unasked, keeps_frame
from graphlift.segments import Segments


class Owner:
    """A token that entries carry; it holds nothing of the user's and says whether its object lives."""

    __slots__ = ("__weakref__", "alive")

    def __init__(self) -> None:
        self.alive = True


class RecompileError(GraphliftError):
    """A capture would have been needed under the stance ``"fail_on_recompile"``."""


#: Code objects that have caches, for `reset`.
_touched: ByCode[bool] = ByCode()
_seen: ByCode[Seen] = ByCode()


class Context:
    """One compiled object's captures.

    Attributes:
        settings: how its frames are captured.
        owner: the token in its entries.
        log: records of its captures.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.owner = Owner()
        self.log = CaptureLog()
        self._segments = Segments(settings, self.capture_call, self)
        self._lock = threading.Lock()
        self._given_up: ByCode[bool] = ByCode()
        self._policies: ByCode[DynamicPolicy] = ByCode()

    def capture_call(self, compiled: _C.CompiledFunction, params: tuple[Any, ...]) -> Any:
        """What the C core asks when no entry of a compiled function holds."""
        function: Any = compiled.__wrapped__
        return self.entry_for(function, params)

    def entry_for(self, function: FunctionType, params: tuple[Any, ...]) -> Any:
        """A new entry for a call, already published; None: CPython runs it, hook on; NotImplemented: this
        once CPython runs all of it.

        Only one thread at a time captures for one object; another that comes meanwhile runs plainly. So does
        everything while the program has replaced builtins that captures need.

        Raises:
            Unsupported: under ``fullgraph=True``, where the graph would be cut or nothing can be captured.
        """
        code = function.__code__
        if code in self._given_up:
            return None
        if not may_capture():
            if self.settings.fullgraph:
                raise Unsupported(Reason.UNSUPPORTED_BUILTIN, "one that captures themselves need is replaced")
            return NotImplemented
        if not self._lock.acquire(blocking=False):
            return NotImplemented
        try:
            return self._capture(function, code, params)
        finally:
            self._lock.release()

    def _capture(self, function: FunctionType, code: CodeType, params: tuple[Any, ...]) -> Any:
        cache = _C.cache_of(code, self.settings)
        reasons = recompile_reasons(cache, function, params)
        if reasons and not self._may_recompile(code, reasons):
            return NotImplemented
        mine = sum(entry.owner is self.owner for entry in cache.entries)
        if mine >= config.recompile_limit:
            self._give_up(code, reasons)
            return None
        policy = self._policy(code)
        conversion = Conversion(function, params, self.settings, self.owner, self.log, policy, self._segments)
        entry = conversion.run(reasons)
        if entry is not None:
            cache.add(entry)
            _touched[code] = True
            trim(cache)
        else:
            # Skipped, or graphlift failed on it: to try again at each call would only cost time.
            self._given_up[code] = _touched[code] = True
        return entry

    def _policy(self, code: CodeType) -> DynamicPolicy:
        policy = self._policies.get(code)
        if policy is None:
            seen = _seen.get(code)
            if seen is None:
                seen = _seen[code] = Seen()
            policy = self._policies[code] = DynamicPolicy(self.settings.dynamic, seen)
        return policy

    def _may_recompile(self, code: CodeType, reasons: list[str]) -> bool:
        if stance.present() == "eager_on_recompile":
            return False
        if stance.present() == "fail_on_recompile":
            listed = "\n  ".join(reasons)
            raise RecompileError(f"{code.co_qualname} would have to be captured again:\n  {listed}")
        return True

    def _give_up(self, code: CodeType, reasons: list[str]) -> None:
        self._given_up[code] = _touched[code] = True
        why = f"{code.co_qualname} was captured {config.recompile_limit} times (config.recompile_limit)"
        events.emit(events.GaveUp(0, code, why, reasons, self.log))

    def retire(self) -> None:
        """The compiled object is gone: its entries stay only while they are among the last few."""
        self.owner.alive = False

    def forget(self) -> None:
        """Forget what was given up, what was seen to change, and how often graphs were cut."""
        self.log.breaks.clear()
        self._given_up.clear()
        self._policies.clear()


def trim(cache: _C.Cache) -> None:
    """Keep, of the entries whose owner is gone, only the most recently used."""
    orphans = [entry for entry in cache.entries if isinstance(entry.owner, Owner) and not entry.owner.alive]
    for entry in orphans[config.cache_keep :]:
        cache.remove(entry)


def handle_frame(context: object, function: FunctionType, params: tuple[Any, ...]) -> Any:
    """What the C core asks about a frame that runs inside a compiled call and has no entry."""
    kept = keeps_frame(function)
    if kept == "all":
        return NotImplemented
    if kept == "itself" or not isinstance(context, Context):
        return None
    candidate = is_root_candidate(function.__code__)
    if candidate and context.settings.fullgraph:
        # That the call is no graph (it ended in an exception, say) was settled for all of it.
        return NotImplemented
    if is_unasked(function):
        return NotImplemented
    return context.entry_for(function, params) if candidate else None


_C.set_frame_handler(handle_frame)

_contexts: weakref.WeakSet[Context] = weakref.WeakSet()


def new_context(settings: Settings) -> Context:
    """A context for one compiled object."""
    context = Context(settings)
    _contexts.add(context)
    return context


def reset() -> None:
    """Forget every capture of the process; what is running runs on."""
    for code in _touched:
        _C.drop_caches(code)
    _touched.clear()
    _seen.clear()
    for context in list(_contexts):
        context.forget()
    events.emit(events.Forgotten(0))


def records_of(context: Context) -> list[CaptureRecord]:
    """One record a capture, oldest first."""
    return list(context.log.records)
