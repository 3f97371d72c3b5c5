"""Settings of tree search, and the levels that players choose from.

The search itself is C++ (core/search) and runs inside self-play workers, matches and
sessions. ``tests/oracle/search/`` is the same search in plain Python, to be read.
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
