"""``RUN/code.txt``: which code, libraries and machine a run was made by."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from tengen.distribution import DISTRIBUTION, checkout
from tengen.run.machine import machine_line

__all__ = ["code_text", "source_sha256"]

_LIBRARIES = ("numpy", "torch", "openvino", "onnx", "gymnasium")
_PACKAGE = Path(__file__).resolve().parent.parent


def code_text() -> str:
    """Returns this process's block of ``code.txt``, lines of ``name: value``."""
    rows = {
        "tengen": _version(DISTRIBUTION),
        "commit": _commit(),
        "source sha256": source_sha256(),
        "python": platform.python_version(),
        **{name: _version(name) for name in _LIBRARIES},
        "machine": machine_line(),
    }
    return "".join(f"{name}: {value}\n" for name, value in rows.items())


def source_sha256(package: Path = _PACKAGE) -> str:
    """Returns one hash of the package's Python files, by name and content.

    It identifies code without a commit: an installed copy, or uncommitted edits.
    """
    digest = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        digest.update(path.relative_to(package).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _commit() -> str:
    """Returns the commit of the checkout that this package came from, if known."""
    folder = checkout() or _PACKAGE.parent.parent

    def git(*arguments: str) -> str:
        # Otherwise git status takes a lock, which a killed process would leave behind.
        command = ["git", "--no-optional-locks", "-C", str(folder), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        commit = git("rev-parse", "HEAD")
        changes = git("status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
    # The checkout may have moved on since the package was installed from it.
    is_same = source_sha256(folder / "src" / "tengen") == source_sha256()
    if not commit:
        return "unknown"
    return commit if is_same and not changes else f"{commit} with changes"
