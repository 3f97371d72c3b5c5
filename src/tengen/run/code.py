"""``RUN/code.txt``: which code, libraries and machine a run was made by."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from importlib import metadata
from pathlib import Path

from tengen.run.machine import machine_line

__all__ = ["code_text", "source_sha256"]

_LIBRARIES = ("numpy", "torch", "openvino", "onnx", "nanobind", "gymnasium")
_PACKAGE = Path(__file__).resolve().parent.parent


def code_text() -> str:
    """Returns this process's block of ``code.txt``, one ``name: value`` a line."""
    rows = {
        "tengen": _version("tengen"),
        "commit": _commit(),
        "source sha256": source_sha256(),
        "python": platform.python_version(),
        **{name: _version(name) for name in _LIBRARIES},
        "machine": machine_line(),
    }
    return "".join(f"{name}: {value}\n" for name, value in rows.items())


def source_sha256() -> str:
    """Returns one hash of every source and native file of the installed package.

    It names the code where there is no commit: an installed copy, uncommitted edits.
    """
    digest = hashlib.sha256()
    files = [*_PACKAGE.rglob("*.py"), *_PACKAGE.rglob("*.so")]
    for path in sorted(files):
        digest.update(path.relative_to(_PACKAGE).as_posix().encode() + b"\0")
        digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "absent"


def _commit() -> str:
    """Returns the commit of the checkout that the package lies in, if it does."""

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(_PACKAGE), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        return done.stdout.strip() if done.returncode == 0 else ""

    try:
        # An installed copy may lie inside somebody else's checkout (.venv).
        if not git("ls-files", str(Path(__file__).resolve())):
            return "unknown"
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.TimeoutExpired):
        return "unknown"
