"""The reports of a run's inference servers, separately and combined."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tengen.observe import ServerProgress

__all__ = ["Servers"]

_LATE_S = 15.0
"""Seconds without a report after which a server is not counted, because it is being
started again."""


class Servers:
    """Keeps the last report of each server. Used by one thread at a time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._told: dict[int, tuple[float, ServerProgress]] = {}
        self._waits: dict[int, float] = {}

    def take(self, report: Mapping[str, Any]) -> None:
        """Takes a report of role ``inference``."""
        index = report["server"]
        told = ServerProgress(
            server=index,
            host=report["host"],
            model=report["model"],
            num_sessions=report["num_sessions"],
            rows_per_s=report["num_evaluations"] / max(1e-9, report["seconds"]),
            batch_rows=report["batch_rows"],
            batch_fill=min(
                1.0, report["batch_rows"] / max(1, report["batch_capacity"])
            ),
            busy=min(1.0, report["inference_busy"]),
        )
        self._told[index] = self._clock(), told
        self._waits[index] = min(1.0, report["wait_share"])

    @property
    def each(self) -> tuple[ServerProgress, ...]:
        """The servers with a recent report, by number."""
        first_s = self._clock() - _LATE_S
        return tuple(
            told for _, (at_s, told) in sorted(self._told.items()) if at_s >= first_s
        )

    @property
    def busy(self) -> float | None:
        """The share of time in which servers evaluate; None without servers."""
        return self._mean([one.busy for one in self.each])

    @property
    def batch_fill(self) -> float | None:
        """Rows of the servers' batches over their capacity; None without servers."""
        return self._mean([one.batch_fill for one in self.each])

    @property
    def wait_share(self) -> float | None:
        """The share of time in which servers wait for rows; None without servers."""
        return self._mean([self._waits[one.server] for one in self.each])

    def _mean(self, values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None
