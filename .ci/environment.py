#!/usr/bin/env python3
"""Make a virtual environment hold exactly what the requirement files pin, and nothing twice.

Run by the interpreter that the environment is for; needs the standard library only. A stamp in the
environment remembers which pins it holds, so a second run costs nothing; where the stamp is missing, what is
installed is looked at before anything is fetched.

    environment.py .venv requirements/base.txt requirements/test.txt
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAMP = "graphlift-pins.json"

#: Asks the environment's own interpreter which of the pins (one a line on stdin) are not met.
MISSING = """
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for line in sys.stdin:
    need = Requirement(line.strip())
    if need.marker is not None and not need.marker.evaluate():
        continue
    try:
        met = need.specifier.contains(importlib.metadata.version(need.name), prereleases=True)
    except importlib.metadata.PackageNotFoundError:
        met = False
    if not met:
        print(need)
"""


def say(text: str) -> None:
    """One line of progress."""
    print(f"[environment] {text}", flush=True)


def pins(file: Path) -> list[str]:
    """The requirements in a file, comments left out."""
    lines = (line.split(" #")[0].strip() for line in file.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def digest(file: Path) -> str:
    """What a stamp records of a requirement file: its pins and the interpreter."""
    text = "\n".join([sys.version, *pins(file)])
    return hashlib.sha256(text.encode()).hexdigest()


class Environment:
    """One virtual environment on disk."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.python = path / "bin" / "python"
        self.stamp = path / STAMP

    def create(self) -> None:
        """Make it if it is not there, or is another interpreter's."""
        if self.python.exists() and self.version() == sys.version:
            return
        say(f"making {self.path} with Python {sys.version.split()[0]}")
        try:
            venv.create(self.path, with_pip=True, clear=True, symlinks=True)
        except (subprocess.CalledProcessError, ModuleNotFoundError):
            # Some distributions ship pip but not ensurepip; the outer pip can serve the inner Python.
            venv.create(self.path, with_pip=False, clear=True, symlinks=True)

    def version(self) -> str | None:
        """`sys.version` of its interpreter, None if it does not run."""
        command = [str(self.python), "-c", "import sys; print(sys.version)"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def stamped(self) -> dict[str, str]:
        """Digests of the requirement files whose pins it is known to hold."""
        try:
            known = json.loads(self.stamp.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in known.items()}

    def missing(self, wanted: list[str]) -> list[str]:
        """The pins that are not met."""
        done = subprocess.run(
            [str(self.python), "-c", MISSING],
            input="\n".join(wanted),
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout.splitlines() if done.returncode == 0 else wanted

    def install(self, files: list[Path]) -> None:
        """Fetch what the files pin, in one go so that the versions fit together."""
        has_pip = subprocess.run(
            [str(self.python), "-m", "pip", "--version"], capture_output=True, check=False
        )
        pip = [str(self.python), "-m", "pip"]
        if has_pip.returncode:
            pip = [sys.executable, "-m", "pip", "--python", str(self.python)]
        names = [str(argument) for file in files for argument in ("-r", file)]
        command = [*pip, "install", "--disable-pip-version-check", "--progress-bar", "off", *names]
        subprocess.run(command, check=True)

    def link_sources(self) -> None:
        """Let the environment import the package from the working tree."""
        site = next((self.path / "lib").glob("python3.*/site-packages"))
        line = f"{ROOT / 'src'}\n"
        link = site / "graphlift-sources.pth"
        if not link.exists() or link.read_text(encoding="utf-8") != line:
            link.write_text(line, encoding="utf-8")

    def hold(self, files: list[Path]) -> None:
        """Bring it to what the files pin."""
        self.create()
        known = self.stamped()
        stale = [file for file in files if known.get(file.name) != digest(file)]
        lacking = self.missing([pin for file in stale for pin in pins(file)])
        if lacking:
            say(f"installing into {self.path.name}: {', '.join(lacking)}")
            self.install(stale)
        if stale:
            known.update({file.name: digest(file) for file in stale})
            self.stamp.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")
        self.link_sources()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("environment", type=Path)
    parser.add_argument("requirements", type=Path, nargs="+")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONPATH", None)
    try:
        Environment(arguments.environment.resolve()).hold([file.resolve() for file in arguments.requirements])
    except subprocess.CalledProcessError as error:
        say(f"failed: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
