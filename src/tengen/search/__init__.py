"""Tree search: its settings, and a slow readable twin of the native search.

The search itself is C++ (core/search) and runs inside self-play workers, matches and
sessions. To learn what it does, read `tengen.search.reference`.
"""

from tengen.search.reference import ReferenceSearch, SearchResult
from tengen.search.reference_tree import Node, Proof
from tengen.search.settings import SearchConfig

__all__ = ["Node", "Proof", "ReferenceSearch", "SearchConfig", "SearchResult"]
