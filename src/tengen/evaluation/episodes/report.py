"""The report of evaluation episodes, with confidence intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tengen.evaluation.elo import Tally


@dataclass(frozen=True)
class EpisodesReport:
    """The returns and lengths of the counted episodes, ordered by episode index."""

    returns: tuple[float, ...]
    """The undiscounted return of each counted episode; if there are several agents,
    that of the first team, the mean over its agents."""
    lengths: tuple[int, ...]
    """The number of environment steps of each counted episode."""
    num_cut: int = 0
    """Number of episodes cut at ``max_steps``; ``returns`` includes their returns."""
    team_returns: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """The returns of each team by name, if there are several teams."""
    tallies: dict[str, Tally] = field(default_factory=dict)
    """The results of each team, if there are several: the greatest return wins. In a
    match: the results of the first side in the episodes in which it had the team."""
    tally: Tally | None = None
    """The results of the first side in a match; None without a match."""
    win_return: float | None = None
    """See ``EnvSpec.win_return``."""

    @property
    def mean_return(self) -> float:
        """The mean of ``returns``."""
        return float(np.mean(self.returns))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of ``mean_return``; None for one episode."""
        return mean_interval(self.returns)

    @property
    def win_rate(self) -> float | None:
        """The share of episodes that the first team won; None if that is unknown."""
        if self.win_return is None:
            return None
        return float(np.mean(np.array(self.returns) >= self.win_return))

    @property
    def num_frames(self) -> int:
        """The total number of environment steps in all counted episodes."""
        return sum(self.lengths)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values; ``low`` and ``high`` give ``interval``."""
        low, high = self.interval or (None, None)
        return {
            "episodes": len(self.returns),
            "mean_return": self.mean_return,
            "low": low,
            "high": high,
            "interval": "95 % of the mean, Student's t",
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "frames": self.num_frames,
            "cut": self.num_cut,
            "win_rate": self.win_rate,
            "teams": {
                team: {
                    "mean_return": float(np.mean(each)),
                    **_tally_json(self.tallies[team]),
                    "returns": list(each),
                }
                for team, each in self.team_returns.items()
            },
            "match": None if self.tally is None else _tally_json(self.tally),
        }


def _tally_json(tally: Tally) -> dict[str, Any]:
    low, high = tally.score_interval
    counts = {"wins": tally.wins, "draws": tally.draws, "losses": tally.losses}
    return {**counts, "score": tally.score, "score_low": low, "score_high": high}


_CONFIDENCE = 0.95
# Bisection steps for a quantile; further steps would not change a float64.
_NUM_HALVINGS = 80


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of the mean of a distribution.

    Uses Student's t. The interval is exact for a normal distribution, and approximate
    for large samples of other distributions. If all values are equal, its width is 0.

    Source: Student 1908, "The probable error of a mean".

    Args:
        values: The sample from the distribution, at least one value.

    Returns:
        The lower and the upper bound; None for a single value, which has no variance.
    """
    if len(values) < 2:
        return None
    sample = np.array(values, np.float64)
    error = float(sample.std(ddof=1)) / math.sqrt(len(values))
    mean, half = float(sample.mean()), _t_quantile(len(values) - 1) * error
    return mean - half, mean + half


def _t_quantile(freedom: int) -> float:
    """Returns the two-sided 95 % quantile of Student's t of ``freedom`` degrees."""
    low, high = 1.0, 16.0  # The quantile is 12.7 for freedom 1 and decreases to 1.96.
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        if _probability_within(middle, freedom) < _CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, freedom: int) -> float:
    """Returns the probability that a Student's t variable lies in [-t, t].

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    # The terms of the series are cumulative products of these fractions.
    terms = np.arange(1, (freedom - is_odd) // 2)
    fractions = cosine**2 * (2 * terms - 1 + is_odd) / (2 * terms + is_odd)
    series = 1.0 + float(np.cumprod(fractions).sum())
    if not is_odd:
        return sine * series
    return 2 / math.pi * (angle + (sine * cosine * series if freedom > 1 else 0.0))
