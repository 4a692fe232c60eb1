"""The order of the house: who may import whom, and what may be named where.

The table below is the design's table as data. A module imports only from lower layers, or from what is
listed before it in its own; never upward, not under ``TYPE_CHECKING``, not inside a function. Only the
package's own ``__init__`` may resolve names lazily (inside a function), for it is what people see.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "graphlift"
CSRC = ROOT / "csrc"

#: Layers from the lowest to the highest; inside a layer, each entry may import those before it.
LAYERS: tuple[tuple[str, ...], ...] = (
    ("user_frames", "reasons", "errors", "config", "profile", "events", "records"),
    ("_C", "quiet", "eval_frame", "bytecode", "interop", "polyfills", "rules", "backends"),
    ("comparison", "verification"),
    ("operators", "metadata", "graph_value", "sources", "heap", "protocol", "dynamic"),
    ("guards",),
    ("codegen",),
    ("variables",),
    ("side_effects", "shape_rules", "meta_propagation", "output_graph"),
    ("interpreter",),
    ("segments", "convert_frame"),
    ("compiled",),
    ("report", "__init__", "cli", "__main__"),
    ("testing",),
)

#: Order of the main files inside some packages; whatever is not named must merely be free of cycles.
INSIDE: dict[str, tuple[str, ...]] = {
    "bytecode": (
        "instruction",
        "operands",
        "opcodes",
        "verbs",
        "versions",
        "exception_table",
        "line_table",
        "decode",
        "liveness",
        "stack_depth",
        "emit",
        "reassemble",
        "graft",
        "verify",
        "listing",
    ),
    "guards": ("guard", "kinds", "compile", "explain"),
    "codegen": ("load_source", "pycodegen", "resume"),
    "interpreter": (
        "frame_state",
        "dispatch",
        "handlers",
        "unwind",
        "base",
        "inline",
        "graph_break",
        "root",
    ),
}

TORCH_FRONT_END = "torch." + "_dynamo"
MAY_NAME_TORCH_FRONT_END = {"interop"}
MAY_READ_VERSION = {"bytecode.versions"}


@dataclass(frozen=True)
class Import:
    """One import statement's target, resolved to a module of the package."""

    importer: str
    target: str
    line: int
    lazily: bool

    def __str__(self) -> str:
        return f"{self.importer}, line {self.line}: imports {self.target}"


def module_name(path: Path) -> str:
    """Dotted name below the package; a package's ``__init__`` has the package's name."""
    parts = list(path.relative_to(PACKAGE).with_suffix("").parts)
    if len(parts) > 1 and parts[-1] == "__init__":
        parts.pop()
    return ".".join(parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
MODULES = {*FILES, "_C"}
#: Packages without a front: naming one imports nothing.
BARE = {name.rpartition(".")[0] for name in FILES} - MODULES - {""}


def resolve(dotted: str) -> str | None:
    """The module that ``graphlift.<dotted>`` names, or None when nothing there exists yet."""
    if dotted in BARE:
        return None
    if not dotted:
        return "__init__"
    parts = dotted.split(".")
    while parts:
        name = ".".join(parts)
        if name in MODULES:
            return name
        parts.pop()
    return None


def targets(node: ast.stmt, importer: str) -> Iterator[str]:
    """Dotted names below the package that an import statement reaches."""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name == "graphlift" or alias.name.startswith("graphlift."):
                yield alias.name.removeprefix("graphlift").lstrip(".")
    elif isinstance(node, ast.ImportFrom):
        base = from_base(node, importer)
        if base is None:
            return
        for alias in node.names:
            below = f"{base}.{alias.name}".lstrip(".")
            yield below if below in MODULES | BARE else base


def from_base(node: ast.ImportFrom, importer: str) -> str | None:
    """The dotted name below the package after ``from``, or None for a foreign module."""
    module = node.module or ""
    if node.level == 0:
        if module == "graphlift" or module.startswith("graphlift."):
            return module.removeprefix("graphlift").lstrip(".")
        return None
    package = importer.split(".")
    if importer == "__init__":
        package = []
    elif FILES[importer].name != "__init__.py":
        package.pop()
    package = package[: len(package) - (node.level - 1)]
    return ".".join([*package, module]).strip(".")


def imports_of(importer: str, tree: ast.Module) -> Iterator[Import]:
    """Every import of the package's own modules, at whatever depth it is written."""

    def walk(node: ast.AST, lazily: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = lazily or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            if isinstance(child, ast.Import | ast.ImportFrom):
                for dotted in targets(child, importer):
                    target = resolve(dotted)
                    if target is not None and target != importer:
                        yield Import(importer, target, child.lineno, lazily)
            yield from walk(child, inside)

    yield from walk(tree, False)


TREES = {name: ast.parse(path.read_text(encoding="utf-8"), str(path)) for name, path in FILES.items()}
IMPORTS = [item for name, tree in TREES.items() for item in imports_of(name, tree)]


def place(module: str) -> tuple[int, int] | None:
    """(layer, position in the layer) of a module's top-level name."""
    top = module.split(".")[0]
    for number, names in enumerate(LAYERS):
        if top in names:
            return number, names.index(top)
    return None


def place_inside(module: str) -> int | None:
    """Position inside an ordered package; None where there is no order to keep."""
    package, _, rest = module.partition(".")
    if not rest or package not in INSIDE:
        return None
    module = rest.split(".")[0]
    return INSIDE[package].index(module) if module in INSIDE[package] else None


def allowed(item: Import) -> bool:
    """Whether one import points downward."""
    if item.importer == "__init__" and item.lazily:
        return True
    if item.importer.startswith(f"{item.target}."):
        return False  # a module never asks its own package's front
    if item.target.startswith(f"{item.importer}."):
        return True  # a package's front gathers what is inside
    here, there = place(item.importer), place(item.target)
    if here is None or there is None:
        return True  # reported by the test for unknown modules
    if here != there:
        return there < here
    inside_here, inside_there = place_inside(item.importer), place_inside(item.target)
    if inside_here is None or inside_there is None or inside_here == inside_there:
        return True  # the test for cycles looks at these
    return inside_there < inside_here


def test_every_module_has_a_place() -> None:
    unknown = sorted(name for name in FILES if place(name) is None)
    assert not unknown, f"not in the table of layers: {unknown}"


def test_no_import_goes_upward() -> None:
    wrong = [str(item) for item in IMPORTS if not allowed(item)]
    assert not wrong, "\n".join(wrong)


def test_no_cycles() -> None:
    below: dict[str, set[str]] = {name: set() for name in MODULES}
    for item in IMPORTS:
        if not (item.importer == "__init__" and item.lazily):
            below[item.importer].add(item.target)
    done: set[str] = set()

    def visit(name: str, trail: tuple[str, ...]) -> None:
        if name in trail:
            pytest.fail("imports go round: " + " -> ".join((*trail[trail.index(name) :], name)))
        if name not in done:
            for target in sorted(below.get(name, ())):
                visit(target, (*trail, name))
            done.add(name)

    for name in sorted(MODULES):
        visit(name, ())


def test_no_grab_bag() -> None:
    assert not [name for name in FILES if name.split(".")[-1] in {"utils", "util", "helpers", "misc"}]


def docstrings(tree: ast.Module) -> set[int]:
    """Identities of the constants that are documentation."""
    found: set[int] = set()
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list):
            # PEP 258 style: a string after an assignment documents it, so any bare string counts.
            found.update(id(item.value) for item in body if isinstance(item, ast.Expr))
    return found


def names_torch_front_end(tree: ast.Module) -> Iterator[int]:
    """Lines on which code (documentation aside) names torch's own front end."""
    prose = docstrings(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            named = any(alias.name.startswith(TORCH_FRONT_END) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            full = [f"{node.module}.{alias.name}" for alias in node.names]
            named = any(name.startswith(TORCH_FRONT_END) for name in full)
        elif isinstance(node, ast.Attribute):
            named = node.attr == "_dynamo"
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            named = TORCH_FRONT_END in node.value
        else:
            named = False
        if named:
            yield getattr(node, "lineno", 0)


def test_only_interop_names_torchs_front_end() -> None:
    wrong = [
        f"{name}, line {line}"
        for name, tree in TREES.items()
        if name not in MAY_NAME_TORCH_FRONT_END
        for line in names_torch_front_end(tree)
    ]
    assert not wrong, wrong


def reads_version(node: ast.AST) -> bool:
    """Whether a node reads which Python this is."""
    if isinstance(node, ast.Attribute):
        return node.attr in {"version_info", "hexversion", "python_version", "python_version_tuple"}
    return isinstance(node, ast.ImportFrom) and any(
        alias.name in {"version_info", "hexversion", "python_version"} for alias in node.names
    )


def test_only_one_file_reads_the_python_version() -> None:
    wrong = [
        f"{name}, line {getattr(node, 'lineno', 0)}"
        for name, tree in TREES.items()
        if name not in MAY_READ_VERSION
        for node in ast.walk(tree)
        if reads_version(node)
    ]
    assert not wrong, wrong


def test_only_compat_reads_the_c_version_macro() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in sorted(CSRC.rglob("*.[ch]"))
        if "PY_VERSION_HEX" in path.read_text(encoding="utf-8") and path.parent != CSRC / "compat"
    ]
    assert not wrong, wrong


@pytest.mark.parametrize(
    ("importer", "target", "lazily", "expected"),
    [
        ("errors", "reasons", False, True),
        ("reasons", "errors", False, False),
        ("guards.guard", "sources", False, True),
        ("sources", "guards.guard", True, False),
        ("guards.compile", "guards.guard", False, True),
        ("guards.guard", "guards.compile", False, False),
        ("guards.guard", "guards", False, False),
        ("guards", "guards.compile", False, True),
        ("variables.tensor", "variables.base", False, True),
        ("compiled", "__init__", False, False),
        ("testing.check", "__init__", False, True),
        ("__init__", "testing", True, True),
        ("__init__", "testing", False, False),
    ],
)
def test_the_rule_itself(importer: str, target: str, lazily: bool, expected: bool) -> None:
    assert allowed(Import(importer, target, 1, lazily)) is expected
