"""Code objects: immutable, known whole, pinned down by identity."""

from __future__ import annotations

from collections.abc import Hashable
from types import CodeType

from graphlift.protocol import Codegen, Tx
from graphlift.variables.base import VariableTracker
from graphlift.variables.builder import pinned, wraps
from graphlift.variables.constant import ConstantVariable
from graphlift.variables.folding import wrap

#: Fields made of numbers, texts and tuples of these (not ``co_consts``, which may hold anything).
_FIELDS = frozenset(
    {
        "co_argcount",
        "co_cellvars",
        "co_code",
        "co_filename",
        "co_firstlineno",
        "co_flags",
        "co_freevars",
        "co_kwonlyargcount",
        "co_name",
        "co_names",
        "co_nlocals",
        "co_posonlyargcount",
        "co_qualname",
        "co_stacksize",
        "co_varnames",
    }
)


class CodeVariable(ConstantVariable):
    """A code object."""

    __slots__ = ()

    def hash_key(self, tx: Tx) -> Hashable:
        key: Hashable = self.value
        return key

    def getattr_(self, tx: Tx, name: str) -> VariableTracker:
        if name not in _FIELDS:
            return self.refuse(tx, f"attribute {name!r}")
        return wrap(tx, getattr(self.value, name))

    def reconstruct(self, codegen: Codegen) -> None:
        codegen.load_const(self.value)


wraps(CodeType)(pinned(CodeVariable))
