"""Settings of tree search, and the levels that players choose from.

The search is written in C++ (core/search) and runs in self-play workers, matches and
sessions. ``tests/oracle/search/`` has the same search in readable Python.
"""

from tengen.search.play_config import Level, PlayConfig, PlayPrecision, draw_seed
from tengen.search.settings import MAX_SIMULATIONS, SearchConfig

__all__ = [
    "MAX_SIMULATIONS",
    "Level",
    "PlayConfig",
    "PlayPrecision",
    "SearchConfig",
    "draw_seed",
]
