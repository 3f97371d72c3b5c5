"""The reports of several environment actors, combined into one."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

__all__ = ["Actors"]

_RATE_S = 10.0
# Shares of an actor's time in its reports.
_SHARES = ("simulation_busy", "answer_wait", "room_wait")


class Actors:
    """Reports of all actors. Not thread-safe."""

    def __init__(self) -> None:
        # What each actor last reached: return and length of its episodes.
        self._reached: dict[str, tuple[float, float]] = {}
        # What recent turns did, and when they began.
        self._done: deque[tuple[float, dict[str, float]]] = deque()

    def forget(self, name: str) -> None:
        """Removes an actor that has left from the means.

        Args:
            name: The name of its process.
        """
        self._reached.pop(name, None)

    def report(
        self, name: str, index: int, report: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Returns an actor's report with its figures replaced by those of all actors.

        Args:
            name: The name of its process.
            index: Which actor it is.
            report: The report of its latest turn.

        Returns:
            The report, with means over actors of their last episodes' returns and
            lengths, and rates and shares of the last ten seconds.
        """
        if report["mean_return"] is not None:
            self._reached[name] = report["mean_return"], report["mean_length"]
        now_s = time.monotonic()
        seconds = report["seconds"]
        done = {"num_rows": report["num_rows"], "seconds": seconds}
        done["num_evaluations"] = report["num_evaluations"]
        done |= {name: report[name] * seconds for name in _SHARES}
        self._done.append((now_s - seconds, done))
        while self._done[0][0] < now_s - _RATE_S and len(self._done) > 1:
            self._done.popleft()
        span_s = max(1e-9, now_s - self._done[0][0])
        sums = {name: sum(one[name] for _, one in self._done) for name in done}
        shares = {name: sums[name] / max(1e-9, sums["seconds"]) for name in _SHARES}
        returns = [mean_return for mean_return, _ in self._reached.values()]
        lengths = [mean_length for _, mean_length in self._reached.values()]
        return {
            **report,
            "actor": index,
            "mean_return": sum(returns) / len(returns) if returns else None,
            "mean_length": sum(lengths) / len(lengths) if lengths else None,
            "rows_per_s": sums["num_rows"] / span_s,
            "evaluations_per_s": sums["num_evaluations"] / span_s,
            **shares,
        }
