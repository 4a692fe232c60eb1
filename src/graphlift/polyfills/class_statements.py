"""What a class statement does, as Python: bases, metaclass, namespace, body, call of the metaclass.

Each function names the documentation of what it stands for.
"""

from __future__ import annotations

from collections.abc import Callable
from types import CellType
from typing import Any, Final

CONFLICT: Final = (
    "metaclass conflict: the metaclass of a derived class must be a (non-strict) subclass of the metaclasses "
    "of all its bases"
)


def run_class_body(body: Any, names: Any) -> CellType | None:
    """Run a class statement's function with a mapping for its names; gives the cell of ``__class__``.

    When traced, the interpreter does this.
    """
    exec(body.__code__, body.__globals__, names, closure=body.__closure__)
    try:
        cell: CellType | None = names["__classcell__"]
    except KeyError:
        return None
    return cell


def build_class(
    body: Callable[[], object], name: str, bases: tuple[Any, ...], keywords: dict[str, Any]
) -> Any:
    """``builtins.__build_class__``.

    https://docs.python.org/3/reference/datamodel.html#customizing-class-creation
    """
    resolved = resolve_bases(bases)
    if "metaclass" in keywords:
        meta = keywords.pop("metaclass")
    else:
        meta = type(resolved[0]) if resolved else type
    is_class = isinstance(meta, type)
    if is_class:
        meta = most_derived(meta, resolved)
    prepare = getattr(meta, "__prepare__", None)
    names = {} if prepare is None else prepare(name, resolved, **keywords)
    if not hasattr(type(names), "__getitem__"):
        shown = meta.__name__ if is_class else "<metaclass>"
        raise TypeError(f"{shown}.__prepare__() must return a mapping, not {type(names).__name__}")
    cell = run_class_body(body, names)
    if resolved is not bases:
        names["__orig_bases__"] = bases
    made = meta(name, resolved, names, **keywords)
    if isinstance(made, type) and cell is not None:
        check_class_cell(name, made, cell)
    return made


def resolve_bases(bases: tuple[Any, ...]) -> tuple[Any, ...]:
    """The bases with those replaced that are no classes; the very tuple where there is none.

    https://docs.python.org/3/reference/datamodel.html#resolving-mro-entries
    """
    resolved: list[Any] = []
    changed = False
    for base in bases:
        if isinstance(base, type) or not hasattr(base, "__mro_entries__"):
            resolved.append(base)
            continue
        entries = base.__mro_entries__(bases)
        if not isinstance(entries, tuple):
            raise TypeError("__mro_entries__ must return a tuple")
        changed = True
        resolved.extend(entries)
    return tuple(resolved) if changed else bases


def most_derived(meta: Any, bases: tuple[Any, ...]) -> Any:
    """The metaclass that is a subclass of all the others.

    https://docs.python.org/3/reference/datamodel.html#determining-the-appropriate-metaclass
    """
    for base in bases:
        kind = type(base)
        if issubclass(meta, kind):
            continue
        if not issubclass(kind, meta):
            raise TypeError(CONFLICT)
        meta = kind
    return meta


def check_class_cell(name: str, made: Any, cell: CellType) -> None:
    """That ``__class__`` of the methods is the class that was made.

    https://docs.python.org/3/reference/datamodel.html#creating-the-class-object
    """
    try:
        found = cell.cell_contents
    except ValueError:
        raise RuntimeError(
            f"__class__ not set defining {name!r} as {made!r}. Was __classcell__ propagated to type.__new__?"
        ) from None
    if found is not made:
        raise TypeError(f"__class__ set to {found!r} defining {name!r} as {made!r}")


def abstract_names(cls: Any, own: dict[str, Any]) -> frozenset[str]:
    """What ``abc`` works out for a class with these own attributes.

    https://docs.python.org/3/library/abc.html#abc.abstractmethod
    """
    found = {name for name, value in own.items() if getattr(value, "__isabstractmethod__", False)}
    for base in cls.__bases__:
        for name in getattr(base, "__abstractmethods__", ()):
            if getattr(getattr(cls, name, None), "__isabstractmethod__", False):
                found.add(name)
    return frozenset(found)


def raise_from(text: str, error: BaseException) -> None:
    """How ``type.__new__`` reports a failing ``__set_name__`` up to Python 3.11.

    https://docs.python.org/3/reference/datamodel.html#object.__set_name__
    """
    raise RuntimeError(text) from error
