"""Functions of ``inspect`` with a model: the rest of that module is looked into like any other code."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.polyfills import inspecting as polyfills
from graphlift.protocol import Tx
from graphlift.sources import GlobalSource
from graphlift.variables import namespace
from graphlift.variables.functions import FunctionVariable, models
from graphlift.variables.methods import BoundMethodVariable
from graphlift.variables.slots.type_lookup import type_lookup


@models(vars(inspect)["_shadowed_dict"])
def _shadowed(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """From Python 3.12 on the real one keeps what it gave, by weak references."""
    return None if len(args) != 1 or kwargs else tx.run_host(polyfills.shadowed_dict, args).realize(tx)


@models(inspect.unwrap)
def _unwrap(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    if len(args) != 1 or not kwargs.keys() <= {"stop"}:
        return None
    return tx.run_host(polyfills.unwrap, args, kwargs).realize(tx)


#: What the short way to a signature makes objects of, with the initialisers that it stands for.
_MADE: Final = tuple((cls, vars(cls)["__init__"]) for cls in (inspect.Signature, inspect.Parameter))

#: What the module's own way goes by: functions, classes and the kinds of parameters.
_STANDS_FOR: Final = {
    name: vars(inspect)[name]
    for name in (
        "_signature_from_function", "_signature_bound_method", "_signature_is_functionlike",
        "get_annotations", "isfunction", "unwrap", "Parameter", "Signature", "_empty", "_ParameterKind",
        "_POSITIONAL_ONLY", "_POSITIONAL_OR_KEYWORD", "_VAR_POSITIONAL", "_KEYWORD_ONLY", "_VAR_KEYWORD",
    )
}  # fmt: skip

#: What of a function the program may have written to, past what exists.
_FIELDS: Final = ("__code__", "__defaults__", "__kwdefaults__", "__annotations__")

#: What in the namespace of a function decides on its signature before its code does.
_TELLING: Final = (
    "__wrapped__", "__signature__", "_partialmethod", "__partialmethod__", "__text_signature__"
)  # fmt: skip

#: Arguments that say nothing of a plain function whose annotations are taken as they are.
_IDLE: Final = frozenset({"sigcls", "follow_wrapper_chains", "globals", "locals", "eval_str"})


@models(vars(inspect)["_signature_from_callable"])
def _signature(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """A few hundred steps of Python for what a function's code tells at once."""
    if len(args) != 1 or not kwargs.keys() <= _IDLE or not _asks_plainly(tx, kwargs):
        return None
    function = args[0].realize(tx)
    is_method = isinstance(function, BoundMethodVariable)
    if is_method:
        function = function.function.realize(tx)
    if not isinstance(function, FunctionVariable) or not _is_plain(tx, function, is_method):
        return None
    return tx.run_host(polyfills.signature, [function, tx.make.constant(int(is_method))]).realize(tx)


def _asks_plainly(tx: Tx, kwargs: Mapping[str, Any]) -> bool:
    cls, evaluate = kwargs.get("sigcls"), kwargs.get("eval_str")
    if cls is None or getattr(cls.realize(tx), "value", None) is not inspect.Signature:
        return False
    if evaluate is None:
        return True
    evaluate = evaluate.realize(tx)
    return evaluate.is_constant() and evaluate.as_constant() is False


def _is_plain(tx: Tx, function: FunctionVariable, is_method: bool) -> bool:
    """Whether a signature follows from the function's code, defaults and annotations alone."""
    real, code = function.real, function.code
    if real is None or code is not real.__code__ or len(real.__defaults__ or ()) > code.co_argcount:
        return False
    if any(function.is_written(name) for name in _FIELDS):
        return False
    if type(real.__annotations__) is not dict or type(real.__kwdefaults__) not in (dict, type(None)):
        return False
    if is_method and not code.co_argcount:
        return False  # an error
    if not all(map(_is_parameter, code.co_varnames)):
        return False  # another one, or an argument of a comprehension
    own = function.instance_dict(tx)
    if own is None or any(namespace.lookup(tx, own, name) is not None for name in _TELLING):
        return False
    for cls, initialiser in _MADE:
        found = type_lookup(tx, cls, "__init__")
        if found is None or found.raw is not initialiser:
            return False
        new = type_lookup(tx, cls, "__new__")
        if new is None or new.raw is not object.__new__:
            return False
    return _is_as_it_was(tx)


def _is_parameter(name: str) -> bool:
    """Whether a parameter of any kind may be called that."""
    return name.isidentifier() and not keyword.iskeyword(name)


def _is_as_it_was(tx: Tx) -> bool:
    """Whether what the short way stands for was not replaced by anybody; guarded."""
    parameter = type_lookup(tx, inspect.Signature, "_parameter_cls")
    if parameter is None or getattr(parameter.value(tx).realize(tx), "value", None) is not inspect.Parameter:
        return False
    module = tx.globals_handle(vars(inspect), None)
    for name, wanted in _STANDS_FOR.items():
        found: Any = namespace.lookup(tx, module, name, GlobalSource)
        if found is None:
            return False
        tracker = found.realize(tx)
        is_function = isinstance(tracker, FunctionVariable)
        if (tracker.real if is_function else getattr(tracker, "value", None)) is not wanted:
            return False
    return True
