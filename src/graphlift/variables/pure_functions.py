"""Python functions of the standard library whose result follows from their arguments alone.

Called with values that are wholly known they are computed at once, where looking into them would only meet
C code. Called with others they are looked into, or left alone, as the rules for their files say. What they
raise is left to CPython, so that tracebacks show their frames.
"""

from __future__ import annotations

import ast
import base64
import binascii
import fnmatch
import html
import json
import posixpath
import re
import shlex
import struct
import textwrap
import urllib.parse
import zlib
from collections.abc import Mapping, Sequence
from types import FunctionType
from typing import Any, Final

from graphlift.protocol import Tx
from graphlift.reasons import Reason
from graphlift.variables.builtins.registry import PURE
from graphlift.variables.constant import beneath
from graphlift.variables.folding import computed, known_all
from graphlift.variables.functions import Model, models

_FUNCTIONS: Final = (
    *(json.dumps, json.loads, ast.literal_eval),
    *(vars(re)["_compile"], re.escape, re.sub, re.subn, re.split),
    *(posixpath.join, posixpath.split, posixpath.splitext, posixpath.basename, posixpath.dirname),
    *(posixpath.normpath, posixpath.normcase, posixpath.isabs),
    *(textwrap.wrap, textwrap.fill, textwrap.shorten, textwrap.dedent, textwrap.indent),
    *(shlex.split, shlex.quote, shlex.join, html.escape, html.unescape),
    *(fnmatch.fnmatch, fnmatch.fnmatchcase, fnmatch.translate),
    *(urllib.parse.quote, urllib.parse.unquote, urllib.parse.urlencode, urllib.parse.urljoin),
    *(base64.b64encode, base64.b64decode, base64.urlsafe_b64encode, base64.urlsafe_b64decode),
    *(base64.b32encode, base64.b32decode, base64.b16encode, base64.b16decode, base64.b85encode),
)

PURE.update((binascii.hexlify, binascii.unhexlify, binascii.b2a_base64, binascii.a2b_base64))
PURE.update((zlib.compress, zlib.decompress, struct.unpack_from))


#: Functions that warn when more than so many arguments are positional (Python 3.13 and later).
_POSITIONAL: Final[dict[Any, int]] = {re.sub: 3, re.subn: 3, re.split: 2}


#: Functions that take numbers of derived classes for the numbers they are.
_PLAIN: Final[tuple[Any, ...]] = (vars(re)["_compile"],)


def _computed(function: FunctionType) -> Model:
    def model(tx: Tx, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if function in _PLAIN:
            args = [beneath(tx, arg.realize(tx)) for arg in args]
        warns = len(args) > _POSITIONAL.get(function, len(args))
        values = None if warns else known_all(tx, args, kwargs)
        if values is None:
            return None
        try:
            result = function(*values[0], **values[1])
        except Exception as error:
            tx.fail(
                Reason.SKIPPED_CALLABLE, f"{function.__qualname__}(), which raises {type(error).__name__}"
            )
        return computed(tx, result, [*values[0], *values[1].values()])

    return model


for _function in _FUNCTIONS:
    if type(_function) is FunctionType:
        models(_function)(_computed(_function))
    else:  # written in C by some Pythons
        PURE.add(_function)
