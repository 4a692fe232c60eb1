"""The settings, all of them: one frozen dataclass and the module that stands for its present value.

``graphlift.config.recompile_limit = 4`` checks the name and the type and takes effect for captures from
then on; reads are plain attribute reads. Settings belong to the process, not to a thread. This module
knows nothing of what the settings are used for.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from types import ModuleType
from typing import Any


def _at_least(minimum: int, default: int) -> int:
    """A whole-numbered setting with a lower bound."""
    number: int = field(default=default, metadata={"minimum": minimum})
    return number


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """Every setting and its default."""

    disable: bool = False
    """Compile nothing: every compiled object runs plainly (``GRAPHLIFT_DISABLE=1`` sets it at start)."""

    suppress_errors: bool = True
    """Run the frame plainly when graphlift itself fails, and log it once; False raises the error."""

    recompile_limit: int = _at_least(1, 8)
    """Captures of one code object for one owner after which it runs plainly."""

    give_up_after: int = _at_least(1, 16)
    """Runs of a frame with cuts after which it is asked whether its graphs are worth their cost."""

    give_up_below: int = _at_least(0, 3)
    """Operations between cuts, on the average, below which the frame runs plainly; 0: never give up so."""

    cache_keep: int = _at_least(0, 4)
    """Entries of a code object that outlive their owner: ``compile(f)(x)`` in a loop captures once."""

    automatic_dynamic: bool = True
    """Make a size, an int or a float symbolic when it is first seen to change."""

    assume_static_by_default: bool = True
    """Bake sizes in at first sight; False makes every size symbolic from the first capture on."""

    specialize_float: bool = False
    """Bake floats in for good instead of making those that change symbolic."""

    inline_depth: int = _at_least(1, 200)
    """Calls nested inside each other that one capture follows before it breaks the graph."""

    turn_limit: int = _at_least(1, 100_000)
    """Turns of loops that one capture follows before it breaks the graph (a loop without end)."""

    pause_gc: bool = True
    """Keep the garbage collector from running during a capture."""

    check_guards: bool = False
    """Run the Python face of every guard beside the C program, and raise when they disagree (slow)."""

    verify_bytecode: bool = False
    """Check every emitted code object before it is used (slow)."""

    report_size: int = _at_least(0, 64)
    """Captures that a compiled object's report remembers; the oldest go first."""


_FIELDS = {item.name: item for item in fields(Config)}


def defaults() -> Config:
    """The settings of a fresh process, environment included."""
    return Config(disable=os.environ.get("GRAPHLIFT_DISABLE", "0") not in ("", "0"))


current: Config = defaults()
"""The present values as one object."""

# The same as attributes of this module; `set_all` keeps both equal.
disable: bool
suppress_errors: bool
recompile_limit: int
give_up_after: int
give_up_below: int
cache_keep: int
automatic_dynamic: bool
assume_static_by_default: bool
specialize_float: bool
inline_depth: int
turn_limit: int
pause_gc: bool
check_guards: bool
verify_bytecode: bool
report_size: int


def checked(name: str, value: object) -> object:
    """Return `value` if setting `name` can take it.

    Raises:
        AttributeError: there is no such setting.
        TypeError: the value is of another type than the default.
        ValueError: the number is too small.
    """
    item = _FIELDS.get(name)
    if item is None:
        known = ", ".join(sorted(_FIELDS))
        raise AttributeError(f"graphlift.config has no setting {name!r}; there are: {known}")
    wanted = type(item.default)
    if type(value) is not wanted:
        raise TypeError(f"setting {name!r} takes {wanted.__name__}, not {type(value).__name__}")
    minimum = item.metadata.get("minimum")
    if minimum is not None and isinstance(value, int) and value < minimum:
        raise ValueError(f"setting {name!r} must be at least {minimum}, not {value}")
    return value


_listeners = list[Callable[[Config], None]]()


def on_change(listener: Callable[[Config], None]) -> None:
    """Have `listener` called with the present values, now and whenever they change."""
    _listeners.append(listener)
    listener(current)


def set_all(values: Config) -> None:
    """Put a whole set of settings in place, e.g. ``set_all(defaults())``."""
    namespace = globals()
    namespace["current"] = values
    for name in _FIELDS:
        namespace[name] = getattr(values, name)
    for listener in _listeners:
        listener(values)


def _change(changes: Mapping[str, object]) -> None:
    values: dict[str, Any] = {name: checked(name, value) for name, value in changes.items()}
    set_all(replace(current, **values))


@contextmanager
def patch(**changes: object) -> Iterator[Config]:
    """Change settings for the length of a ``with`` block (or of a function, as a decorator).

    Only the settings named are put back, so blocks may nest and other settings may change inside.
    """
    former = {name: getattr(current, name) for name in changes if name in _FIELDS}
    _change(changes)  # an unknown name leaves everything as it was
    try:
        yield current
    finally:
        _change(former)


class _Settings(ModuleType):
    """This module's class: attributes that are settings can be set, others cannot."""

    def __setattr__(self, name: str, value: object) -> None:
        if name.startswith("__") and name.endswith("__"):
            super().__setattr__(name, value)  # the import system's own
        else:
            _change({name: value})

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"setting {name!r} cannot be deleted")

    def __dir__(self) -> list[str]:
        return sorted({*_FIELDS, "Config", "current", "defaults", "on_change", "patch", "set_all"})


set_all(current)
sys.modules[__name__].__class__ = _Settings
