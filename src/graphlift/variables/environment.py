"""Reading environment variables: each name that was read is guarded, present or absent."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from graphlift.polyfills import environment as polyfills
from graphlift.protocol import Tx
from graphlift.variables.functions import models
from graphlift.variables.slots.type_lookup import anchor


def _getitem(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    return tx.run_host(polyfills.environ_getitem, args, kwargs)


def _getenv(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    environ = tx.make.from_value(os.environ, anchor(tx, os.environ))
    return tx.run_host(polyfills.getenv, [environ, *args], kwargs)


if os.name == "posix":
    models(type(os.environ).__getitem__)(_getitem)
    models(os.getenv)(_getenv)
