"""``warnings.warn``, put off until the graph has run where nobody but Python's own code sees when it happens.

Filters decide at capture whether it is an error, and are guarded; what is shown once and what always is
decided when it is shown. Mirrors setup_context and warn_explicit of Python/_warnings.c.
"""

from __future__ import annotations

import warnings
from types import BuiltinFunctionType
from typing import Any, Final, NoReturn

from graphlift.polyfills import warning_filters as polyfills
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.user_frames import is_own
from graphlift.variables import namespace
from graphlift.variables.builtins import output
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.classes import ClassVariable
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.lazy import LazyVariableTracker
from graphlift.variables.put_off import Call, put_off
from graphlift.variables.rebuild import PlaceVariable
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import mro_of

#: Functions of the module that users replace, with those that belong there.
_OWN: Final = {name: vars(warnings)[name] for name in ("showwarning", "formatwarning", "_showwarnmsg")}
_SHOW: Final = vars(warnings)["_showwarnmsg_impl"]


@builtin(warnings.warn)
def _warn(
    tx: Tx,
    message: Var,
    category: Var | None = None,
    stacklevel: Var | None = None,
    source: Var | None = None,
    **others: Var,
) -> Any:
    text, cls = message.realize(tx), _category(tx, category)
    level = 1 if stacklevel is None else _constant(tx, stacklevel)
    if not text.is_constant() or type(text.as_constant()) is not str or type(level) is not int:
        _refuse(tx, "with a message or level that is not known")
    if others or (source is not None and _constant(tx, source) is not None):
        _refuse(tx, "with a source or with files to skip")
    if tx.is_watched():
        _refuse(tx, "where its failure would be handled")
    frame = _frame(tx, level)
    file, line, module = frame.code.co_filename, frame.line(), _module_name(tx, frame)
    _check_unwritten(tx)
    asked = [text, cls, tx.make.constant(module), tx.make.constant(line)]
    action = tx.run_host(polyfills.action_for, asked).realize(tx).as_constant()
    if action == "error":
        translator: Any = tx
        translator.raise_var(cls.call(tx, [text], {}))
    if action != "ignore":
        _check_shown(tx)
    place: list[Var] = [ConstantVariable(file), ConstantVariable(line), _namespace(tx, frame)]
    put_off(tx, Call(_show, (text, cls, *place), {}, tx.where()))
    return None


def _show(text: str, category: type[Warning], file: str, line: int, module_globals: dict[str, Any]) -> None:
    """Warn (runs in the compiled program)."""
    registry = module_globals.setdefault("__warningregistry__", {})
    module = module_globals.get("__name__")
    name = module if isinstance(module, str) else "<string>"
    warnings.warn_explicit(text, category, file, line, name, registry)


def _refuse(tx: Tx, why: str) -> NoReturn:
    tx.fail(Reason.INPUT_OUTPUT, f"call of warnings.warn() {why}")


def _constant(tx: Tx, value: Var) -> Any:
    known = value.realize(tx)
    return known.as_constant() if known.is_constant() else _refuse(tx, f"with {known!r}")


def _category(tx: Tx, category: Var | None) -> ClassVariable:
    cls: Any = tx.make.constant(None) if category is None else category.realize(tx)
    if cls.is_constant() and cls.as_constant() is None:
        cls = tx.make.from_value(UserWarning, None).realize(tx)
    if not isinstance(cls, ClassVariable) or Warning not in mro_of(cls.value):
        _refuse(tx, f"with the category {cls!r}")
    return cls


def _frame(tx: Any, level: int) -> Any:
    """The frame to which the warning is put down, a translator."""
    frame = tx
    plain = level <= 0 or _is_internal(frame)
    while level > 1 and frame is not None:
        level -= 1
        frame = frame.parent
        while frame is not None and (is_own(frame.code.co_filename) or (not plain and _is_internal(frame))):
            frame = frame.parent
    if frame is None:
        _refuse(tx, "on account of a caller of the captured code")
    return frame


def _is_internal(frame: Any) -> bool:
    file = frame.code.co_filename
    return "importlib" in file and "_bootstrap" in file


def _module_name(tx: Tx, frame: Any) -> str:
    name = namespace.lookup(tx, frame.frame.module_globals, "__name__")
    known = None if name is None else _constant(tx, name)
    return known if isinstance(known, str) else "<string>"


def _namespace(tx: Tx, frame: Any) -> Var:
    where = frame.frame.module_globals.source
    return _refuse(tx, "in code that lives in no module") if where is None else PlaceVariable(where)


def _check_unwritten(tx: Tx) -> None:
    """Break where the program has set filters or functions of the module by itself, which the ledger of
    effects does at another time."""
    module: Any = tx.make.from_value(warnings, None)
    known = tx.heap.known(warnings.filters)
    if module.instance_dict(tx).dirty or (known is not None and known.dirty):
        _refuse(tx, "behind a change of filters")


def _check_shown(tx: Tx) -> None:
    """Break unless Python's own code shows it, on a stream of its own, or a C function takes it."""
    module: Any = tx.make.from_value(warnings, None)
    for name, own in _OWN.items():
        if getattr(attributes.getattr_(tx, module, name).realize(tx), "real", None) is not own:
            _refuse(tx, f"with warnings.{name} replaced")
    show = attributes.getattr_(tx, module, "_showwarnmsg_impl")
    if type(show) is LazyVariableTracker and type(show.value) is BuiltinFunctionType:
        assert show.source is not None
        tx.guard("type", show.source, BuiltinFunctionType)
        return
    if getattr(show.realize(tx), "real", None) is not _SHOW:
        _refuse(tx, "that is shown by code of the program")
    stream = output.standard_stream(tx, "stderr")
    known = stream.is_constant() and stream.as_constant() is None
    if not known and output.encoding_of(tx, stream) is None:
        _refuse(tx, "to a stream that is not Python's own")
