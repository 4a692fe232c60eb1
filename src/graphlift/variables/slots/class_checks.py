"""``isinstance`` and ``issubclass``: mirrors the functions of these names in Objects/abstract.c.

Classes are told apart by their method resolution order; a metaclass's own ``__instancecheck__`` is followed,
that of `abc.ABCMeta` by asking it, which is right as long as nobody registers a class (guarded).
"""

from __future__ import annotations

from abc import ABCMeta
from typing import Any, Final

import torch

from graphlift.errors import ObservedException
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.variables.base import VariableTracker
from graphlift.variables.slots import attributes
from graphlift.variables.slots.truth import is_true
from graphlift.variables.slots.type_lookup import (
    Binding,
    TypeAttr,
    anchor,
    is_immutable,
    is_made,
    made_classes,
    made_tracker,
    mro_of,
    presence_changed,
    raw_lookup,
    type_lookup,
)

_CHECKS: Final = ("__instancecheck__", "__subclasscheck__")
_ABC_CHECKS: Final = tuple(ABCMeta.__dict__[name] for name in _CHECKS)
_ask: Final[Any] = ABCMeta.__subclasscheck__
#: Where `Tx.reads` keeps what abstract classes answered in this capture.
_ASKED: Final = (0, "abstract classes asked")
_OBJECT_HOOK: Final = object.__dict__["__subclasshook__"]
_OBJECT_CLASS: Final = object.__dict__["__class__"]


def is_instance(tx: Tx, value: VariableTracker, cls: Any) -> bool:
    """``isinstance(value, cls)`` for the tracker of a class."""
    kind = value.python_type(tx)
    if kind is cls.value:
        return True
    wanted: type = cls.value
    hook = _hook(tx, wanted, "__instancecheck__")
    if hook is not None:
        return is_true(tx, attributes.call_attr(tx, hook, cls, type(wanted), [value]))
    if _derives(tx, kind, wanted):
        return True
    claimed = _claimed_class(tx, value, kind)
    return claimed is not None and _derives(tx, claimed, wanted)


def plain_is_instance(tx: Tx, value: VariableTracker, wanted: type) -> bool:
    """``type.__instancecheck__(wanted, value)``: also what the object itself calls its class counts."""
    kind = value.python_type(tx)
    if wanted in mro_of(kind):
        return True
    claimed = _claimed_class(tx, value, kind)
    return claimed is not None and wanted in mro_of(claimed)


def is_subclass(tx: Tx, kind: Any, cls: Any) -> bool:
    """``issubclass(kind, cls)`` for the trackers of two classes."""
    hook = _hook(tx, cls.value, "__subclasscheck__")
    if hook is not None:
        return is_true(tx, attributes.call_attr(tx, hook, cls, type(cls.value), [kind]))
    return _derives(tx, kind.value, cls.value)


def _hook(tx: Tx, wanted: type, name: str) -> TypeAttr | None:
    """The check of the class's metaclass where it is the user's; breaks for one in C that is not known."""
    meta = type(wanted)
    if meta is type or _is_tensor_class(wanted):
        return None
    hook = type_lookup(tx, meta, name)
    assert hook is not None
    if hook.raw in _ABC_CHECKS:
        return hook if has_made_hook(wanted) else None
    if hook.raw is type.__dict__[name]:
        return None
    if hook.binding is Binding.C_METHOD:
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__}")
    return hook


def _is_tensor_class(cls: type) -> bool:
    return torch.Tensor in mro_of(cls) and cls.__module__.startswith("torch")


def _derives(tx: Tx, kind: type, wanted: type) -> bool:
    """Whether a class derives from another one, or is said to by an abstract one."""
    return abstract(tx, kind, wanted) if _is_abstract(tx, wanted) else wanted in mro_of(kind)


def abstract(tx: Tx, kind: type, wanted: type) -> bool:
    """What ``ABCMeta.__subclasscheck__(wanted, kind)`` answers, guarded."""
    if not _hooks_are_plain(wanted):
        made = made_tracker(wanted)
        if made is not None:
            return _asked_of_hook(tx, kind, wanted, made)
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__}, whose hook is user code")
    if wanted in mro_of(kind):
        return True
    asked: dict[tuple[type, type], bool] = tx.reads.setdefault(_ASKED, {})
    if (kind, wanted) not in asked:  # abstract classes remember what they answered
        if _differs_for(tx, kind, wanted):
            tx.fail(
                Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__} of a class written to"
            )
        asked[kind, wanted] = bool(_ask(wanted, kind))
    answer = asked[kind, wanted]
    if is_made(wanted):
        return answer  # nobody outside could register a class there
    standard = wanted.__module__.startswith(("collections", "numbers", "typing"))
    for cls in mro_of(kind) if is_made(kind) else (kind,):
        if not is_made(cls) and not (is_immutable(cls) and standard):
            tx.guard("subclass", anchor(tx, cls), wanted, answer if cls is kind else bool(_ask(wanted, cls)))
    return answer


def has_made_hook(wanted: type) -> bool:
    """Whether it is an abstract class that the program makes, with a hook of its own, which may look at the
    frames of those who ask."""
    return is_made(wanted) and not _hooks_are_plain(wanted)


def _asked_of_hook(tx: Tx, kind: type, wanted: type, made: Var) -> bool:
    """The same for an abstract class that the program makes, which has a hook of its own and no registry."""
    asked = made_tracker(kind) or tx.make.from_value(kind, None)
    hook: Any = attributes.getattr_(tx, made, "__subclasshook__").realize(tx)
    said = hook.call(tx, [asked], {}).realize(tx)
    if not said.is_constant() or said.as_constant() is not NotImplemented:
        return bool(is_true(tx, said))
    if wanted in mro_of(kind):
        return True
    if any(wanted in mro_of(cls) and cls is not wanted for cls in made_classes()):
        tx.fail(Reason.UNSUPPORTED_BUILTIN, f"a check against {wanted.__qualname__} and what derives from it")
    return False


#: What the hooks of standard classes look for beside special methods.
_METHODS_OF_GENERATORS: Final = frozenset({"send", "throw", "close", "asend", "athrow", "aclose"})


def _differs_for(tx: Tx, kind: type, wanted: type) -> bool:
    """Whether hooks, which look at the class itself, would miss what the program wrote to it or to a base."""
    names = {name for cls in mro_of(kind) for name in presence_changed(tx, cls)}
    if raw_lookup(wanted, "_is_protocol") is not None:
        return bool(names)
    return any(name[:2] == name[-2:] == "__" or name in _METHODS_OF_GENERATORS for name in names)


def _is_abstract(tx: Tx, wanted: type) -> bool:
    """Whether the class may know classes that do not derive from it."""
    if type(wanted) is type or _is_tensor_class(wanted):
        return False
    hook = type_lookup(tx, type(wanted), "__subclasscheck__")
    assert hook is not None
    return hook.raw in _ABC_CHECKS


def _claimed_class(tx: Tx, value: VariableTracker, kind: type) -> type | None:
    """What ``value.__class__`` says, which `isinstance` asks, too; None where that is `kind`.

    It is another class only where the program has a ``__class__`` or a ``__getattribute__`` of its own.
    """
    if (is_immutable(kind) and not is_made(kind)) or _is_tensor_class(kind):
        return None
    attr, hook = type_lookup(tx, kind, "__class__"), type_lookup(tx, kind, "__getattribute__")
    if attr is None or (attr.raw is _OBJECT_CLASS and (hook is None or hook.binding is Binding.C_METHOD)):
        return None
    try:
        claimed = attributes.getattr_(tx, value, "__class__").realize(tx)
    except ObservedException as error:
        if AttributeError not in mro_of(error.value.python_type(tx)):
            raise
        return None
    cls = claimed.value if type in mro_of(claimed.python_type(tx)) else None
    assert cls is None or isinstance(cls, type)
    return None if cls is kind else cls


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
            function = getattr(found[0], "__func__", found[0])  # of protocols: a function of `typing`
            if getattr(function, "__module__", None) != "typing":
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
