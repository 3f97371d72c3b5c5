"""``tengen serve``: a web page that shows runs, and on which people play models.

Nothing here changes a run. The web framework is imported when the command runs, and
only by the modules below this one.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.config import check_range
from tengen.search import MAX_SIMULATIONS

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Bounds of one server; a request beyond one is refused in one line."""

    max_simulations: int = 1600
    """Most simulations of one search, 1 to 2**24."""
    num_threads: int = 1
    """Threads that search one tree, 1 to 1024."""
    max_searches: int = 1
    """Searches at the same time, at least 1; others wait."""
    max_waiting: int = 16
    """Most searches that wait; a further request is told to try again."""
    max_players: int = 3
    """Most models in memory; the least recently used one is dropped."""
    look_s: float = 2.0
    """Seconds between two looks at a run's files, at least."""

    def __post_init__(self) -> None:
        """Checks what a command line gives.

        Raises:
            UsageError: A number is out of its range.
        """
        check_range("simulations", self.max_simulations, 1, MAX_SIMULATIONS)
