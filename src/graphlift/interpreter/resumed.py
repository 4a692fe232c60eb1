"""Which code objects stand for the rest of another one: what the translator looks up at the door.

A resume function's code is made by `codegen/resume.py`; it is captured by interpreting the user's own code
from the step at which it goes on.
"""

from __future__ import annotations

import weakref
from types import CodeType
from typing import NamedTuple

from graphlift.bytecode.by_code import ByCode
from graphlift.codegen.resume import Shape


class Resumed(NamedTuple):
    """What a resume function's code stands for.

    Attributes:
        code: the user's code.
        shape: where it goes on, and with what.
    """

    code: CodeType
    shape: Shape


#: The user's code keeps its entries, and through them the codes here, alive: so it is held weakly.
_resumed: ByCode[tuple[weakref.ref[CodeType], Shape]] = ByCode()


def register(made: CodeType, code: CodeType, shape: Shape) -> None:
    """Note that `made` is the rest of `code` from `shape` on."""
    _resumed[made] = (weakref.ref(code), shape)


def resumed(code: CodeType) -> Resumed | None:
    """What a code resumes; None for the user's own code and for the rest of one that is gone."""
    found = _resumed.get(code)
    original = None if found is None else found[0]()
    return None if found is None or original is None else Resumed(original, found[1])
