"""How tengen was installed: distribution name, source checkout, and pip commands.

On the public index the name ``tengen`` belongs to an unrelated project, so the
distribution is called ``tengen-rl``. The package and the command are called ``tengen``.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import sys
from pathlib import Path
from urllib.parse import unquote, urlsplit

DISTRIBUTION = "tengen-rl"
"""The name of tengen for pip and package indexes."""


def pip_install(*words: str) -> str:
    """Returns the shell command that installs packages for this Python.

    The command runs this environment's pip. If tengen was installed from a checkout
    that still exists, the command pins the versions in the checkout's constraints.txt.

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
    """Returns the shell command that installs an extra of tengen, optional packages.

    pip keeps the installed tengen, whether it is from an index or a checkout.
    """
    return pip_install(f"{DISTRIBUTION}[{extra}]")


def checkout() -> Path | None:
    """Returns the folder that pip installed tengen from; None for an index or URL."""
    from importlib import metadata  # takes 20 ms, and few commands need it

    try:
        record = metadata.distribution(DISTRIBUTION).read_text("direct_url.json")
    except metadata.PackageNotFoundError:
        return None
    origin = json.loads(record) if record else {}
    if "dir_info" not in origin:
        return None
    return Path(unquote(urlsplit(origin["url"]).path))


def _short(path: Path) -> str:
    """Returns ``path``, relative if it is inside the working directory."""
    path = Path(os.path.abspath(path))
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
