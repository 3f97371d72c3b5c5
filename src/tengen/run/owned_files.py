"""Pipes whose end tells the other side that this process has ended."""

from __future__ import annotations

import contextlib
import os
from typing import Protocol

__all__ = ["close_owned", "own_files"]


class _Open(Protocol):
    def fileno(self) -> int: ...

    def close(self) -> None: ...


def own_files(*files: _Open) -> None:
    """Keeps open files from processes that are forked from here on, also by C code.

    Otherwise the other side would wait for such a process after this one was killed.
    Close each with ``close_owned``.
    """
    from tengen import _core

    for file in files:
        _core.own_descriptor(file.fileno())


def close_owned(file: _Open) -> None:
    """Closes a file that is owned. Does nothing for one that is closed."""
    from tengen import _core

    try:
        descriptor = file.fileno()
    except (OSError, ValueError):
        return
    # Its end is closed before the number is disowned: no fork has it in between.
    with contextlib.suppress(OSError):  # too many files are open
        nothing = os.open(os.devnull, os.O_RDWR)
        os.dup2(nothing, descriptor, inheritable=False)
        os.close(nothing)
    _core.disown_descriptor(descriptor)
    file.close()
