"""Whether the class of tensors still holds what torch put there.

Trackers know torch's own operators, methods and attributes of tensors; where a program has put others in
their place, nothing is certain. Adding members takes nothing away.
"""

from __future__ import annotations

import os
from types import FunctionType
from typing import Any, Final

import torch

from graphlift import _C

#: Members by which people and debuggers look at tensors; captured code does not go through them.
_SHOWING: Final = frozenset({"__repr__", "__str__", "__format__", "__dir__", "__module__", "__doc__"})
_FOLDER: Final = os.path.realpath(os.path.dirname(torch.__file__))


def _members() -> dict[str, Any]:
    found: dict[str, Any] = {}
    for cls in reversed(torch.nn.Parameter.__mro__):
        found |= vars(cls)
    return found


def _is_torchs(member: object) -> bool:
    code = getattr(member, "__code__", None) if isinstance(member, FunctionType) else None
    return code is None or os.path.realpath(code.co_filename).startswith(_FOLDER)


#: What torch put there; of what was replaced before, nothing is known.
_ORIGINAL: Final = {name: member if _is_torchs(member) else None for name, member in _members().items()}

_version = 0
_replaced: str | None = None


def class_version() -> int:
    """A number that changes whenever a member of the classes of tensors and parameters does."""
    return _C.class_version(torch.nn.Parameter)


def replaced_member() -> str | None:
    """The name of a member that is not torch's own any more, or None."""
    global _version, _replaced
    version = class_version()
    if version != _version or not version:
        now = _members()
        changed = (name for name, member in _ORIGINAL.items() if now.get(name, None) is not member)
        _replaced = next((name for name in changed if name not in _SHOWING), None)
        _version = version
    return _replaced
