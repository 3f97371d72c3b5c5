"""``tengen serve``: a web server to watch runs and to play against models.

The server never changes a run. Importing this package does not import the web
framework; its submodules do.
"""

from __future__ import annotations

from dataclasses import dataclass

from tengen.config import check_range
from tengen.search import MAX_SIMULATIONS

__all__ = ["Limits"]


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Limits of a server. A request that exceeds one is rejected with a message."""

    max_simulations: int = 1600
    """Maximum number of simulations per search, 1 to 2**24."""
    num_threads: int = 1
    """Threads that search one tree, 1 to 1024."""
    max_searches: int = 1
    """Maximum number of concurrent searches, at least 1. Further searches wait."""
    max_waiting: int = 16
    """Maximum number of waiting searches. Further searches are rejected."""
    max_players: int = 3
    """Maximum number of cached models. The least recently used one is evicted."""
    look_s: float = 2.0
    """Minimum seconds between two reads of a run's files."""

    def __post_init__(self) -> None:
        """Raises UsageError if ``max_simulations`` is out of its range."""
        check_range("simulations", self.max_simulations, 1, MAX_SIMULATIONS)
