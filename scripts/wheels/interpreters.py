"""This machine's Pythons that can use a wheel, and virtual environments."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

MINORS = (11, 12, 13, 14)
"""Minor versions of Python 3 that wheels support; the stable ABI is that of 3.12."""

_ASK = (
    "import json, os, sys, sysconfig, venv, ensurepip;"
    "print(json.dumps([sys.version_info[:2], sys.executable, "
    "os.path.exists(sysconfig.get_paths()['include'] + '/Python.h')]))"
)


@dataclass(frozen=True)
class Interpreter:
    """A Python installation."""

    minor: int
    """Minor version, such as 11 for Python 3.11."""
    path: Path
    """Path of the executable."""
    has_headers: bool
    """Whether an extension can be built for this Python."""


def find_interpreters(
    words: Iterable[str] = (), minors: Iterable[int] = MINORS
) -> dict[int, Interpreter]:
    """Returns one Python per minor version; those in ``words`` come first.

    Args:
        words: Executables, or folders that contain bin/python below them.
        minors: Minor versions to look for.
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
    """Creates a virtual environment with packages; returns its Python. Blocks.

    A failed environment is removed, so an existing environment is complete.

    Raises:
        CalledProcessError: Python or pip failed; both print the reason.
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
    """Returns a program's version and paths, or None if it is no Python 3 with venv."""
    if shutil.which(program) is None:
        return None
    done = subprocess.run([program, "-c", _ASK], capture_output=True, text=True)
    if done.returncode:  # such as a pyenv shim of a version that is not selected
        return None
    (major, minor), path, has_headers = json.loads(done.stdout)
    return Interpreter(minor, Path(path), has_headers) if major == 3 else None
