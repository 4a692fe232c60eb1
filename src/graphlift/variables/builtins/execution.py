"""``compile``, ``exec`` and ``eval`` of texts that are known, and of code objects: run like a class's body.

What is made of a text is kept, so that the same text gives the same code object at each capture. Mirrors
builtin_exec and builtin_eval of Python/bltinmodule.c.
"""

from __future__ import annotations
import __future__

import ast
import builtins
import functools
import re
from collections.abc import Sequence
from types import CodeType
from typing import Any, Final, NoReturn

from graphlift.heap import Handle
from graphlift.protocol import Tx, Var
from graphlift.reasons import Reason
from graphlift.sources import ModuleDictSource
from graphlift.variables import cells, namespace
from graphlift.variables.base import VariableTracker
from graphlift.variables.builtins.registry import builtin
from graphlift.variables.cells import CellVariable
from graphlift.variables.mappings import DictVariable
from graphlift.variables.slots.type_lookup import anchor

#: Flags of a code object that are handed on to what it compiles (`PyCF_MASK`).
_INHERITED: Final[int] = functools.reduce(
    lambda flags, name: flags | vars(__future__)[name].compiler_flag, __future__.all_feature_names, 0
)
#: What is no name, as the compiler warns of it where it is called, indexed or compared by identity.
_DISPLAYS: Final = (
    *(ast.Constant, ast.Tuple, ast.List, ast.ListComp, ast.Dict, ast.DictComp, ast.Set, ast.SetComp),
    *(ast.GeneratorExp, ast.JoinedStr, ast.FormattedValue),
)
#: A number with a keyword written right behind it.
_JOINED: Final = re.compile(r"(?<!\w)\d[\w.]*?(?:and|else|for|if|in|is|or|not)\b")


def _refuse(tx: Tx, why: str) -> NoReturn:
    tx.fail(Reason.UNSUPPORTED_BUILTIN, why)


def _may_warn(tree: ast.AST) -> bool:
    """Whether the compiler may warn of what this text means; it would at each run."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, _DISPLAYS):
            return True
        if isinstance(node, ast.Subscript) and isinstance(node.value, (*_DISPLAYS, ast.Lambda)):
            return True
        if isinstance(node, ast.Compare) and any(isinstance(op, (ast.Is, ast.IsNot)) for op in node.ops):
            operands = [node.left, *node.comparators]
            if any(isinstance(each, ast.Constant) and each.value is not None for each in operands):
                return True
        if isinstance(node, (ast.Assert, ast.Try)):
            return True
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Invert):  # of a bool, computed at once
            return True
    return False


@functools.lru_cache(maxsize=512)
def _compiled(source: str, file: str, mode: str, flags: int, optimize: int) -> CodeType | None:
    """The code object of a text; None where the compiler has something to say of it."""
    if "\\" in source or _JOINED.search(source):  # the parser may warn
        return None
    try:
        if _may_warn(ast.parse(source, file, mode)):
            return None
        code: CodeType = compile(source, file, mode, flags, True, optimize)
    except (SyntaxError, ValueError, OverflowError, RecursionError, MemoryError):
        return None
    return code


def _code_of(tx: Any, source: str, file: str, mode: str, flags: int = 0, optimize: int = -1) -> CodeType:
    code = _compiled(source, file, mode, flags, optimize)
    return code or _refuse(tx, f"{mode}: a text of which the compiler complains or warns")


def _inherited(tx: Any) -> int:
    frame = getattr(tx, "frame", None)
    return 0 if frame is None else int(frame.code.co_flags & _INHERITED)


def _known(tx: Tx, value: Var, *kinds: type) -> Any:
    """The value of a constant; breaks for anything else."""
    found = value.realize(tx)
    if not found.is_constant() or type(found.as_constant()) not in kinds:
        _refuse(tx, f"compiling or running {found!r}")
    return found.as_constant()


@builtin(compile)
def _compile(
    tx: Tx,
    source: Var,
    filename: Var,
    mode: Var,
    flags: Var | None = None,
    dont_inherit: Var | None = None,
    optimize: Var | None = None,
) -> Any:
    own = 0 if flags is None else _known(tx, flags, int)
    alone = dont_inherit is not None and bool(_known(tx, dont_inherit, bool, int))
    level = -1 if optimize is None else _known(tx, optimize, int)
    text, file = _known(tx, source, str), _known(tx, filename, str)
    if own & ~_INHERITED or _known(tx, mode, str) not in ("exec", "eval"):
        _refuse(tx, "compile() with flags or to something else than code")
    flags_now = own if alone else own | _inherited(tx)
    return tx.make.from_value(_code_of(tx, text, file, _known(tx, mode, str), flags_now, level), None)


@builtin(exec)
def _exec(
    tx: Tx,
    source: Var,
    given: Var | None = None,
    local: Var | None = None,
    /,
    *,
    closure: Var | None = None,
) -> None:
    if closure is not None and _known(tx, closure, type(None)) is None:
        closure = None
    code = _asked(tx, source, "exec")
    spaces = _Spaces(tx, given, local)
    if closure is not None or code.co_freevars:
        _refuse(tx, "exec() of code with a closure")
    if spaces.names is None:
        _refuse(tx, "exec() that could set local variables")
    tx.run_body(code, spaces.names, (), spaces.module_globals)


@builtin(eval)
def _eval(tx: Tx, source: Var, given: Var | None = None, local: Var | None = None, /) -> Any:
    code = _asked(tx, source, "eval")
    spaces = _Spaces(tx, given, local)
    if code.co_freevars:
        _refuse(tx, "eval() of code with a closure")
    names = spaces.names
    if names is None:
        names = tx.make.dict(variables_of(tx, tx, code.co_names))
    return tx.run_body(code, names, (), spaces.module_globals)


def _asked(tx: Tx, source: Var, mode: str) -> CodeType:
    given = _known(tx, source, str, CodeType)
    if type(given) is CodeType:
        return given
    text: str = given.lstrip(" \t") if mode == "eval" else given
    return _code_of(tx, text, "<string>", mode, _inherited(tx))


class _Spaces:
    """Where code finds and puts its names.

    Attributes:
        module_globals: the handle of the global ones.
        names: the mapping of the local ones; None: the variables of the function that runs.
    """

    __slots__ = ("module_globals", "names")

    def __init__(self, tx: Any, module_globals: Var | None, names: Var | None) -> None:
        known = _given(tx, module_globals)
        local = _given(tx, names)
        frame = getattr(tx, "frame", None)
        if known is None:
            if frame is None:
                _refuse(tx, "running a text where no function of the program does")
            self.module_globals: Handle = frame.module_globals
            self.names = frame.names if local is None else local
            if self.names is None and local is None:
                return
        else:
            self.module_globals = _globals_of(tx, known)
            self.names = known if local is None else local


def _given(tx: Tx, value: Var | None) -> VariableTracker | None:
    found: VariableTracker | None = None if value is None else value.realize(tx)
    return None if found is None or (found.is_constant() and found.as_constant() is None) else found


def _globals_of(tx: Tx, given: VariableTracker) -> Handle:
    """The handle of a dictionary as global names, which has its builtins from then on."""
    if not isinstance(given, DictVariable) or given.owner is not None or given.models is not dict:
        _refuse(tx, f"running a text with {given!r} for its global names")
    handle = given.handle
    found = namespace.lookup(tx, handle, namespace.BUILTINS)
    if found is None:
        place = anchor(tx, builtins).child(ModuleDictSource, "__dict__")
        found = tx.make.from_value(builtins.__dict__, place)
        namespace.store(tx, handle, namespace.BUILTINS, tx.make.constant(namespace.BUILTINS), found)
    if handle.real is None:
        own = found.realize(tx)
        if not isinstance(own, DictVariable):
            _refuse(tx, f"running a text with {own!r} for its builtins")
        tx.reads[id(handle), "builtins"] = own.handle
        if handle.tracker is None:
            handle.tracker = given
    return handle


def variables_of(tx: Tx, frame: Any, names: Sequence[str] | None = None) -> list[tuple[Var, Var]]:
    """Names and values of the variables of a frame that is interpreted; only some if `names` are given."""
    entries: list[tuple[Var, Var]] = []
    for key, value in frame.symbolic_locals.items():
        name = key.removesuffix(".free")
        if names is not None and name not in names:
            continue
        held = cells.load(tx, value.handle, name) if isinstance(value, CellVariable) else value
        if held is not None:
            entries.append((tx.make.constant(name), held))
    return entries
