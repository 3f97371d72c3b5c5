"""The share of time in which a role works, over the last ten minutes."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

__all__ = ["BusyTimes", "Spans"]

_WINDOW_S = 600.0


class Spans:
    """When a role worked, for the last ten minutes."""

    def __init__(self) -> None:
        self._spans: deque[tuple[float, float]] = deque()

    def add(self, begun_s: float, ended_s: float) -> None:
        """Adds a span that ended no sooner than those before."""
        self._spans.append((begun_s, ended_s))
        while self._spans[0][1] < ended_s - _WINDOW_S:
            self._spans.popleft()

    def share(self, first_s: float, now_s: float, open_s: float | None = None) -> float:
        """Returns the share of the time in which it worked, in [0, 1].

        Args:
            first_s: From when on; no more than ten minutes ago counts.
            now_s: The time.
            open_s: When the work in progress began; None without any.
        """
        first_s = max(first_s, now_s - _WINDOW_S)
        spans = [*self._spans, *([] if open_s is None else [(open_s, now_s)])]
        busy_s = sum(max(0.0, end - max(first_s, begun)) for begun, end in spans)
        return min(1.0, busy_s / max(1e-9, now_s - first_s))


class BusyTimes:
    """Keeps when the roles of a call worked. Used by one thread at a time.

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
        self._spans: dict[str, Spans] = {}

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
            ended_s = max(begun_s, self._clock() - idle_s)
            self._spans.setdefault(role, Spans()).add(begun_s, ended_s)

    def shares(self) -> dict[str, float]:
        """Returns for each role that has worked its share of the time, in [0, 1].

        A turn in progress counts up to now, because its end is unknown; for a role that
        only looks for work this is almost nothing.
        """
        now_s = self._clock()
        return {
            role: self._spans.get(role, Spans()).share(
                self._start_s, now_s, self._begun_s.get(role)
            )
            for role in self._spans.keys() | self._begun_s.keys()
        }
