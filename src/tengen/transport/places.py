"""How many clients may be at one thing at once."""

from __future__ import annotations

import threading
from collections import Counter

__all__ = ["Places"]

# Of the places that one peer may have: the rest is for the others.
_PEER_SHARE = 3 / 4


class Places:
    """Counts who is there. Thread-safe; never waits.

    Args:
        most: At once, at least 1.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._most_of_peer = max(1, int(most * _PEER_SHARE))
        self._num_taken = 0
        self._by_peer: Counter[str | None] = Counter()
        self._lock = threading.Lock()

    def take(self, peer: str | None) -> bool:
        """Takes a place; whether there was one.

        Args:
            peer: The host that it is for; None: of this host, which is the only one.
        """
        with self._lock:
            num_own = self._by_peer[peer]
            is_greedy = peer is not None and num_own >= self._most_of_peer
            if self._num_taken >= self._most or is_greedy:
                return False
            self._by_peer[peer] += 1
            self._num_taken += 1
            return True

    def leave(self, peer: str | None) -> None:
        """Gives back a place that was taken for the same peer."""
        with self._lock:
            self._num_taken -= 1
            self._by_peer[peer] -= 1
            if not self._by_peer[peer]:
                del self._by_peer[peer]
