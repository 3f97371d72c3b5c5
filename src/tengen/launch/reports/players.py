"""Several self-play processes, told as one to whoever shows a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

__all__ = ["Players", "num_flying"]

_RATES = {"rows_per_s": "num_rows", "evaluations_per_s": "num_evaluations"}


class Players:
    """Sums what self-play processes tell. Used by one thread at a time.

    What one process alone tells is passed on as it is.

    Args:
        num_players: The processes.
    """

    def __init__(self, num_players: int) -> None:
        self._num_players = num_players
        # By process: what its turn told on its way, and the rates of its last turn.
        self._flying: dict[str, Mapping[str, Any]] = {}
        self._rates: dict[str, dict[str, float]] = {}

    def count(self, num_players: int, left: Sequence[str] = ()) -> None:
        """Takes in how many processes play from now on.

        Args:
            num_players: The processes.
            left: Those that do no more.
        """
        self._num_players = num_players
        for name in left:
            self._rates.pop(name, None)
            self._flying.pop(name, None)

    def progress(self, name: str, report: Mapping[str, Any]) -> Mapping[str, Any]:
        """Returns what all tell, in place of what one tells on its way.

        Args:
            name: The process.
            report: Its games, evaluations and seconds of this turn.
        """
        if self._num_players == 1 or "num_games" not in report:
            return report
        self._flying[name] = report
        rates = [
            one["num_evaluations"] / one["seconds"]
            for one in self._flying.values()
            if one.get("seconds") and "num_evaluations" in one
        ]
        seconds = report.get("seconds", 0.0)
        return {
            **report,
            "num_games": self._num_flying,
            "num_sealed": 0,  # left out of it
            "num_evaluations": round(sum(rates) * seconds),
        }

    def report(
        self, name: str, index: int, report: Mapping[str, Any], seconds: float
    ) -> Mapping[str, Any]:
        """Returns one turn's report with the rates of all, and who it is from.

        Args:
            name: The process.
            index: Which of them, from 0.
            report: Of the turn.
            seconds: That the turn took.
        """
        if self._num_players == 1 or "num_games" not in report:
            return report
        self._flying.pop(name, None)
        if report.get("stopped"):
            self._flying[name] = report  # its games wait for the next call
        self._rates[name] = {
            rate: report[count] / max(1e-9, seconds) for rate, count in _RATES.items()
        }
        totals = {
            rate: sum(one[rate] for one in self._rates.values()) for rate in _RATES
        }
        return {**report, "player": index, "num_flying": self._num_flying, **totals}

    @property
    def _num_flying(self) -> int:
        """Games of the generations that are played, without those sealed already."""
        return sum(num_flying(one) for one in self._flying.values())


def num_flying(report: Mapping[str, Any]) -> int:
    """Returns how many games of a turn are in no segment: the learner counts others.

    Args:
        report: Of the turn, or on its way.
    """
    return max(0, int(report["num_games"]) - int(report.get("num_sealed", 0)))
