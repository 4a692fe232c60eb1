"""The compiled function whose every call is compared with a plain one."""

from __future__ import annotations

from types import FunctionType
from typing import Any, Final

from graphlift import _C
from graphlift.verification.trial import run

_function_of: Final[Any] = _C.CompiledFunction.__dict__["__wrapped__"].__get__


class VerifiedFunction(_C.CompiledFunction):
    # It has no docstring: that is the function's, as are its other names.
    __slots__ = ("_graphlift_backend",)

    __doc__ = property(lambda self: _function_of(self).__doc__)
    __module__ = property(lambda self: _function_of(self).__module__)

    def __new__(cls, function: FunctionType, settings: Any, *rest: Any) -> Any:
        new: Any = super().__new__
        self = new(cls, function, settings, *rest)
        cls._graphlift_backend.__set__(self, settings.backend)  # type: ignore[attr-defined]
        return self

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        return run(super().__call__, _function_of(self), self._graphlift_backend, args, kwargs)
