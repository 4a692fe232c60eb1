"""Builds the C core. Needs no torch; says in one sentence where it cannot be built.

`GRAPHLIFT_STRICT=1` makes the compiler's warnings errors, for our own builds; `GRAPHLIFT_CFLAGS` adds
options (a sanitizer, `-O0`).
"""

import os
import shlex
import sys
import sysconfig
from pathlib import Path

from setuptools import Extension, setup

CSRC = Path("csrc")


def check_python() -> None:
    """Leave with a sentence on an interpreter that the core does not know."""
    if sys.implementation.name != "cpython":
        sys.exit("graphlift works on CPython only.")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        sys.exit("graphlift does not support free-threaded builds of CPython.")


def compile_options() -> list[str]:
    """Options for the C compiler, by kind of compiler."""
    if os.name == "nt":
        return ["/std:c11"]
    options = ["-std=gnu11", "-O2", "-fvisibility=hidden"]
    if os.environ.get("GRAPHLIFT_STRICT") == "1":
        options += ["-Wall", "-Wextra", "-Werror"]
    return options + shlex.split(os.environ.get("GRAPHLIFT_CFLAGS", ""))


check_python()
setup(
    ext_modules=[
        Extension(
            "graphlift._C",
            sources=sorted(str(path) for path in CSRC.rglob("*.c")),
            depends=sorted(str(path) for path in CSRC.rglob("*.h")),
            include_dirs=[str(CSRC)],
            extra_compile_args=compile_options(),
            extra_link_args=shlex.split(os.environ.get("GRAPHLIFT_CFLAGS", "")),
            libraries=["dl"] if sys.platform == "linux" else [],
        )
    ]
)
