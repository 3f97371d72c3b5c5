"""Counts, gauges and waits of one role.

The loop of a role::

    metrics = Metrics("learner", clock=time.monotonic)
    before = metrics.snapshot()
    while ...:
        with metrics.waiting("store"):
            batch = sampler.next()
        with metrics.busy("step"):
            step(batch)
        metrics.count("num_rows", len(batch))
        window = Window(before, metrics.snapshot())
        window.rate("num_rows"), window.waiting("store"), window.busy("step")
"""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

__all__ = ["Metrics", "Snapshot", "Window"]


@dataclass(frozen=True)
class Snapshot:
    """Totals of one role since it started, at one instant."""

    role: str
    """Who counted."""
    time_s: float
    """The instant, in seconds of the role's clock."""
    counters: Mapping[str, float]
    """Totals that only grow."""
    gauges: Mapping[str, float]
    """Last values."""
    busy_s: Mapping[str, float]
    """Seconds of work by stage, summed over threads."""
    waits_s: Mapping[str, float]
    """Seconds of waiting by stage, summed over threads."""

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values, as events keep them."""
        return {
            "role": self.role,
            "counters": dict(self.counters),
            "gauges": dict(self.gauges),
            "busy_s": dict(self.busy_s),
            "waits_s": dict(self.waits_s),
        }


class Metrics:
    """The numbers of one role. Thread-safe; no call blocks for long.

    Args:
        role: Who counts.
        clock: Seconds from any fixed start, monotonic.
    """

    def __init__(self, role: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.role = role
        self._clock = clock
        self._lock = threading.Lock()
        self._counters: dict[str, float] = defaultdict(float)
        self._gauges: dict[str, float] = {}
        self._busy_s: dict[str, float] = defaultdict(float)
        self._waits_s: dict[str, float] = defaultdict(float)

    def count(self, name: str, amount: float = 1) -> None:
        """Adds to a counter, which starts at 0."""
        with self._lock:
            self._counters[name] += amount

    def gauge(self, name: str, value: float) -> None:
        """Sets a gauge."""
        with self._lock:
            self._gauges[name] = value

    def add_busy(self, stage: str, seconds: float) -> None:
        """Adds work that something else timed, such as the core."""
        with self._lock:
            self._busy_s[stage] += seconds

    def add_wait(self, stage: str, seconds: float) -> None:
        """Adds waiting that something else timed, such as the core."""
        with self._lock:
            self._waits_s[stage] += seconds

    @contextmanager
    def busy(self, stage: str) -> Iterator[None]:
        """Times the block as work of ``stage``."""
        start = self._clock()
        try:
            yield
        finally:
            self.add_busy(stage, self._clock() - start)

    @contextmanager
    def waiting(self, stage: str) -> Iterator[None]:
        """Times the block as waiting in ``stage``."""
        start = self._clock()
        try:
            yield
        finally:
            self.add_wait(stage, self._clock() - start)

    def snapshot(self) -> Snapshot:
        """Returns the totals of this instant."""
        with self._lock:
            return Snapshot(
                role=self.role,
                time_s=self._clock(),
                counters=dict(self._counters),
                gauges=dict(self._gauges),
                busy_s=dict(self._busy_s),
                waits_s=dict(self._waits_s),
            )


class Window:
    """What happened between two snapshots of one role.

    Args:
        before: The earlier snapshot.
        after: The later one.
    """

    def __init__(self, before: Snapshot, after: Snapshot) -> None:
        self._before = before
        self._after = after
        self.seconds = after.time_s - before.time_s

    def increase(self, name: str) -> float:
        """Returns how much a counter grew."""
        return self._after.counters.get(name, 0) - self._before.counters.get(name, 0)

    def rate(self, name: str) -> float:
        """Returns a counter's growth a second; 0 for an empty window."""
        return self.increase(name) / self.seconds if self.seconds > 0 else 0.0

    def busy(self, stage: str, num_threads: int = 1) -> float:
        """Returns the share of the threads' time spent on a stage, in [0, 1]."""
        return self._share(self._before.busy_s, self._after.busy_s, stage, num_threads)

    def waiting(self, stage: str, num_threads: int = 1) -> float:
        """Returns the share of the threads' time spent waiting, in [0, 1]."""
        return self._share(
            self._before.waits_s, self._after.waits_s, stage, num_threads
        )

    def _share(
        self,
        before: Mapping[str, float],
        after: Mapping[str, float],
        stage: str,
        num_threads: int,
    ) -> float:
        if self.seconds <= 0:
            return 0.0
        spent_s = after.get(stage, 0.0) - before.get(stage, 0.0)
        return min(1.0, max(0.0, spent_s / (self.seconds * num_threads)))
