"""What is to happen with Python code by the file it comes from.

Two questions, two tables: may a frame of this file be captured as a *root* (`is_root_candidate`), and what
becomes of a function of this file when captured code *calls* it (`treatment_of_file`). Code of the user
and of packages not named here may always be captured and is always looked into.
"""

from __future__ import annotations

import functools
import os
import site
import sys
import sysconfig
from types import CodeType
from typing import Final, Literal

import torch

FileTreatment = Literal["inline", "skip"]

_SEP: Final = os.sep


def _folder(path: str) -> str:
    return os.path.normcase(os.path.realpath(path)).rstrip(_SEP) + _SEP


_OWN: Final = _folder(os.path.dirname(os.path.dirname(__file__)))
_TORCH: Final = _folder(os.path.dirname(torch.__file__))
_STDLIB: Final = _folder(sysconfig.get_paths()["stdlib"])
#: Python's own tests are programs like any other.
_STDLIB_TESTS: Final = _STDLIB + "test" + _SEP
_SITE: Final = tuple(
    {_folder(path) for path in [*site.getsitepackages(), sysconfig.get_paths()["purelib"]]}
    | {_folder(path) for path in sys.path if path.endswith(("site-packages", "dist-packages"))}
)

#: Parts of torch by the beginning of their path; the longest match counts. Whatever is not listed is
#: machinery (compilers, serialisation, process groups) that a graph cannot hold.
_TORCH_PARTS: Final[dict[str, FileTreatment]] = {
    "__init__.py": "inline",
    "_jit_internal.py": "inline",
    "_lobpcg.py": "skip",
    "_lowrank.py": "inline",
    "_linalg_utils.py": "inline",
    "_tensor.py": "inline",
    "_tensor_str.py": "skip",
    "_utils.py": "inline",
    "_VF.py": "inline",
    "_compile.py": "skip",
    "_functorch/functional_call.py": "inline",
    "amp/": "inline",
    "ao/": "inline",
    "autograd/grad_mode.py": "inline",
    "backends/": "inline",
    "distributions/": "inline",
    "functional.py": "inline",
    "fx/traceback.py": "skip",
    "nested/": "skip",
    "nn/": "inline",
    "nn/parallel/": "skip",
    "nn/modules/lazy.py": "skip",
    "nn/utils/": "inline",
    "optim/": "inline",
    "overrides.py": "inline",
    "quasirandom.py": "inline",
    "return_types.py": "inline",
    "signal/": "inline",
    "types.py": "inline",
    "utils/_contextlib.py": "inline",
    "utils/_foreach_utils.py": "inline",
    "utils/_pytree.py": "inline",
    "utils/_cxx_pytree.py": "inline",
    "utils/hooks.py": "inline",
    "utils/_typing_utils.py": "inline",
}

#: Parts of the standard library that talk to the outside, hold locks or look at real frames.
_STDLIB_SKIPPED: Final = frozenset(
    {
        "_pyio",
        "_strptime",
        "argparse",
        "ast",
        "asyncio",
        "bdb",
        "codecs",
        "concurrent",
        "ctypes",
        "datetime",
        "dis",
        "email",
        "faulthandler",
        "gc",
        "getpass",
        "glob",
        "http",
        "importlib",
        "io",
        "linecache",
        "locale",
        "logging",
        "multiprocessing",
        "ntpath",
        "optparse",
        "os",
        "pathlib",
        "pdb",
        "pickle",
        "platform",
        "posixpath",
        "random",
        "runpy",
        "sched",
        "selectors",
        "shutil",
        "signal",
        "site",
        "socket",
        "sqlite3",
        "ssl",
        "subprocess",
        "sysconfig",
        "tempfile",
        "threading",
        "timeit",
        "tokenize",
        "trace",
        "traceback",
        "tracemalloc",
        "urllib",
        "uuid",
        "warnings",
        "weakref",
        "xml",
        "zipfile",
    }
)

#: Installed packages whose Python code ends in C code at once or only talks to the outside.
_PACKAGES_SKIPPED: Final = frozenset(
    {"numpy", "scipy", "pandas", "tqdm", "matplotlib", "sympy", "_pytest", "pytest", "pluggy", "triton"}
)

_cache: dict[str, tuple[bool, FileTreatment]] = {}


def is_root_candidate(code: CodeType) -> bool:
    """Whether a frame of this code may be captured when it is the outermost one.

    The standard library, graphlift and torch (its own modules' ``forward`` excepted) are not: what matters
    in them is reached from the user's code.
    """
    return _answers(code.co_filename)[0]


def treatment_of_file(filename: str) -> FileTreatment:
    """Whether a function of this file is looked into when captured code calls it."""
    return _answers(filename)[1]


def holds_state(filename: str) -> bool:
    """Whether code of this file may keep state of the program's in its globals and classes.

    That of Python, torch, graphlift and of packages that are only a door to C code is their own affair.
    """
    return _answers(filename)[0] and in_torch(filename) is None


def is_users(filename: str) -> bool:
    """Whether code of this file is the user's own: not installed, nor part of Python, torch or graphlift."""
    if filename.startswith("<"):
        return True
    path = os.path.normcase(os.path.realpath(filename))
    return not path.startswith((_OWN, _TORCH, _STDLIB, *_SITE))


@functools.cache
def is_machinery(filename: str) -> bool:
    """Whether code of this file is part of torch or of Python, so that a message should rather point at its
    caller."""
    if in_torch(filename) is not None or filename.startswith("<frozen "):
        return True
    path = os.path.normcase(os.path.realpath(filename))
    return path.startswith(_STDLIB) and not path.startswith((_STDLIB_TESTS, *_SITE))


@functools.cache
def in_torch(filename: str) -> str | None:
    """The path below torch's own folder, with ``/``, or None for other files."""
    path = os.path.normcase(os.path.realpath(filename))
    return path[len(_TORCH) :].replace(_SEP, "/") if path.startswith(_TORCH) else None


def _answers(filename: str) -> tuple[bool, FileTreatment]:
    found = _cache.get(filename)
    if found is None:
        found = _cache[filename] = _decide(filename)
    return found


def _decide(filename: str) -> tuple[bool, FileTreatment]:
    if filename.startswith("<frozen "):
        return False, _stdlib(filename[len("<frozen ") : -1])
    if filename.startswith("<"):
        # ``exec``, ``eval``, generated methods of dataclasses and named tuples
        return True, "inline"
    path = os.path.normcase(os.path.realpath(filename))
    below = in_torch(filename)
    if below is not None:
        # The plumbing of modules is reached from their callers; by itself it is not worth a graph.
        root = below.startswith("nn/modules/") and below != "nn/modules/module.py"
        return root, _torch_part(below)
    if path.startswith(_OWN):
        return False, "skip"
    for folder in _SITE:
        if path.startswith(folder):
            skipped = _first_part(path[len(folder) :]) in _PACKAGES_SKIPPED
            return not skipped, "skip" if skipped else "inline"
    if path.startswith(_STDLIB) and not path.startswith(_STDLIB_TESTS):
        return False, _stdlib(_first_part(path[len(_STDLIB) :]))
    return True, "inline"


def _first_part(path: str) -> str:
    return path.split(_SEP, 1)[0].removesuffix(".py")


def _stdlib(name: str) -> FileTreatment:
    return "skip" if name.split(".", 1)[0] in _STDLIB_SKIPPED else "inline"


def _torch_part(below: str) -> FileTreatment:
    best = max((part for part in _TORCH_PARTS if below.startswith(part)), key=len, default=None)
    return "skip" if best is None else _TORCH_PARTS[best]
