"""The command line: what this installation is made of, and what becomes of a program.

python -m graphlift env
python -m graphlift reasons
python -m graphlift explain script.py [-- arguments...]
python -m graphlift explain module:function --call "torch.ones(3), 2"
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import runpy
import sys
from collections.abc import Sequence
from dataclasses import fields
from importlib import metadata
from typing import Any

import torch

from graphlift import _C, config, events
from graphlift.compiled import nothing_given_up
from graphlift.report.explain import explain
from graphlift.report.explanation import ExplainOutput
from graphlift.report.gathered import KINDS
from graphlift.report.reasons_page import page


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    parser = argparse.ArgumentParser(prog="graphlift", description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("env", help="versions, settings, and what the C core found here")
    commands.add_parser("reasons", help="every reason for a graph break, as a page in Markdown")
    one = commands.add_parser("explain", help="run a program and tell what was captured of it")
    one.add_argument("target", help="a script (its arguments come after --), or module:function")
    one.add_argument("--call", default="", help='arguments for module:function, e.g. "torch.ones(3), 2"')
    one.add_argument("--html", help="write a page to this file instead of text to the terminal")
    mine, rest = split(sys.argv[1:] if arguments is None else arguments)
    parsed = parser.parse_args(mine)
    if parsed.command == "env":
        print("\n".join(f"{name:18} {value}" for name, value in environment().items()))
        return 0
    if parsed.command == "reasons":
        print(page(), end="")
        return 0
    if ":" in parsed.target and not parsed.target.endswith(".py"):
        output = explain_function(parsed.target, parsed.call)
    else:
        output = explain_script(parsed.target, rest)
    if parsed.html:
        output.to_html(parsed.html)
    else:
        print(output)
    return 0


def split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Arguments before and after the first ``--``."""
    if "--" not in arguments:
        return list(arguments), []
    at = list(arguments).index("--")
    return list(arguments[:at]), list(arguments[at + 1 :])


def environment() -> dict[str, str]:
    """What this installation consists of, for reports of faults."""
    changed = [
        f"{item.name}={getattr(config.current, item.name)!r}"
        for item in fields(config.Config)
        if getattr(config.current, item.name) != item.default
    ]
    return {
        "graphlift": version("graphlift"),
        "python": f"{sys.version.split()[0]} ({platform.python_implementation()})",
        "torch": torch.__version__,
        "bytecode": version("bytecode"),
        "platform": platform.platform(),
        "C core": _C.__file__ or "?",
        "hook in place": str(_C.hook_installed()),
        "changed settings": ", ".join(changed) or "none",
        "GRAPHLIFT_LOGS": os.environ.get("GRAPHLIFT_LOGS", ""),
    }


def version(distribution: str) -> str:
    """An installed distribution's version; a working tree has none."""
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "working tree"


def explain_function(target: str, call: str) -> ExplainOutput:
    """Explain ``module:function``, called with the arguments written in `call`."""
    module_name, _, path = target.partition(":")
    sys.path.insert(0, "")
    function: Any = importlib.import_module(module_name)
    for name in path.split("."):
        function = getattr(function, name)

    def arguments(*args: Any, **kwargs: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return args, kwargs

    names = {"torch": torch, "arguments": arguments}
    args, kwargs = eval(f"arguments({call})", names)
    return explain(function)(*args, **kwargs)


def explain_script(path: str, arguments: Sequence[str]) -> ExplainOutput:
    """Run a script as ``__main__`` and gather what all its compiled functions captured."""
    output = ExplainOutput(path)
    sys.argv = [path, *arguments]
    sys.path.insert(0, os.path.dirname(os.path.abspath(path)))
    with events.subscribed(output.note, *KINDS), nothing_given_up():
        runpy.run_path(path, run_name="__main__")
    return output
