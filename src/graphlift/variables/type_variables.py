"""`typing.Generic` where it is written in C (Python 3.12 and later): it calls functions of `typing`. Mirrors
generic_class_getitem and generic_init_subclass of Objects/typevarobject.c."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.protocol import Tx
from graphlift.variables.classes import CLASS_METHODS


def _calls(name: str, function: Any) -> None:
    def model(tx: Tx, cls: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        return tx.run_host(function, [cls, *args], kwargs).realize(tx)

    CLASS_METHODS[typing.Generic, name] = model


for _name, _function in (
    ("__class_getitem__", "_generic_class_getitem"),
    ("__init_subclass__", "_generic_init_subclass"),
):
    if hasattr(typing, _function):
        _calls(_name, getattr(typing, _function))
