"""``isinstance`` and ``issubclass``: mirrors the functions of these names in Objects/abstract.c.

Classes are told apart by their method resolution order; a metaclass's own ``__instancecheck__`` is followed,
that of `abc.ABCMeta` by asking it, which is right as long as nobody registers a class (guarded).
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, Final

import torch

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots import attributes
from graphlift.variables.slots.truth import is_true
from graphlift.variables.slots.type_lookup import (
    Binding,
    anchor,
    is_immutable,
    is_made,
    mro_of,
    raw_lookup,
    type_lookup,
)

_CHECKS: Final = ("__instancecheck__", "__subclasscheck__")
_ABC_CHECKS: Final = tuple(ABCMeta.__dict__[name] for name in _CHECKS)
_ask: Final[Any] = ABCMeta.__subclasscheck__
_CLASS: Final = object.__dict__["__class__"]
_OBJECT_HOOK: Final = object.__dict__["__subclasshook__"]


def is_instance(tx: Tx, value: VariableTracker, cls: Any) -> bool:
    """``isinstance(value, cls)`` for the tracker of a class."""
    kind = value.python_type(tx)
    if kind is cls.value:
        return True
    return _check(tx, value, kind, cls, "__instancecheck__")


def is_subclass(tx: Tx, kind: Any, cls: Any) -> bool:
    """``issubclass(kind, cls)`` for the trackers of two classes."""
    return _check(tx, kind, kind.value, cls, "__subclasscheck__")


def plain_is_instance(tx: Tx, value: VariableTracker, wanted: type) -> bool:
    """``type.__instancecheck__(wanted, value)``: also what the object itself calls its class counts."""
    kind = value.python_type(tx)
    if wanted in mro_of(kind):
        return True
    claimed = _claimed_class(tx, value, kind)
    return claimed is not None and wanted in mro_of(claimed)


def _claimed_class(tx: Tx, value: VariableTracker, kind: type) -> type | None:
    """What ``value.__class__`` gives, where the class of the object has a say in that."""
    attr = type_lookup(tx, kind, "__class__")
    if attr is None or attr.raw is _CLASS:
        return None
    found = attributes.getattr_(tx, value, "__class__").realize(tx)
    claimed = getattr(found, "value", None)
    return claimed if isinstance(claimed, type) else None


def _check(tx: Tx, value: VariableTracker, kind: type, cls: Any, name: str) -> bool:
    wanted: type = cls.value
    meta = type(wanted)
    if meta is type or (issubclass(wanted, torch.Tensor) and wanted.__module__.startswith("torch")):
        return _plain(tx, value, kind, wanted, name)
    hook = type_lookup(tx, meta, name)
    assert hook is not None
    if hook.raw in _ABC_CHECKS:
        return _abstract(tx, kind, wanted)
    if hook.binding is Binding.C_METHOD:
        if hook.raw is not type.__dict__[name]:
            tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__}")
        return _plain(tx, value, kind, wanted, name)
    return is_true(tx, attributes.call_attr(tx, hook, cls, meta, [value]))


def _plain(tx: Tx, value: VariableTracker, kind: type, wanted: type, name: str) -> bool:
    if wanted in mro_of(kind):
        return True
    return name == "__instancecheck__" and plain_is_instance(tx, value, wanted)


def _abstract(tx: Tx, kind: type, wanted: type) -> bool:
    """The answer of an abstract base class, which may know classes that do not derive from it."""
    if wanted in mro_of(kind):
        return True
    if not _hooks_are_plain(wanted):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__}, whose hook is user code")
    answer = bool(_ask(wanted, kind))
    if is_made(wanted):
        return answer  # nobody outside could register a class there
    standard = wanted.__module__.startswith(("collections", "numbers", "typing"))
    for cls in mro_of(kind) if is_made(kind) else (kind,):
        if not is_made(cls) and not (is_immutable(cls) and standard):
            tx.guard("subclass", anchor(tx, cls), wanted, answer if cls is kind else bool(_ask(wanted, cls)))
    return answer


def _hooks_are_plain(wanted: type) -> bool:
    """Whether asking the class runs no code of the user's: its own hook and those of all below it."""
    seen: set[type] = set()
    todo = [wanted]
    while todo:
        cls = todo.pop()
        if cls in seen:
            continue
        seen.add(cls)
        found = raw_lookup(cls, "__subclasshook__")
        if found is not None and found[0] is not _OBJECT_HOOK and not _is_standard(found[1]):
            return False
        todo.extend(type.__subclasses__(cls))
    return True


def _is_standard(cls: type) -> bool:
    return cls.__module__.partition(".")[0] in (
        "collections",
        "abc",
        "typing",
        "numbers",
        "contextlib",
        "os",
        "io",
        "torch",
    )
