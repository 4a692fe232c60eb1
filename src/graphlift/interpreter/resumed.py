"""Which code objects stand for the rest of another one: what the translator looks up at the door.

A resume function's code is made by `codegen/resume.py`; it is captured by interpreting the user's own code
from the step at which it goes on.
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import NamedTuple

from graphlift.codegen.resume import Shape


class Resumed(NamedTuple):
    """What a resume function's code stands for.

    Attributes:
        code: the user's code.
        shape: where it goes on, and with what.
    """

    code: CodeType
    shape: Shape


#: By identity, for code objects of two functions may be equal: the code and the user's code, held weakly
#: (which keeps its entries, and through them the codes here, alive), and the shape.
_resumed: dict[int, tuple[weakref.ref[CodeType], weakref.ref[CodeType], Shape]] = {}


def register(made: CodeType, code: CodeType, shape: Shape) -> None:
    """Note that `made` is the rest of `code` from `shape` on."""
    key = id(made)

    def forget(reference: weakref.ref[CodeType]) -> None:
        found = _resumed.get(key)
        if found is not None and found[0] is reference:
            del _resumed[key]

    _resumed[key] = (weakref.ref(made, forget), weakref.ref(code), shape)


def resumed(code: CodeType) -> Resumed | None:
    """What a code resumes; None for the user's own code and for the rest of one that is gone."""
    found = _resumed.get(id(code))
    if found is None or found[0]() is not code:
        return None
    original = found[1]()
    return None if original is None else Resumed(original, found[2])
