"""A folder that is this user's alone, where others may make folders too."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tengen.errors import UsageError

__all__ = ["check_own_folder"]


def check_own_folder(name: str, folder: Path) -> None:
    """Refuses a folder that another user may have made, or may change.

    A name below ``/dev/shm`` is anybody's to take; a folder that is this user's there
    can be removed or replaced by nobody else.

    Args:
        name: The option that names the folder, for errors.
        folder: The folder itself; no link to it.

    Raises:
        UsageError: It is a link, no folder, or not this user's alone.
        OSError: It is not there, or cannot be looked at.
    """
    status = os.lstat(folder)
    if stat.S_ISLNK(status.st_mode):
        found = "a link"
    elif not stat.S_ISDIR(status.st_mode):
        found = "no folder"
    elif status.st_uid != os.geteuid():
        found = f"of user {status.st_uid}"
    elif status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        found = f"mode {stat.S_IMODE(status.st_mode):03o}"
    else:
        return
    raise UsageError(
        f"{name} ({folder}, {found}) must be a folder of user {os.geteuid()} that "
        f"nobody else can write; remove it, or choose another"
    )
