"""The process-wide stance: what a compiled function does when it is called."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Literal

from graphlift import _C, config, verification

Stance = Literal["default", "force_eager", "eager_on_recompile", "fail_on_recompile"]

STANCES: Final = ("default", "force_eager", "eager_on_recompile", "fail_on_recompile")

_present: Stance = "default"


def present() -> Stance:
    """The stance now in force."""
    return _present


def _take(stance: Stance) -> Stance:
    global _present
    former, _present = _present, stance
    _settle(config.current)
    return former


def _settle(values: config.Config) -> None:
    """Tell the C core whether anything compiled is to be used; where not, there is nothing to verify."""
    bypassed = _present == "force_eager" or values.disable
    _C.set_bypass(bypassed)
    verification.pause(bypassed)


config.on_change(_settle)


class set_stance:
    """Say what compiled functions do from now on; as a context manager, for the block only.

    Arguments:
        stance: ``"default"``; ``"force_eager"`` runs everything plainly; ``"eager_on_recompile"`` uses
            what is compiled and runs plainly where a capture would be needed;
            ``"fail_on_recompile"`` raises there instead, unless nothing was compiled yet.

    Raises:
        ValueError: there is no such stance.
    """

    def __init__(self, stance: Stance) -> None:
        if stance not in STANCES:
            raise ValueError(f"no stance {stance!r}; there are: {', '.join(STANCES)}")
        self._former = _take(stance)

    def __enter__(self) -> None:
        """The stance is in force since it was named."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _take(self._former)
