"""What several processes of a role report, combined into what all of them do."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen.observe import ServerProgress, batch_fill

__all__ = ["RATES", "Actors", "Players", "Servers", "num_flying"]

RATES = {"rows_per_s": "num_rows", "evaluations_per_s": "num_evaluations"}
"""Rates in the reports of all processes of a role, and what each counts."""
_RATE_S = 10.0
# Shares of an actor's time in its reports.
_SHARES = ("simulation_busy", "answer_wait", "room_wait")
_MEANS = ("mean_return", "mean_length")
_LATE_S = 15.0
"""Seconds without a report after which a server is not counted, because it is being
started again."""


class Players:
    """Reports of self-play processes. Used by one thread at a time.

    The report of a single process is passed on unchanged.

    Args:
        num_players: The processes.
    """

    def __init__(self, num_players: int) -> None:
        self._num_players = num_players
        # By process its turn's last progress report, and the rates of its last turn.
        self._flying: dict[str, Mapping[str, Any]] = {}
        self._rates: dict[str, dict[str, float]] = {}

    def count(self, num_players: int, left: Sequence[str] = ()) -> None:
        """Sets how many processes play from now on.

        Args:
            num_players: The processes.
            left: Processes that no longer play.
        """
        self._num_players = num_players
        for name in left:
            self._rates.pop(name, None)
            self._flying.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the progress of all processes, in place of one process's.

        Args:
            name: The process.
            report: The process's games, evaluations and seconds in this turn.
        """
        if self._num_players == 1 or "num_games" not in report:
            return report
        self._flying[name] = report
        flying = self._flying.values()
        rates = [
            one["num_evaluations"] / one["seconds"]
            for one in flying
            if one.get("seconds") and "num_evaluations" in one
        ]
        return {
            **report,
            "num_games": self._num_flying,
            "num_sealed": 0,  # sealed games are left out
            "num_evaluations": sum(one.get("num_evaluations", 0) for one in flying),
            "evaluations_per_s": sum(rates),
        }

    def report(
        self, name: str, index: int, report: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any]:
        """Returns one turn's report with the rates of all, and the process's index.

        Args:
            name: The process.
            index: Which process it is, from 0.
            report: Of the turn.
            seconds: How long the turn took.
        """
        if self._num_players == 1 or "num_games" not in report:
            return report
        self._flying.pop(name, None)
        if report.get("stopped"):
            self._flying[name] = report  # its unfinished games wait for the next call
        self._rates[name] = {
            rate: report[count] / max(1e-9, seconds) for rate, count in RATES.items()
        }
        totals = {
            rate: sum(one[rate] for one in self._rates.values()) for rate in RATES
        }
        return {**report, "player": index, "num_flying": self._num_flying, **totals}

    @property
    def _num_flying(self) -> int:
        """Games of the generations in progress that are not sealed yet."""
        return sum(num_flying(one) for one in self._flying.values())


class Actors:
    """Reports of the actors of environments. Used by one thread at a time."""

    def __init__(self) -> None:
        # What each actor last reached: return and length of its episodes.
        self._reached: dict[str, dict[str, float]] = {}
        # What recent turns did, and when they began.
        self._done: deque[tuple[float, dict[str, float]]] = deque()

    def count(self, num_actors: int, left: Sequence[str] = ()) -> None:
        """Removes actors that no longer act from the means; as of ``Players``."""
        for name in left:
            self._reached.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns an actor's progress as it is."""
        return report

    def report(
        self, name: str, index: int, report: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any]:
        """Returns an actor's report with its figures replaced by those of all actors.

        These are means over actors of their last episodes' returns and lengths, and
        rates and shares of the last ten seconds. Arguments are as of ``Players``.
        """
        if report["mean_return"] is not None:
            self._reached[name] = {mean: report[mean] for mean in _MEANS}
        now_s, worked_s = time.monotonic(), report["seconds"]
        done = {count: report[count] for count in RATES.values()}
        done |= {share: report[share] * worked_s for share in _SHARES}
        self._done.append((now_s - worked_s, {**done, "seconds": worked_s}))
        while self._done[0][0] < now_s - _RATE_S and len(self._done) > 1:
            self._done.popleft()
        span_s = max(1e-9, now_s - self._done[0][0])

        def total(name: str) -> float:
            return sum(one[name] for _, one in self._done)

        reached = list(self._reached.values())
        return {
            **report,
            "actor": index,
            **{rate: total(count) / span_s for rate, count in RATES.items()},
            **{share: total(share) / max(1e-9, total("seconds")) for share in _SHARES},
            **{
                mean: sum(one[mean] for one in reached) / len(reached)
                if reached
                else None
                for mean in _MEANS
            },
        }


class Servers:
    """Keeps the last report of each server. Used by one thread at a time.

    Args:
        clock: Returns seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
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
            batch_fill=min(1.0, batch_fill(report)),
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


def num_flying(report: Mapping[str, Any]) -> int:
    """Returns how many games of a turn are in no segment; the learner counts the rest.

    Args:
        report: The report or a progress report of the turn.
    """
    return max(0, int(report["num_games"]) - int(report.get("num_sealed", 0)))
