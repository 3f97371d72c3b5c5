"""A stock of generation numbers that a mirror claims in advance, for outages."""

from __future__ import annotations

import math
import threading
from collections import deque
from collections.abc import Iterable

from tengen.remote.messages import MOST_AHEAD

_OUTAGE_S = 3600.0
_LEAST = 16
_MEASURED = 8
_AT_ONCE = 64
"""Maximum number of generations to claim per request. For each generation the run's
host writes a file, which delays other writers' claims."""


class NumberStock:
    """Generation numbers claimed for this mirror and not yet begun. Thread-safe.

    The stock should last for an hour at the pace of recent generations.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: list[int] = []
        self._last: int | None = None
        # The start times of the most recent generations, from ``time.monotonic``.
        self._begun_s: deque[float] = deque(maxlen=_MEASURED)
        self._pace_s = math.inf

    def put(self, claimed: Iterable[int]) -> None:
        """Replaces the stock with ``claimed``, the numbers that the run reserves."""
        with self._lock:
            self._claimed = sorted(claimed)

    def drop(self, sealed: set[int]) -> None:
        """Removes the numbers of generations whose segments are uploaded."""
        with self._lock:
            self._claimed = [one for one in self._claimed if one not in sealed]

    def begin(self, known: set[int], now_s: float) -> int | None:
        """Returns the lowest claimed number that is not begun, or None if none is left.

        Args:
            known: The numbers of the generations begun on this mirror.
            now_s: The current time, from ``time.monotonic``.
        """
        with self._lock:
            free = self._free(known)
            if not free:
                # Exclude the wait for new numbers from the measured pace.
                self._begun_s.clear()
                return None
            if free[0] != self._last:
                self._last = free[0]
                self._measure(now_s)
            return free[0]

    def pause(self) -> None:
        """Excludes the time until the next generation from the measured pace."""
        with self._lock:
            self._begun_s.clear()

    def num_free(self, known: set[int]) -> int:
        """Returns the number of generations that are claimed and not begun."""
        with self._lock:
            return len(self._free(known))

    def num_lacking(self, known: set[int]) -> int:
        """Returns the number of generations to claim; 0 if the stock is sufficient."""
        with self._lock:
            hour = max(_LEAST, math.ceil(_OUTAGE_S / max(1.0, self._pace_s)) + 1)
            wanted = min(MOST_AHEAD, hour + hour // 4)
            return max(0, min(_AT_ONCE, wanted - len(self._free(known))))

    def _free(self, known: set[int]) -> list[int]:
        return [number for number in self._claimed if number not in known]

    def _measure(self, now_s: float) -> None:
        begun_s = self._begun_s
        begun_s.append(now_s)
        if len(begun_s) > 1:
            mean_s = (begun_s[-1] - begun_s[0]) / (len(begun_s) - 1)
            self._pace_s = min(mean_s, begun_s[-1] - begun_s[-2])
