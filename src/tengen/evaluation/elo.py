"""Elo, and a sequential test (SPRT) of two differences of ratings.

The test is on pairs of games: the two games of one opening, colours exchanged. Its
points are 0, 1/2, 1, 3/2 or 2. The games of a pair depend on each other, and pairs do
not. So the outcome of a pair is multinomial, with five values, and a hypothesis fixes
only its mean.

Source of the test: Wald 1945, "Sequential tests of statistical hypotheses" (the test
and its bounds); Li, Liu and Ying 2014, "Generalized sequential probability ratio test
for separate families of hypotheses" (both likelihoods at their maximum under their
hypothesis); Owen 1988, "Empirical likelihood ratio confidence intervals for a single
functional" (the maximum of a multinomial with a given mean). No normal approximation is
made, unlike in some programs that test engines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ELO_LIMIT",
    "NUM_PAIR_RESULTS",
    "Z_95",
    "PairedTally",
    "Tally",
    "elo_of_score",
    "expected_score",
    "log_likelihood_ratio",
    "sprt_bounds",
]

Z_95 = 1.959963984540054
"""The half-width of a 95 % confidence interval, in standard errors."""

ELO_LIMIT = 4000.0
"""The largest difference that is reported; it stands for an open end."""


def expected_score(difference: float) -> float:
    """Returns the score in (0, 1) of a player rated ``difference`` Elo higher.

    Source: Elo 1978, the logistic curve: 400 points are odds of ten to one.
    """
    return 0.5 + 0.5 * math.tanh(difference * math.log(10.0) / 800.0)


def elo_of_score(score: float) -> float:
    """Returns the Elo difference at which ``score`` is expected.

    Args:
        score: In [0, 1].

    Returns:
        Elo, in [-ELO_LIMIT, ELO_LIMIT]; a score of 0 or 1 gives the ends.
    """
    if score <= 0.0:
        return -ELO_LIMIT
    if score >= 1.0:
        return ELO_LIMIT
    difference = 400.0 * math.log10(score / (1.0 - score))
    return min(max(difference, -ELO_LIMIT), ELO_LIMIT)


@dataclass(frozen=True)
class Tally:
    """Results of games between two players, for the first one."""

    wins: int = 0
    """Games won."""
    draws: int = 0
    """Games drawn; half a point each."""
    losses: int = 0
    """Games lost."""

    def __add__(self, other: Tally) -> Tally:
        """Returns the sum."""
        return Tally(
            self.wins + other.wins, self.draws + other.draws, self.losses + other.losses
        )

    def __neg__(self) -> Tally:
        """Returns the results for the other player."""
        return Tally(self.losses, self.draws, self.wins)

    @property
    def num_games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Wins plus half the draws."""
        return self.wins + 0.5 * self.draws

    @property
    def score(self) -> float:
        """Points per game in [0, 1]; 0.5 without games."""
        return self.points / self.num_games if self.num_games else 0.5

    @property
    def score_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the score, in [0, 1].

        Source: Wilson 1927, the score interval, which holds near 0 and 1 and for few
        games. Draws count as half a win; their smaller variance is not used, so that
        the interval is never too narrow.
        """
        n = self.num_games
        if n == 0:
            return 0.0, 1.0
        shrink = 1.0 + Z_95**2 / n
        centre = (self.score + Z_95**2 / (2.0 * n)) / shrink
        spread = self.score * (1.0 - self.score) / n + Z_95**2 / (4.0 * n * n)
        half = Z_95 * math.sqrt(spread) / shrink
        # Exact if one side has all points, which rounding would miss.
        low = 0.0 if self.points == 0.0 else centre - half
        high = 1.0 if self.points == n else centre + half
        return low, high

    @property
    def elo(self) -> float:
        """Elo difference to the other player, finite.

        Of a score of 0 or 1, half a point is moved to the other side, so that more
        games without a loss give a larger difference.
        """
        n = self.num_games
        if n == 0:
            return 0.0
        return elo_of_score(min(max(self.points, 0.5), n - 0.5) / n)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of ``elo``.

        An open end is ``ELO_LIMIT``.
        """
        low, high = self.score_interval
        return min(elo_of_score(low), self.elo), max(elo_of_score(high), self.elo)

    @property
    def elo_text(self) -> str:
        """``elo`` and its interval as text: ``+35, 95 % from -4 to no bound``."""
        low, high = (
            "no bound" if abs(end) >= ELO_LIMIT else f"{end:+.0f}"
            for end in self.elo_interval
        )
        return f"{self.elo:+.0f}, 95 % from {low} to {high}"


NUM_PAIR_RESULTS = 5
"""Results of a pair of games: 0, 1/2, 1, 3/2 and 2 points."""

_SCORES = np.arange(NUM_PAIR_RESULTS) / (NUM_PAIR_RESULTS - 1)
# Keeps the poles out of logarithms and divisions; what it stands for has no weight.
_TINY = np.finfo(np.float64).tiny
# Halves the interval of the multiplier to below its rounding.
_NUM_HALVINGS = 52


@dataclass(frozen=True)
class PairedTally:
    """Results of A in the first games of a match, and in their pairs."""

    tally: Tally = field(default_factory=Tally)
    """The games."""
    pairs: tuple[int, ...] = (0,) * NUM_PAIR_RESULTS
    """Counts of complete pairs by A's points: 0, 1/2, 1, 3/2, 2."""
    first_score: float | None = None
    """A's score in the first game of an incomplete pair; None if there is none."""

    def after(self, score: float) -> PairedTally:
        """Returns the results with one more game.

        Args:
            score: A's score: 1, 0.5 or 0.
        """
        tally = self.tally + Tally(
            int(score == 1.0), int(score == 0.5), int(score == 0.0)
        )
        if self.first_score is None:
            return PairedTally(tally, self.pairs, score)
        pairs = list(self.pairs)
        pairs[round(2 * (self.first_score + score))] += 1
        return PairedTally(tally, tuple(pairs))


def log_likelihood_ratio(
    counts: ArrayLike, elo0: float, elo1: float
) -> NDArray[np.float64]:
    """Returns the log-likelihood ratio of ``elo1`` against ``elo0``.

    For each hypothesis, the likelihood is the maximum over all multinomials whose mean
    is the expected score. Outcomes that never occurred need no prior: where the mean is
    above or below all outcomes that did, 2 or 0 points get the weight that it needs. So
    a pair adds at most the logarithm of the ratio of the expected scores.

    Args:
        counts: ``[..., 5]`` counts of pairs by points: 0, 1/2, 1, 3/2, 2.
        elo0: Elo difference of one hypothesis, finite.
        elo1: Elo difference of the other one, finite.

    Returns:
        ``[...]`` natural logarithms, finite; positive in favour of ``elo1``.
    """
    seen = np.asarray(counts, np.float64)
    return _deficit(seen, expected_score(elo0)) - _deficit(seen, expected_score(elo1))


def sprt_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Returns the log-likelihood ratios at which the test ends.

    Source: Wald 1945. The bounds are approximate, because the last pair overshoots them
    and few pairs tell little about five probabilities: error rates are near the
    requested ones, not always below.

    Args:
        alpha: Probability of accepting elo1 if elo0 is true, in (0, 0.5).
        beta: Probability of accepting elo0 if elo1 is true, in (0, 0.5).

    Returns:
        (lower, upper): the test accepts elo0 at or below lower, and elo1 at or above
        upper.
    """
    return math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)


def _deficit(counts: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Returns by how much the constraint on the mean lowers the log-likelihood.

    The likeliest multinomial of a mean has p_i = f_i / (1 + t (s_i - mean)), f being
    the frequencies and s the scores. The sum below falls with t between its two poles
    and is 0 where the mean is right, which is found by halving; where all that was seen
    is on one side of the mean, it is at a pole. There the sum of logarithms is
    greatest, so that an error of t enters the result by its square.
    """
    deviations = _SCORES - mean
    low = np.full(counts.shape[:-1], -1.0 / deviations[-1])
    high = np.full(counts.shape[:-1], -1.0 / deviations[0])
    for _ in range(_NUM_HALVINGS):
        middle = 0.5 * (low + high)
        terms = counts * deviations / _denominators(middle, deviations)
        is_left = terms.sum(-1) > 0.0
        low = np.where(is_left, middle, low)
        high = np.where(is_left, high, middle)
    logs = np.log(_denominators(0.5 * (low + high), deviations))
    result: NDArray[np.float64] = (counts * logs).sum(-1)
    return result


def _denominators(
    t: NDArray[np.float64], deviations: NDArray[np.float64]
) -> NDArray[np.float64]:
    result: NDArray[np.float64] = np.maximum(1.0 + t[..., None] * deviations, _TINY)
    return result
