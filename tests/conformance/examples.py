"""Each example of a doctest as a function, so that it can be captured.

`doctest` compiles an example as an interactive statement and runs it with `exec`. Here the statement is
made the body of a function instead, whose names are all global, as they are for the original; a bare
expression is its result, which is shown behind the call, as the interactive interpreter does. What no
function can hold (``from m import *``, annotated names) is run as `doctest` does it.
"""

from __future__ import annotations

import ast
import builtins
import doctest
import sys
import types
from collections.abc import Callable
from typing import Any

_NAME = "_example_"
_SHOW = "_show_example_"

#: Runs the code of an example, as a function, under a name.
Run = Callable[[str, types.FunctionType], Any]


class _Names(ast.NodeVisitor):
    """The names that a statement binds in its own scope."""

    def __init__(self) -> None:
        self.found: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if not isinstance(node.ctx, ast.Load):
            self.found.add(node.id)

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> None:
        self.found.add(node.name)
        for part in [*node.decorator_list, *_outside(node)]:
            self.visit(part)

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self.visit(node.args)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        self.found.update(item.asname or item.name.split(".")[0] for item in node.names)

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self.found.add(node.name)
        self.generic_visit(node)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        if node.name:
            self.found.add(node.name)
        self.generic_visit(node)

    visit_MatchStar = visit_MatchAs

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        if node.rest:
            self.found.add(node.rest)
        self.generic_visit(node)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        for inner in ast.walk(node):  # its own names are not the statement's, but for those of `:=`
            if isinstance(inner, ast.NamedExpr):
                self.visit(inner.target)

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension


def _outside(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> list[ast.AST]:
    """What of a definition is evaluated in the scope around it."""
    return [*node.bases, *node.keywords] if isinstance(node, ast.ClassDef) else [node.args]


def as_function(source: str, filename: str, flags: int) -> types.CodeType | None:
    """Code of a function that does what an interactive statement does; None where there cannot be one.

    Raises:
        SyntaxError: the statement's own.
    """
    compile(source, filename, "single", flags, True)
    tree = ast.parse(source)
    if not tree.body:
        return None
    body = [_Shown().visit(statement) for statement in tree.body]
    last = tree.body[-1]
    if isinstance(last, ast.Expr):
        body[-1] = ast.copy_location(ast.Return(last.value), last)
    names = _Names()
    for statement in tree.body:
        names.visit(statement)
    if names.found:
        body.insert(0, ast.Global(sorted(names.found)))
    module = ast.parse(f"def {_NAME}(): pass")
    module.body[0].body = body  # type: ignore[attr-defined]
    try:
        made = compile(ast.fix_missing_locations(module), filename, "exec", flags, True)
    except SyntaxError:
        return None
    return _named_as_global(next(item for item in made.co_consts if isinstance(item, types.CodeType)))


def _named_as_global(code: types.CodeType) -> types.CodeType:
    """The code with qualified names (of lambdas, of generators) as if nothing stood around it."""
    consts = (_named_as_global(item) if isinstance(item, types.CodeType) else item for item in code.co_consts)
    name = code.co_qualname.removeprefix(f"{_NAME}.<locals>.")
    return code.replace(co_consts=tuple(consts), co_qualname=name)


class _Shown(ast.NodeTransformer):
    """Shows the values of expressions within a compound statement, as an interactive one does."""

    def visit_Expr(self, node: ast.Expr) -> ast.Expr:
        call = ast.Call(ast.Name(_SHOW, ast.Load()), [node.value], [])
        return ast.copy_location(ast.Expr(ast.copy_location(call, node)), node)

    def _definition(self, node: ast.AST) -> ast.AST:
        return node  # a function's body and a class's show nothing

    visit_FunctionDef = visit_AsyncFunctionDef = visit_ClassDef = visit_Lambda = _definition


def _show(value: Any) -> None:
    if value is not None:
        sys.displayhook(value)


def run_examples_with(run: Run) -> None:
    """From now on, doctests are run through `run`; for a process that does nothing else."""

    def compile_example(source: str, filename: str, mode: str, flags: int, dont_inherit: bool) -> Any:
        function = as_function(source, filename, flags)
        if function is None:
            return compile(source, filename, mode, flags, dont_inherit)
        return filename, function

    def exec_example(compiled: Any, namespace: dict[str, Any]) -> None:
        if isinstance(compiled, types.CodeType):
            exec(compiled, namespace)
            return
        name, code = compiled
        sys.displayhook(run(name, types.FunctionType(code, namespace)))

    setattr(builtins, _SHOW, _show)
    vars(doctest).update(compile=compile_example, exec=exec_example)
