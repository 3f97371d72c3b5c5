"""The readable reference search; tests compare the native search with it by node."""

from tests.oracle.search.search import Evaluate, ReferenceSearch, SearchResult
from tests.oracle.search.tree import Node, Proof

__all__ = ["Evaluate", "Node", "Proof", "ReferenceSearch", "SearchResult"]
