"""The reports of several self-play processes, combined into one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Players", "num_flying"]

_RATES = {"rows_per_s": "num_rows", "evaluations_per_s": "num_evaluations"}


class Players:
    """Sums the reports of self-play processes. Used by one thread at a time.

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
        rates = [
            one["num_evaluations"] / one["seconds"]
            for one in self._flying.values()
            if one.get("seconds") and "num_evaluations" in one
        ]
        return {
            **report,
            "num_games": self._num_flying,
            "num_sealed": 0,  # sealed games are left out
            "num_evaluations": sum(
                one.get("num_evaluations", 0) for one in self._flying.values()
            ),
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
            rate: report[count] / max(1e-9, seconds) for rate, count in _RATES.items()
        }
        totals = {
            rate: sum(one[rate] for one in self._rates.values()) for rate in _RATES
        }
        return {**report, "player": index, "num_flying": self._num_flying, **totals}

    @property
    def _num_flying(self) -> int:
        """Games of the generations in progress that are not sealed yet."""
        return sum(num_flying(one) for one in self._flying.values())


def num_flying(report: Mapping[str, Any]) -> int:
    """Returns how many games of a turn are in no segment; the learner counts the rest.

    Args:
        report: The report or a progress report of the turn.
    """
    return max(0, int(report["num_games"]) - int(report.get("num_sealed", 0)))
