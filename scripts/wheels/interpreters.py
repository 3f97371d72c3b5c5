"""The Pythons of this machine that a wheel is for, and environments of theirs."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["MINORS", "Interpreter", "find_interpreters", "make_environment"]

MINORS = (11, 12, 13, 14)
"""Those of Python 3 that wheels are for; the stable ABI is that of 12."""

_ASK = (
    "import json, os, sys, sysconfig, venv, ensurepip;"
    "print(json.dumps([sys.version_info[:2], sys.executable, "
    "os.path.exists(sysconfig.get_paths()['include'] + '/Python.h')]))"
)


@dataclass(frozen=True)
class Interpreter:
    """One Python."""

    minor: int
    """The 11 of Python 3.11."""
    path: Path
    """Its program."""
    has_headers: bool
    """Whether an extension can be built for it."""


def find_interpreters(
    words: Iterable[str] = (), minors: Iterable[int] = MINORS
) -> dict[int, Interpreter]:
    """Returns a Python by its minor version, those that are named before others.

    Args:
        words: Programs, or folders that have bin/python below them.
        minors: Which are looked for.
    """
    programs = [
        str(path)
        for word in words
        for path in (
            sorted(Path(word).glob("*/bin/python")) if Path(word).is_dir() else [word]
        )
    ]
    programs += [f"python3.{minor}" for minor in minors] + ["python3"]
    found: dict[int, Interpreter] = {}
    for program in programs:
        one = _ask(program)
        if one is None or one.minor not in minors:
            continue
        if one.minor not in found or one.has_headers > found[one.minor].has_headers:
            found[one.minor] = one
    return dict(sorted(found.items()))


def make_environment(
    interpreter: Interpreter, folder: Path, packages: Sequence[str]
) -> Path:
    """Makes an environment with packages in it and returns its Python; blocks.

    One that cannot be finished leaves nothing, so that who finds it can use it.

    Raises:
        CalledProcessError: Python or pip refuses; both say why.
    """
    shutil.rmtree(folder, ignore_errors=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    try:
        subprocess.run([interpreter.path, "-m", "venv", folder], check=True)
        subprocess.run([*pip, *packages], check=True)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return python


def _ask(program: str) -> Interpreter | None:
    """Returns what a program is, or None where it is no Python 3 with venv."""
    if shutil.which(program) is None:
        return None
    done = subprocess.run([program, "-c", _ASK], capture_output=True, text=True)
    if done.returncode:  # such as a stand-in for a version that is not chosen
        return None
    (major, minor), path, has_headers = json.loads(done.stdout)
    return Interpreter(minor, Path(path), has_headers) if major == 3 else None
