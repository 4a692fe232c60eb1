"""``functools.singledispatch``: what it has looked up before is not asked, so each class is looked up.

It keeps implementations by class in a dictionary of weak references, which tells nobody anything that the
registry does not; during a capture that is empty and stays so.
"""

from __future__ import annotations

import functools
import weakref
from abc import get_cache_token
from collections.abc import Mapping, Sequence
from typing import Any, Final

from graphlift.protocol import Codegen, Tx
from graphlift.reasons import Reason
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.functions import Model, models
from graphlift.variables.user_defined import INSTANCES, UserDefinedObject

_CACHE: Final = weakref.WeakKeyDictionary


class MadeDispatchCache(UserDefinedObject):
    """The dictionary of a function that the program made; empty."""

    __slots__ = ()

    def fill(self, codegen: Codegen) -> None:
        codegen.run(_CACHE.__init__, [self])


INSTANCES[_CACHE] = MadeDispatchCache


def _in_functools(model: Model) -> Model:
    """A model for calls in ``functools`` alone; others are looked into."""

    def run(tx: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        its_own = tx.code.co_filename == functools.__file__ and args[0].realize(tx).python_type(tx) is _CACHE
        return model(tx, args, kwargs) if its_own else None

    return run


@models(_CACHE.__init__, _CACHE.__setitem__, vars(_CACHE).get("clear", _CACHE.clear))
@_in_functools
def _nothing(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.make.constant(None)


@models(_CACHE.__getitem__)
@_in_functools
def _absent(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    tx.raise_(KeyError, args[1])


@builtin(get_cache_token)
def _token(tx: Any) -> Any:
    """It is compared only to know whether what was kept is out of date, which does not count here."""
    if tx.code.co_filename != functools.__file__:
        tx.fail(Reason.IMPURE_READ, "call of get_cache_token()")
    return tx.make.constant(get_cache_token())
