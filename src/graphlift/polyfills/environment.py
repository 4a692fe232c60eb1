"""Environment variables, read from the table that ``os.environ`` keeps.

https://docs.python.org/3/library/os.html#os.environ
"""

from __future__ import annotations

import sys
from typing import Any

_ENCODING = sys.getfilesystemencoding()


def environ_getitem(environ: Any, key: str) -> str:
    """``os.environ[key]`` (Posix)."""
    if not isinstance(key, str):
        raise TypeError(f"str expected, not {type(key).__name__}")
    try:
        value = environ._data[key.encode(_ENCODING, "surrogateescape")]
    except KeyError:
        raise KeyError(key) from None
    text: str = value.decode(_ENCODING, "surrogateescape")
    return text


def getenv(environ: Any, key: str, default: Any = None) -> Any:
    """``os.getenv``."""
    return environ.get(key, default)
