"""``import`` inside captured code. Mirrors import_name and import_from of Python/ceval.c."""

from __future__ import annotations

import builtins
import sys
from types import ModuleType

from graphlift.errors import ObservedException
from graphlift.interpreter.dispatch import Translator, handler
from graphlift.protocol import Var
from graphlift.reasons import Reason
from graphlift.sources import GlobalSource, ObjectSource
from graphlift.variables import namespace
from graphlift.variables.slots import attributes
from graphlift.variables.slots.type_lookup import mro_of


def _loaded(tx: Translator, name: str) -> Var:
    """The module of that name if it is imported already; importing runs code, so else a break."""
    module = sys.modules.get(name)
    if module is None:
        tx.fail(Reason.SIDE_EFFECT, f"import of {name!r}, which is not loaded yet")
    if ModuleType not in mro_of(type(module)):
        tx.fail(Reason.UNSUPPORTED_VALUE, f"an object in the place of the module {name!r}")
    return tx.make.from_value(module, ObjectSource(None, name))


def _resolve(tx: Translator, name: str, level: int) -> str:
    if level == 0:
        return name
    found = namespace.lookup(tx, tx.frame.module_globals, "__package__", GlobalSource)
    package = found.realize(tx).as_constant() if found is not None else None
    if not isinstance(package, str):
        tx.fail(Reason.UNSUPPORTED_OPERATION, "a relative import without __package__")
    base = package.rsplit(".", level - 1)[0]
    return f"{base}.{name}" if name else base


def _check_importer(tx: Translator) -> None:
    """Break where ``__import__`` is not CPython's own; that it is so is guarded."""
    importer = namespace.lookup(tx, tx.builtins_handle(), "__import__", GlobalSource)
    if importer is None or getattr(importer.realize(tx), "value", None) is not _IMPORT:
        tx.fail(Reason.UNSUPPORTED_OPERATION, "an import through an __import__ of the user's")


_IMPORT = builtins.__import__


def _check_submodules(tx: Translator, package: str, names: tuple[str, ...]) -> None:
    """Break where ``from package import name`` imports a module that is not loaded yet."""
    own = vars(sys.modules[package])  # read past a `__getattr__` of the module's
    for name in names if "__path__" in own else ():
        if name not in own and (f"{package}.{name}" not in sys.modules or "__getattr__" in own):
            tx.fail(Reason.SIDE_EFFECT, f"import of '{package}.{name}', which is not loaded yet")


@handler
def IMPORT_NAME(tx: Translator, name: str) -> None:
    _check_importer(tx)
    from_list = tx.stack.pop().realize(tx).snapshot(tx)
    level = tx.stack.pop().realize(tx).snapshot(tx)
    full = _resolve(tx, name, level)
    module = _loaded(tx, full)
    _check_submodules(tx, full, from_list or ())
    if not from_list and level == 0:
        module = _loaded(tx, full.partition(".")[0])
    tx.stack.append(module)


@handler
def IMPORT_FROM(tx: Translator, name: str) -> None:
    module = tx.stack[-1].realize(tx)
    try:
        tx.stack.append(attributes.getattr_(tx, module, name))
    except ObservedException as error:
        if AttributeError not in mro_of(error.value.python_type(tx)):
            raise
    else:
        return
    full = f"{vars(module.value).get('__name__')}.{name}"
    if full not in sys.modules:
        tx.fail(Reason.SIDE_EFFECT, f"import of {name!r} from {module!r}")
    tx.stack.append(_loaded(tx, full))


@handler
def IMPORT_STAR(tx: Translator, operand: None) -> None:
    tx.missing("IMPORT_STAR")
