"""What pip knows of tengen: its name, its checkout, and lines that install packages.

On the public index the name ``tengen`` belongs to another project, so that the
distribution is ``tengen-rl``; the import and the command are ``tengen``.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from importlib import metadata
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["DISTRIBUTION", "checkout", "pip_install", "pip_install_extra"]

DISTRIBUTION = "tengen-rl"
"""The name that pip and package indexes have for tengen."""


def pip_install(*words: str) -> str:
    """Returns the shell line that installs packages for this Python.

    The line calls this environment's own pip. If tengen was installed from a checkout
    that is still there, the line takes the versions that the checkout was tested with.

    Args:
        words: Requirements and options of ``pip install``.
    """
    folder = Path(sys.executable).parent
    found, pip = shutil.which("pip"), folder / "pip"
    command = [_short(pip)] if pip.exists() else [sys.executable, "-m", "pip"]
    if found and Path(found).parent == folder:
        command = ["pip"]
    place = checkout()
    pins = place / "constraints.txt" if place else None
    tested = ["-c", _short(pins)] if pins and pins.exists() else []
    return shlex.join([*command, "install", *tested, *words])


def pip_install_extra(extra: str) -> str:
    """Returns the shell line that installs the packages of one of tengen's extras.

    pip keeps the tengen that is installed, from wherever it came, and looks for no
    other.
    """
    return pip_install(f"{DISTRIBUTION}[{extra}]")


def checkout() -> Path | None:
    """Returns the folder that pip installed tengen from; None if it was no folder."""
    try:
        record = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    origin = json.loads(record) if record else {}
    if "dir_info" not in origin:
        return None
    return Path(unquote(urlsplit(origin["url"]).path))


def _short(path: Path) -> str:
    """Returns a path from the working directory if it lies below it."""
    path = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
