"""The numbers of generations that a mirror has in stock, for an outage of its host."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterable

from tengen.mirror.messages import MOST_AHEAD

__all__ = ["NumberStock"]

_OUTAGE_S = 3600.0
_LEAST = 16
_LOW = MOST_AHEAD * 3 // 4
_AT_ONCE = 64
"""Numbers of one question: the host writes a file for each, and no other writer of the
run gets a number meanwhile."""


class NumberStock:
    """Numbers that were claimed for this mirror and are not begun. Thread-safe.

    It is filled again once it is below what an hour of generations takes, at the pace
    of the last generation or of those before it, whichever is faster.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._claimed: list[int] = []
        self._last: int | None = None
        self._begun_s: float | None = None
        self._interval_s = math.inf
        self._mean_s = math.inf
        self._is_filling = True

    def put(self, claimed: Iterable[int]) -> None:
        """Takes all numbers that the host has for this mirror."""
        with self._lock:
            self._claimed = sorted(claimed)

    def drop(self, sealed: set[int]) -> None:
        """Forgets numbers whose segments are at the host."""
        with self._lock:
            self._claimed = [one for one in self._claimed if one not in sealed]

    def begin(self, known: set[int]) -> int | None:
        """Returns the number of the generation to begin now, or None.

        Args:
            known: Numbers that were begun here.
        """
        with self._lock:
            free = self._free(known)
            if not free:
                # How long the host is away is not how long a generation takes.
                self._begun_s = None
                return None
            if free[0] != self._last:
                self._measure()
                self._last = free[0]
            return free[0]

    def pause(self) -> None:
        """Takes down that the next generation begins late, for another reason."""
        with self._lock:
            self._begun_s = None

    def num_free(self, known: set[int]) -> int:
        """Returns how many of the numbers are not begun."""
        with self._lock:
            return len(self._free(known))

    def num_lacking(self, known: set[int]) -> int:
        """Returns how many numbers to claim now, 0 where there are enough."""
        with self._lock:
            num_free = len(self._free(known))
            pace_s = max(0.1, min(self._interval_s, self._mean_s))
            hour = max(_LEAST, math.ceil(_OUTAGE_S / pace_s) + 1)
            wanted = min(MOST_AHEAD, hour + hour // 4)
            if num_free < min(hour, _LOW):
                self._is_filling = True
            if num_free >= wanted:
                self._is_filling = False
            return min(_AT_ONCE, wanted - num_free) if self._is_filling else 0

    def _free(self, known: set[int]) -> list[int]:
        return [number for number in self._claimed if number not in known]

    def _measure(self) -> None:
        now_s = time.monotonic()
        if self._begun_s is not None:
            self._interval_s = now_s - self._begun_s
            before_s = self._interval_s if math.isinf(self._mean_s) else self._mean_s
            self._mean_s = before_s + (self._interval_s - before_s) / 4
        self._begun_s = now_s
