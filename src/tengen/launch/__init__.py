"""Which processes exist, and where: inline runs all roles in turn on this machine."""

from __future__ import annotations

from tengen.launch.inline import Budget, run_inline
from tengen.launch.journal import RunJournal

__all__ = ["Budget", "RunJournal", "run_inline"]
