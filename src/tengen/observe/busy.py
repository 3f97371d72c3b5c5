"""The share of time in which each role works, where all roles work at once."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["BusyTimes"]

_WINDOW_S = 600.0


class BusyTimes:
    """Keeps when roles worked, for the last ten minutes. Used by one thread at a time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun_s: dict[str, float] = {}
        self.restart()

    def restart(self) -> None:
        """Forgets all times, for example after processes have started."""
        self._start_s = self._clock()
        self._spans: dict[str, deque[tuple[float, float]]] = {}

    def begin(self, role: str) -> None:
        """Notes that a role begins to work."""
        self._begun_s[role] = self._clock()

    def end(self, role: str, *, worked: bool, idle_s: float = 0.0) -> None:
        """Notes that a role has ended its work.

        Args:
            role: The role, which has begun before.
            worked: Whether it had anything to do; else its time does not count.
            idle_s: Seconds in which it waited for others, which do not count.
        """
        begun_s = self._begun_s.pop(role)
        if worked:
            self._spans.setdefault(role, deque()).append(
                (begun_s, max(begun_s, self._clock() - idle_s))
            )

    def shares(self) -> dict[str, float]:
        """Returns for each role that has worked its share of the time, in [0, 1].

        A turn in progress counts up to now, because its end is unknown; for a role that
        only looks for work this is almost nothing.
        """
        now_s = self._clock()
        first_s = max(self._start_s, now_s - _WINDOW_S)
        found = {}
        for role in self._spans.keys() | self._begun_s.keys():
            spans = self._spans.setdefault(role, deque())
            while spans and spans[0][1] <= first_s:
                spans.popleft()
            open_span = [(self._begun_s[role], now_s)] if role in self._begun_s else []
            busy_s = sum(
                end - max(first_s, begun) for begun, end in [*spans, *open_span]
            )
            found[role] = min(1.0, busy_s / max(1e-9, now_s - first_s))
        return found
