"""A failing program made small: statements go, blocks are lifted out, expressions become plain.

Works on the program's syntax tree and asks again and again whether what is left still fails in the same way.
Each question is asked in a child process, so that a crash or an endless loop answers it, too.
"""

from __future__ import annotations

import ast
import contextlib
import copy
import faulthandler
import io
import itertools
import os
import signal
import sys
import time
import warnings
from collections.abc import Callable, Iterator

from fuzz.programs import Settings
from fuzz.running import kind_of, run

Fails = Callable[[str], bool]

#: Seconds that one run may take.
PATIENCE = 20

#: What an expression is replaced by, if not by a part of it.
PLAIN = ("0", "1", "True", "'a'", "None", "[]", "{}")


def outcome(text: str, patience: int = PATIENCE) -> str:
    """How a program fails, asked in a child process: "" for not at all."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer(text, writing, patience)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        answer = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return "no end" if number == signal.SIGALRM else f"crash by signal {number}"
    return answer


def _answer(text: str, writing: int, patience: int) -> None:
    """What the child does; it does not come back."""
    faulthandler.disable()
    signal.alarm(patience)
    answer = ""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            found = run(text).differences
        answer = kind_of(found[0]) if found else ""
    except BaseException:
        answer = ""
    finally:
        os.write(writing, answer.encode())
        os._exit(0)


def shrunk(text: str, seconds: float = 120) -> str:
    """The program as small as it gets in this time; as it was if it does not fail."""
    kind = outcome(text)
    if not kind:
        return text
    end = time.monotonic() + seconds

    best = text

    def fails(candidate: str) -> bool:
        nonlocal best
        if time.monotonic() > end:
            raise TimeoutError
        if not _compiles(candidate) or outcome(candidate) != kind:
            return False
        best = candidate
        return True

    with contextlib.suppress(TimeoutError):
        text = _with_plain_settings(text, fails)
        before = ""
        while before != text:
            before = text
            for edits in (_removals, _lifts, _plainer):
                text = _edited(text, edits, fails)
    return best


def _compiles(text: str) -> bool:
    try:
        with warnings.catch_warnings(action="ignore"):
            compile(text, "<program>", "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _with_plain_settings(text: str, fails: Fails) -> str:
    """The program under the usual settings, where it fails under these, too."""
    settings, body = Settings.of(text), _without_settings(text)
    for plain in (
        Settings(),
        Settings(cut=settings.cut, choice=settings.choice),
        Settings(dynamic=settings.dynamic),
    ):
        if plain != settings and fails(plain.line() + body):
            return plain.line() + body
    return text


def _without_settings(text: str) -> str:
    return text.partition("\n")[2] if text.startswith("# dynamic=") else text


#: An edit changes a tree in place; it raises IndexError where there is nothing more to edit.
Edits = Callable[[ast.Module], Iterator[Callable[[], None]]]


def _edited(text: str, edits: Edits, fails: Fails) -> str:
    """The program with each of some edits done that leave it failing."""
    head = Settings.of(text).line()
    tree, number = ast.parse(text), 0
    while True:
        candidate = copy.deepcopy(tree)
        edit = next(itertools.islice(edits(candidate), number, None), None)
        if edit is None:
            return head + ast.unparse(tree) + "\n"
        edit()
        if fails(head + ast.unparse(candidate) + "\n"):
            tree = candidate
        else:
            number += 1


def _lists(tree: ast.Module) -> Iterator[list[ast.AST]]:
    """Every list of statements, handlers or cases, the outermost first."""
    for node in ast.walk(tree):
        for name in ("body", "orelse", "finalbody", "handlers", "cases"):
            found = getattr(node, name, None)
            if isinstance(found, list) and found:
                yield found


def _removals(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """Pieces of lists of statements go, long pieces first."""
    for statements in _lists(tree):
        if len(statements) == 1 and isinstance(statements[0], ast.Pass):
            continue
        size = len(statements)
        while size:
            for start in range(0, len(statements), size):
                yield lambda them=statements, start=start, size=size: _remove(them, start, size)
            size //= 2


def _remove(statements: list[ast.AST], start: int, size: int) -> None:
    kept = [*statements[:start], *statements[start + size :]]
    is_block = not isinstance(statements[0], ast.ExceptHandler | ast.match_case)
    statements[:] = kept or ([ast.Pass()] if is_block else [])


def _lifts(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """A block takes the place of the statement that it belongs to."""
    for statements in _lists(tree):
        for at, statement in enumerate(statements):
            if isinstance(statement, ast.FunctionDef | ast.ClassDef):
                continue
            for name in ("body", "orelse", "finalbody"):
                block = getattr(statement, name, None)
                if isinstance(block, list) and block:
                    yield lambda them=statements, at=at, block=block: them.__setitem__(
                        slice(at, at + 1), block
                    )


def _plainer(tree: ast.Module) -> Iterator[Callable[[], None]]:
    """An expression is replaced by a part of it, or by a literal; arguments and items go."""
    for node in ast.walk(tree):
        for name, value in ast.iter_fields(node):
            if isinstance(value, ast.expr) and not isinstance(
                getattr(value, "ctx", None), ast.Store | ast.Del
            ):
                for other in _replacements(value):
                    yield lambda node=node, name=name, other=other: setattr(node, name, other)
            elif (
                isinstance(value, list)
                and value
                and isinstance(value[0], ast.expr | ast.keyword | ast.withitem)
            ):
                for at in range(len(value)):
                    yield lambda value=value, at=at: value.__delitem__(at)
                    if isinstance(value[at], ast.expr) and not isinstance(
                        getattr(value[at], "ctx", None), ast.Store
                    ):
                        for other in _replacements(value[at]):
                            yield lambda value=value, at=at, other=other: value.__setitem__(at, other)


def _replacements(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.Constant | ast.Name):
        return
    for child in ast.walk(value):
        if (
            child is not value
            and isinstance(child, ast.expr)
            and isinstance(getattr(child, "ctx", ast.Load()), ast.Load)
        ):
            yield child
    for text in PLAIN:
        yield ast.parse(text, mode="eval").body


def main() -> None:
    """``python -m fuzz.shrinking FILE``: print the program of a file as small as it gets."""
    with open(sys.argv[1]) as file:
        print(shrunk(file.read(), float(sys.argv[2]) if len(sys.argv) > 2 else 120))


if __name__ == "__main__":
    main()
