"""What strangers may ask of the server at most."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.config import check_range
from tengen.search import MAX_SIMULATIONS

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one server; whatever is beyond one is refused in one line."""

    max_simulations: int = 1600
    """Of one search, 1 to 2**24."""
    num_threads: int = 1
    """That search one tree, 1 to 1024."""
    max_searches: int = 1
    """Searches at the same time, at least 1; others wait."""
    max_waiting: int = 16
    """Searches that wait; one more is told to come again."""
    max_players: int = 3
    """Models that are held in memory; the one that was asked longest ago goes."""
    max_streams: int = 64
    """Pages that are told of changes; one more is told to come again."""
    max_body_bytes: int = 64 * 1024
    """Of one request."""
    look_s: float = 2.0
    """Seconds between two looks at a run's files, at least."""

    def __post_init__(self) -> None:
        """Checks what a command line gives.

        Raises:
            UsageError: A number is out of its range.
        """
        check_range("simulations", self.max_simulations, 1, MAX_SIMULATIONS)
