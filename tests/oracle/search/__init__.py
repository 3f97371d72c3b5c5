"""A readable reference search, equal to the native search node by node."""

from tests.oracle.search.search import Evaluate, ReferenceSearch, SearchResult
from tests.oracle.search.tree import Node, Proof

__all__ = ["Evaluate", "Node", "Proof", "ReferenceSearch", "SearchResult"]
