"""Tree search: its settings, and a slow readable twin of the native search.

The search itself is C++ (core/search) and runs inside self-play workers, matches and
sessions. `tengen.search.reference` explains what it does.
"""

from tengen.search.play_config import Level, PlayConfig, PlayPrecision, draw_seed
from tengen.search.reference import ReferenceSearch, SearchResult
from tengen.search.reference_tree import Node, Proof
from tengen.search.settings import MAX_SIMULATIONS, SearchConfig

__all__ = [
    "MAX_SIMULATIONS",
    "Level",
    "Node",
    "PlayConfig",
    "PlayPrecision",
    "Proof",
    "ReferenceSearch",
    "SearchConfig",
    "SearchResult",
    "draw_seed",
]
