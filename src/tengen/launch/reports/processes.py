"""Combines the reports of several processes of a role into totals and averages."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tengen.observe import ServerProgress, batch_fill

__all__ = ["RATES", "Actors", "Players", "Servers", "num_flying"]

RATES = {"rows_per_s": "num_rows", "evaluations_per_s": "num_evaluations"}
"""Maps a rate to the count in a process's report from which the rate is computed."""
_RATE_S = 10.0
# Keys of an actor's report whose values are shares of the actor's time.
_SHARES = ("simulation_busy", "answer_wait", "room_wait")
_MEANS = ("mean_return", "mean_length")
_LATE_S = 15.0
"""Seconds without a report after which an inference server is left out of averages,
because it is probably being restarted."""


class Players:
    """Combines the reports of self-play processes. Not thread-safe.

    The reports of a single process are returned unchanged.

    Args:
        num_players: The number of processes.
    """

    def __init__(self, num_players: int) -> None:
        self._num_players = num_players
        # The latest progress report and the last complete turn's rates, by process.
        self._flying: dict[str, Mapping[str, Any]] = {}
        self._rates: dict[str, dict[str, float]] = {}

    def count(self, num_players: int, left: Sequence[str] = ()) -> None:
        """Changes the number of processes.

        Args:
            num_players: The new number of processes.
            left: Names of the processes that no longer play.
        """
        self._num_players = num_players
        for name in left:
            self._rates.pop(name, None)
            self._flying.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the combined progress of all processes.

        Args:
            name: The name of the reporting process.
            report: The counts of games, evaluations and seconds in the process's turn.
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
            "num_sealed": 0,  # num_games already excludes sealed games
            "num_evaluations": sum(one.get("num_evaluations", 0) for one in flying),
            "evaluations_per_s": sum(rates),
        }

    def report(
        self, name: str, index: int, report: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any]:
        """Returns a turn's report with the process's index and all processes' rates.

        Args:
            name: The name of the reporting process.
            index: The index of the process among those with its role.
            report: The report of the turn.
            seconds: The duration of the turn, in seconds.
        """
        if self._num_players == 1 or "num_games" not in report:
            return report
        self._flying.pop(name, None)
        if report.get("stopped"):
            self._flying[name] = report  # the next call resumes unfinished games
        self._rates[name] = {
            rate: report[count] / max(1e-9, seconds) for rate, count in RATES.items()
        }
        totals = {
            rate: sum(one[rate] for one in self._rates.values()) for rate in RATES
        }
        return {**report, "player": index, "num_flying": self._num_flying, **totals}

    @property
    def _num_flying(self) -> int:
        """The number of unsealed games of the generations in progress."""
        return sum(num_flying(one) for one in self._flying.values())


class Actors:
    """Combines the reports of environment actors. Not thread-safe."""

    def __init__(self) -> None:
        # The latest mean return and mean length of episodes, by actor.
        self._reached: dict[str, dict[str, float]] = {}
        # The start time and totals of each recent turn.
        self._done: deque[tuple[float, dict[str, float]]] = deque()

    def count(self, num_actors: int, left: Sequence[str] = ()) -> None:
        """Removes the actors in ``left`` from the averages. Ignores ``num_actors``."""
        for name in left:
            self._reached.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns an actor's progress report unchanged."""
        return report

    def report(
        self, name: str, index: int, report: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any]:
        """Returns an actor's report with statistics combined over all actors.

        Returns and lengths of episodes are averaged over the latest reports of actors.
        Rates and shares cover the last ten seconds. For arguments see ``Players``.
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
    """Stores the latest report of each inference server. Not thread-safe.

    Args:
        clock: Returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._told: dict[int, tuple[float, ServerProgress]] = {}
        self._waits: dict[int, float] = {}

    def take(self, report: Mapping[str, Any]) -> None:
        """Stores a report of role ``inference``."""
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
        """The progress of each server with a recent report, sorted by server index."""
        first_s = self._clock() - _LATE_S
        return tuple(
            told for _, (at_s, told) in sorted(self._told.items()) if at_s >= first_s
        )

    @property
    def busy(self) -> float | None:
        """The servers' average share of time in evaluation; None without servers."""
        return self._mean([one.busy for one in self.each])

    @property
    def batch_fill(self) -> float | None:
        """The average batch fill of the servers; None without servers."""
        return self._mean([one.batch_fill for one in self.each])

    @property
    def wait_share(self) -> float | None:
        """The servers' average share of time waiting for rows; None without servers."""
        return self._mean([self._waits[one.server] for one in self.each])

    def _mean(self, values: list[float]) -> float | None:
        return sum(values) / len(values) if values else None


def num_flying(report: Mapping[str, Any]) -> int:
    """Returns the number of a turn's games that are not in a sealed segment yet.

    Args:
        report: The report or a progress report of the turn.
    """
    return max(0, int(report["num_games"]) - int(report.get("num_sealed", 0)))
