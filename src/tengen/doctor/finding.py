"""What a check of the machine found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Finding", "State"]

State = Literal["ok", "absent", "bad"]


@dataclass(frozen=True)
class Finding:
    """One line of ``tengen doctor``."""

    text: str
    """What is there, and what follows for tengen."""
    state: State = "ok"
    """``absent``: something that not everybody needs; ``bad``: training fails."""
    fix: str = ""
    """What to type, or do, where something is missing; else empty."""
