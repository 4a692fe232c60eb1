"""Functions written in C that captured code may call: the registry of their models, and their tracker.

A model is called with the translator and the arguments as trackers, maybe lazy ones. Arguments that a
model does not take are tried on the real function, so that the error is CPython's own. Knows no particular
function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import BuiltinFunctionType
from typing import Any, Final, TypeVar, cast

from graphlift.protocol import Codegen, Tx, Var
from graphlift.reasons import Reason
from graphlift.variables import misfits
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import pinned, wraps_if
from graphlift.variables.builtin_object import Method
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import fold, known_all, wrap

F = TypeVar("F", bound=Callable[..., Any])

MODELS: Final[dict[Any, Method]] = {}

#: Functions of which a call on known values is computed at once.
PURE: Final[set[Any]] = set()


def builtin(*functions: Any) -> Callable[[F], F]:
    """Register the model of functions; it takes the arguments that they take, behind `tx`."""

    def register(model: F) -> F:
        for function in functions:
            MODELS[function] = Method(model, skip=1)
        return model

    return register


def refused(reason: Reason, *functions: Any) -> None:
    """Register functions a call of which breaks the graph for a reason of its own."""

    def refuse(function: Any) -> None:
        def model(tx: Tx, /, *args: Var, **kwargs: Var) -> VariableTracker:
            tx.fail(reason, f"call of {function.__qualname__}()")

        MODELS[function] = Method(model, skip=1)

    for function in functions:
        refuse(function)


class BuiltinVariable(ConstantVariable):
    """A function written in C that has a model, or is pure."""

    __slots__ = ()

    def call(
        self, tx: Tx, args: Sequence[VariableTracker], kwargs: Mapping[str, VariableTracker]
    ) -> VariableTracker:
        function = self.value
        if function in PURE:
            values = known_all(tx, args, kwargs)
            if values is not None:
                return fold(tx, function, *values[0], **values[1])
        model = MODELS.get(function)
        if model is None:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"{function.__qualname__}() of values that are not known")
        if not model.accepts(len(args), kwargs):
            args, kwargs = self._arranged(tx, model, args, kwargs)
        result = model.run(tx, *args, **kwargs)
        return result.realize(tx) if isinstance(result, Var) else wrap(tx, result)

    def _arranged(
        self, tx: Tx, model: Method, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> misfits.Form:
        """The arguments in the form that the model takes; CPython's error where they fit no form."""
        form = misfits.arranged(tx, self.value, misfits.Form(args, kwargs))
        if form is not None and model.accepts(len(form.args), form.kwargs):
            return form
        said = misfits.error(lambda: self.value, len(args), list(kwargs)) if form is None else None
        if said is not None:
            tx.raise_real(said)
        names = ", ".join(kwargs)
        tx.fail(
            Reason.UNSUPPORTED_BUILTIN,
            f"{self.value.__qualname__}() with {len(args)} arguments and ({names})",
        )

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name in ("__name__", "__qualname__", "__module__", "__doc__", "__self__"):
            return cast(VariableTracker, tx.make.from_value(getattr(self.value, name), None))
        return self.refuse(tx, f"attribute {name!r}")

    def called_name(self, tx: Tx) -> str:
        """See `slots.calls.callable_name`."""
        module, name = self.value.__module__, self.value.__qualname__
        return str(name) if module in (None, "builtins") else f"{module}.{name}"

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_object(self.value)

    def __repr__(self) -> str:
        return f"BuiltinVariable({self.value.__qualname__})"


def has_model(value: object) -> bool:
    """Whether `value` is a C function that is known here."""
    if type(value) is not BuiltinFunctionType:
        return False
    try:
        return value in MODELS or value in PURE
    except TypeError:  # bound to something unhashable
        return False


# A known C function: pinned by its identity.
wraps_if(has_model, order=28)(pinned(BuiltinVariable))
