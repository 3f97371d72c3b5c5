"""Combines the reports of several processes of a role into totals and averages."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from statistics import fmean
from typing import Any

from tengen.observe import ServerProgress, batch_fill

RATES = {"rows_per_s": "num_rows", "evaluations_per_s": "num_evaluations"}
"""Maps a rate to the count in a process's report from which the rate is computed."""
_RATE_S = 10.0
"""Rates and shares of a process cover its last turns with this total duration in
seconds, and at least one turn."""
# Keys of an actor's report whose values are shares of the actor's time.
_SHARES = ("simulation_busy", "answer_wait", "room_wait")
_MEANS = ("mean_return", "mean_length")
_LATE_S = 15.0
"""Seconds without a report after which a process is left out of rates and averages,
because it is probably being restarted or waits for the run's host."""


class Acting:
    """Combines the reports of self-play processes or of actors. Not thread-safe.

    The reports of a single self-play process are returned unchanged.

    Args:
        num_processes: The number of processes.
        are_actors: Whether the processes are actors.
        clock: Returns monotonic time in seconds.
    """

    def __init__(
        self,
        num_processes: int,
        *,
        are_actors: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._num_processes = num_processes
        self._are_actors = are_actors
        # By process: the games in flight, the counts and time-weighted shares of each
        # recent turn, and an actor's latest mean return and length of episodes.
        self._flying: dict[str, Mapping[str, Any]] = {}
        self._turns: dict[str, list[dict[str, float]]] = {}
        self._told_s: dict[str, float] = {}  # when each process last reported a turn
        self._reached: dict[str, dict[str, float]] = {}

    def count(self, num_processes: int, left: Sequence[str] = ()) -> None:
        """Changes the number of processes.

        Args:
            num_processes: The new number of processes.
            left: Names of the processes that have left.
        """
        self._num_processes = num_processes
        for name in left:
            for known in (self._flying, self._turns, self._reached):
                known.pop(name, None)

    def lost(self, name: str) -> None:
        """Leaves a process that died out of rates and shares until its next report."""
        self._turns.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns the combined progress of all self-play processes.

        The progress of an actor is returned unchanged.

        Args:
            name: The name of the reporting process.
            report: The counts of games, evaluations and seconds in the process's turn.
        """
        if self._num_processes == 1 or "num_games" not in report:
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
        """Returns a turn's report with the process's index and combined statistics.

        Rates are sums over all processes. Shares, and returns and lengths of episodes,
        are means over all actors.

        Args:
            name: The name of the reporting process.
            index: The index of the process among those with its role.
            report: The report of the turn.
            seconds: The duration of the turn, in seconds.
        """
        if self._are_actors:
            rates = self._rates(name, report, seconds)
            return {**report, "actor": index, **rates, **self._means(name, report)}
        if self._num_processes == 1 or "num_games" not in report:
            return report
        rates = self._rates(name, report, seconds)
        self._flying.pop(name, None)
        if report.get("stopped"):
            self._flying[name] = report  # the next call resumes unfinished games
        return {**report, "player": index, "num_flying": self._num_flying, **rates}

    def _rates(
        self, name: str, report: Mapping[str, Any], seconds: float
    ) -> dict[str, float]:
        """Adds a turn; returns the rates, and for actors the shares, of all turns."""
        seconds = max(1e-9, report.get("seconds", seconds))
        shares = [share for share in _SHARES if share in report]
        turn = {
            "s": seconds,
            **{count: report[count] for count in RATES.values()},
            **{share: report[share] * seconds for share in shares},
        }
        now_s = self._told_s[name] = self._clock()
        turns = self._turns.setdefault(name, [])
        turns.append(turn)
        while sum(one["s"] for one in turns[1:]) >= _RATE_S:
            del turns[0]
        totals = [
            {key: sum(one[key] for one in turns) for key in turn}
            for process, turns in self._turns.items()
            # A process without reports is left out, unless its turns are long.
            if now_s - self._told_s[process] <= max(_LATE_S, 2 * turns[-1]["s"])
        ]
        total_s = sum(one["s"] for one in totals)
        return {
            rate: sum(one[count] / one["s"] for one in totals)
            for rate, count in RATES.items()
        } | {share: sum(one[share] for one in totals) / total_s for share in shares}

    def _means(self, name: str, report: Mapping[str, Any]) -> dict[str, float | None]:
        """Returns the means of the actors' latest episode returns and lengths."""
        if report["mean_return"] is not None:
            self._reached[name] = {mean: report[mean] for mean in _MEANS}
        reached = self._reached.values()
        return {mean: _mean([one[mean] for one in reached]) for mean in _MEANS}

    @property
    def _num_flying(self) -> int:
        """The number of unsealed games of the generations in progress."""
        return sum(num_flying(one) for one in self._flying.values())


class Servers:
    """Stores the latest report of each inference server. Not thread-safe.

    Args:
        clock: Returns monotonic time in seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        # By server: the time of its latest report, its progress and its wait share.
        self._told: dict[int, tuple[float, ServerProgress, float]] = {}

    def take(self, report: Mapping[str, Any]) -> None:
        """Stores a report of role ``inference``."""
        told = ServerProgress(
            server=report["server"],
            host=report["host"],
            model=report["model"],
            num_sessions=report["num_sessions"],
            rows_per_s=report["num_evaluations"] / max(1e-9, report["seconds"]),
            batch_rows=report["batch_rows"],
            batch_fill=min(1.0, batch_fill(report)),
            busy=min(1.0, report["inference_busy"]),
        )
        wait_share = min(1.0, report["wait_share"])
        self._told[told.server] = self._clock(), told, wait_share

    @property
    def each(self) -> tuple[ServerProgress, ...]:
        """The progress of each server with a recent report, sorted by server index."""
        return tuple(told for _, told, _ in self._recent())

    @property
    def busy(self) -> float | None:
        """The servers' average share of time in evaluation; None without servers."""
        return _mean([told.busy for _, told, _ in self._recent()])

    @property
    def batch_fill(self) -> float | None:
        """The average batch fill of the servers; None without servers."""
        return _mean([told.batch_fill for _, told, _ in self._recent()])

    @property
    def wait_share(self) -> float | None:
        """The servers' average share of time waiting for rows; None without servers."""
        return _mean([wait_share for *_, wait_share in self._recent()])

    def _recent(self) -> list[tuple[float, ServerProgress, float]]:
        first_s = self._clock() - _LATE_S
        return [told for _, told in sorted(self._told.items()) if told[0] >= first_s]


def _mean(values: Collection[float]) -> float | None:
    return fmean(values) if values else None


def num_flying(report: Mapping[str, Any]) -> int:
    """Returns the number of a turn's games that are not in a sealed segment yet.

    Args:
        report: The report or a progress report of the turn.
    """
    return max(0, int(report["num_games"]) - int(report.get("num_sealed", 0)))
