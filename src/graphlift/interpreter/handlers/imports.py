"""``import`` inside captured code. Mirrors import_name and import_from of Python/ceval.c."""

from __future__ import annotations

import sys

from graphlift.interpreter.dispatch import Translator, handler
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.sources import ObjectSource
from graphlift.variables.slots import attributes


def _loaded(tx: Translator, name: str) -> Var:
    """The module of that name if it is imported already; importing runs code, so else a break."""
    module = sys.modules.get(name)
    if module is None:
        tx.fail(Reason.SIDE_EFFECT, f"import of {name!r}, which is not loaded yet")
    return tx.make.from_value(module, ObjectSource(None, name))


def _resolve(tx: Translator, name: str, level: int) -> str:
    if level == 0:
        return name
    package = tx.frame.module_globals.real.get("__package__")
    if not isinstance(package, str):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "a relative import without __package__")
    base = package.rsplit(".", level - 1)[0]
    return f"{base}.{name}" if name else base


@handler
def IMPORT_NAME(tx: Translator, name: str) -> None:
    from_list = tx.stack.pop().realize(tx).as_constant()
    level = tx.stack.pop().realize(tx).as_constant()
    full = _resolve(tx, name, level)
    module = _loaded(tx, full)
    if not from_list and level == 0:
        module = _loaded(tx, full.partition(".")[0])
    tx.stack.append(module)


@handler
def IMPORT_FROM(tx: Translator, name: str) -> None:
    module = tx.stack[-1].realize(tx)
    if attributes.hasattr_(tx, module, name):
        tx.stack.append(attributes.getattr_(tx, module, name))
        return
    full = f"{getattr(module.value, '__name__', None)}.{name}"
    if full not in sys.modules:
        tx.fail(Reason.SIDE_EFFECT, f"import of {name!r} from {module!r}")
    tx.stack.append(_loaded(tx, full))


@handler
def IMPORT_STAR(tx: Translator, operand: None) -> None:
    tx.missing("IMPORT_STAR")
