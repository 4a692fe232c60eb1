"""Which files of CPython's own test suite are run, and which of their tests are excluded, each with its
reason."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

#: Files of package `test`, without ``test_``; a name that this Python lacks is left out.
_NAMES: Final = """
    grammar list dict set tuple range slice int float complex bool unicode str bytes generators iter
    itertools functools operator collections ordered_dict deque defaultdict exceptions raise baseexception
    except_star with contextlib class descr super property dataclasses enum patma scope closure unpack
    unpack_ex extcall call keywordonlyarg positional_only_arg named_expressions fstring format sort math
    copy weakref contains compare richcmp binop augassign listcomps genexps setcomps dictcomps dictviews
    enumerate decorators global funcattrs isinstance index pow userdict userlist userstring exception_group
    exception_variations exception_hierarchy yield_from generator_stop metaclass genericclass subclassinit
    dynamicclassattribute type_params
""".split()


def files() -> list[str]:
    """The test files that this Python ships, by module name below package `test`; small ones first."""
    specs = {f"test_{name}": importlib.util.find_spec(f"test.test_{name}") for name in _NAMES}
    found = {name: spec.origin for name, spec in specs.items() if spec is not None and spec.origin}
    return sorted(found, key=lambda name: _size(found[name]))


def _size(origin: str) -> int:
    """Of a file, or of all files of a package."""
    path = Path(origin)
    parts = path.parent.glob("*.py") if path.stem == "__init__" else [path]
    return sum(part.stat().st_size for part in parts)


@dataclass(frozen=True)
class Exclusion:
    """Tests that need not pass compiled; they are run, and one that passes is an error.

    Attributes:
        file: the test file's name.
        pattern: of ``Class.method`` (`fnmatch`).
        reason: why a captured body cannot pass.
        versions: the Pythons concerned, e.g. ``("3.11",)``; empty: all.
    """

    file: str
    pattern: str
    reason: str
    versions: tuple[str, ...] = ()

    def names(self, file: str, test: str) -> bool:
        """Whether it excludes a test on this Python."""
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return self.file == file and fnmatchcase(test, self.pattern) and here in (self.versions or (here,))


_EQUAL_TEXTS: Final = (
    "tells equal strings apart: one computed at capture is a constant of the new code, which CPython interns"
)
_COUNTS_OBJECTS: Final = (
    "counts references or the objects that the collector knows; a captured body holds others"
)
_MEASURES_MEMORY: Final = (
    "tells dictionaries with shared keys by their size in memory, which says how they were filled, not what "
    "they hold"
)
_TUPLE_AGAIN: Final = (
    "tells by addresses that CPython uses the memory of one tuple again; captured ones are kept, each its own"
)
_MANY_GLOBALS: Final = (
    "behind hundreds of other tests so many segments stand among the module's globals that CPython gives up "
    "to look for similar names"
)
_COUNTS_FRAMES: Final = (
    "recurses through very many frames; the hook nests them in C, whose stack ends before the limit it sets"
)
_COLLECTS: Final = "runs the collector a hundred times, which goes through all that torch holds each time"

EXCLUSIONS: Final[tuple[Exclusion, ...]] = (
    Exclusion("test_descr", "ClassPropertiesAndMethods.test_slots", _COUNTS_OBJECTS),
    Exclusion("test_enumerate", "TestReversed.test_bug1229429", _COUNTS_OBJECTS),
    Exclusion("test_generators", "FinalizationTest.test_refcycle", _COUNTS_OBJECTS),
    Exclusion("test_descr", "SharedKeyTests.test_subclasses", _MEASURES_MEMORY),
    Exclusion("test_dict", "DictTest.test_splittable_popitem", _MEASURES_MEMORY),
    Exclusion("test_dict", "DictTest.test_str_nonstr", _EQUAL_TEXTS),
    Exclusion("test_class", "ClassTests.testSetattrWrapperNameIntern", _EQUAL_TEXTS),
    Exclusion("test_str", "StrTest.test_getnewargs", _EQUAL_TEXTS),
    Exclusion("test_unicode", "UnicodeTest.test_getnewargs", _EQUAL_TEXTS),
    Exclusion("test_call", "TestRecursion.test_super_deep", _COUNTS_FRAMES),
    Exclusion("test_deque", "TestBasic.test_gc_doesnt_blowup", _COLLECTS),
    Exclusion("test_genexps", "doctest test.test_genexps.__test__.doctests", _TUPLE_AGAIN),
    Exclusion("test_itertools", "TestBasicOps.test_zip*_tuple_reuse", _TUPLE_AGAIN),
    Exclusion(
        "test_exceptions", "NameErrorTests.test_name_error_suggestions_from_globals", _MANY_GLOBALS, ("3.11",)
    ),
    Exclusion("test_operator", "*OperatorTestCase.test_is", _EQUAL_TEXTS),
    Exclusion("test_operator", "*OperatorTestCase.test_is_not", _EQUAL_TEXTS),
)


def excluded(file: str, test: str) -> Exclusion | None:
    """The exclusion that names a test, if there is one."""
    return next((item for item in EXCLUSIONS if item.names(file, test)), None)
