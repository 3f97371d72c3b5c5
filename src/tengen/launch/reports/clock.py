"""The time of a call, and its rates: what is done in a call over its elapsed time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Mapping
from typing import Any

from tengen.launch.budget import Spending
from tengen.observe import Progress

__all__ = ["CallClock"]


class CallClock:
    """Gives a progress the figures that depend on the time. Used by one thread.

    A rate times the elapsed time is what the call has done. It counts what ended turns
    of acting report, and of the turn in progress its evaluations.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._start_s = clock()
        self._spending: Spending | None = None
        self._num_evaluating = 0

    def begin(self, spending: Spending) -> None:
        """Takes what counts the call's budget and experience."""
        self._spending = spending

    @property
    def cpu_s(self) -> float | None:
        """CPU-seconds of the call's processes; None where nothing counts them."""
        return None if self._spending is None else round(self._spending.cpu_s, 2)

    def rate_in_turn(self, report: Mapping[str, Any]) -> float | None:
        """Takes a turn's progress; returns its evaluations a second, if it has any."""
        if not report.get("seconds") or "num_evaluations" not in report:
            return None
        self._num_evaluating = report["num_evaluations"]
        rate = self._num_evaluating / report["seconds"]
        return float(report.get("evaluations_per_s", rate))

    def end_turn(self) -> None:
        """Notes that the evaluations of the turn in progress are in its report now."""
        self._num_evaluating = 0

    def stamped(self, state: Progress) -> Progress:
        """Returns a progress with the elapsed time, the ETA and the rates of now."""
        elapsed_s = round(self._clock() - self._start_s, 2)
        now: dict[str, Any] = {"elapsed_s": elapsed_s, "eta_s": self._eta_s()}
        if self._spending is not None and elapsed_s > 0.0:
            done = {
                "rows_per_s": self._spending.num_rows,
                "evaluations_per_s": self._spending.num_evaluations
                + self._num_evaluating,
            }
            now |= {name: count / elapsed_s for name, count in done.items() if count}
        return dataclasses.replace(state, **now)

    def _eta_s(self) -> float | None:
        """Returns the seconds until the first of the call's budgets ends.

        The rate of frames is taken to be the mean since the first turn of work.
        """
        spending = self._spending
        if spending is None:
            return None
        ends = [spending.seconds_left]
        left = spending.frames_left()
        if left is not None and spending.budget.frames is not None:
            done = spending.budget.frames - left
            ends.append(left * spending.elapsed_s / done if done else None)
        return min((end for end in ends if end is not None), default=None)
