"""Elo differences, and a sequential test (SPRT) between two Elo hypotheses.

The test counts pairs of games. A pair is two games of one opening, with colours
exchanged, and its score is 0, 1/2, 1, 3/2 or 2 points. The two games of a pair are
correlated, but pairs are independent, so the counts of the five pair scores have a
multinomial distribution. A hypothesis fixes only the mean of this distribution.

Source of the test: Wald 1945, "Sequential tests of statistical hypotheses" (the test
and its bounds); Li, Liu and Ying 2014, "Generalized sequential probability ratio test
for separate families of hypotheses" (the likelihood is maximized under each
hypothesis); Owen 1988, "Empirical likelihood ratio confidence intervals for a single
functional" (the maximum-likelihood multinomial with a given mean). Unlike some programs
that test engines, this module uses no normal approximation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

Z_95 = 1.959963984540054
"""Half-width of a 95 % confidence interval, in standard errors (normal
distribution)."""

ELO_LIMIT = 4000.0
"""Maximum Elo difference in reports. An interval that ends here is unbounded."""


def expected_score(difference: float) -> float:
    """Returns the expected score, in (0, 1), of a player ``difference`` Elo stronger.

    Source: Elo 1978, the logistic curve: a difference of 400 means odds of ten to one.
    """
    return 0.5 + 0.5 * math.tanh(difference * math.log(10.0) / 800.0)


def elo_of_score(score: float) -> float:
    """Returns the Elo difference at which a player's expected score is ``score``.

    Args:
        score: The mean score per game, in [0, 1].

    Returns:
        The difference, clipped to [-ELO_LIMIT, ELO_LIMIT].
    """
    if score <= 0.0:
        return -ELO_LIMIT
    if score >= 1.0:
        return ELO_LIMIT
    difference = 400.0 * math.log10(score / (1.0 - score))
    return min(max(difference, -ELO_LIMIT), ELO_LIMIT)


@dataclass(frozen=True)
class Tally:
    """Results of games between two players, from the first player's view."""

    wins: int = 0
    """Number of games that the first player won."""
    draws: int = 0
    """Number of drawn games; a draw counts as half a point."""
    losses: int = 0
    """Number of games that the first player lost."""

    def __add__(self, other: Tally) -> Tally:
        """Returns the sum of two tallies."""
        return Tally(
            self.wins + other.wins, self.draws + other.draws, self.losses + other.losses
        )

    def __neg__(self) -> Tally:
        """Returns the same results from the second player's view."""
        return Tally(self.losses, self.draws, self.wins)

    @property
    def num_games(self) -> int:
        """Total number of games: wins, draws and losses."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """The first player's points: wins plus half the draws."""
        return self.wins + 0.5 * self.draws

    @property
    def score(self) -> float:
        """The first player's points per game, in [0, 1]; 0.5 if there are no games."""
        return self.points / self.num_games if self.num_games else 0.5

    @property
    def score_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of the score, in [0, 1].

        Source: Wilson 1927, the score interval, which is valid near 0 and 1 and for few
        games. A draw counts as half a win. Draws lower the variance, which the interval
        ignores, so it is conservative.
        """
        n = self.num_games
        if n == 0:
            return 0.0, 1.0
        shrink = 1.0 + Z_95**2 / n
        centre = (self.score + Z_95**2 / (2.0 * n)) / shrink
        spread = self.score * (1.0 - self.score) / n + Z_95**2 / (4.0 * n * n)
        half = Z_95 * math.sqrt(spread) / shrink
        # Set the bounds 0 and 1 explicitly, because the sums have rounding errors.
        low = 0.0 if self.points == 0.0 else centre - half
        high = 1.0 if self.points == n else centre + half
        return low, high

    @property
    def elo(self) -> float:
        """The first player's Elo minus the second player's; always finite.

        If one player has all points, half a point is moved to the opponent, so that the
        difference is finite and grows with the number of games.
        """
        n = self.num_games
        if n == 0:
            return 0.0
        return elo_of_score(min(max(self.points, 0.5), n - 0.5) / n)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % confidence interval of ``elo``.

        An unbounded end is reported as ``-ELO_LIMIT`` or ``ELO_LIMIT``.
        """
        low, high = self.score_interval
        return min(elo_of_score(low), self.elo), max(elo_of_score(high), self.elo)

    @property
    def elo_text(self) -> str:
        """``elo`` and ``elo_interval`` as text: ``+35, 95 % from -4 to no bound``."""
        low, high = (
            "no bound" if abs(end) >= ELO_LIMIT else f"{end:+.0f}"
            for end in self.elo_interval
        )
        return f"{self.elo:+.0f}, 95 % from {low} to {high}"


NUM_PAIR_RESULTS = 5
"""Number of possible scores of a pair of games: 0, 1/2, 1, 3/2 and 2 points."""

_SCORES = np.arange(NUM_PAIR_RESULTS) / (NUM_PAIR_RESULTS - 1)
# Lower bound of denominators. It takes effect only in terms with a count of 0.
_TINY = np.finfo(np.float64).tiny
# Bisection steps; they determine the Lagrange multiplier t to double precision.
_NUM_HALVINGS = 52


@dataclass(frozen=True)
class PairedTally:
    """A's results in a match so far, counted by game and by pair of games."""

    tally: Tally = field(default_factory=Tally)
    """A's results, counted by game."""
    pairs: tuple[int, ...] = (0,) * NUM_PAIR_RESULTS
    """Numbers of complete pairs of games with 0, 1/2, 1, 3/2 and 2 points for A."""
    first_score: float | None = None
    """A's score in the first game of an incomplete pair; None if there is none."""

    def after(self, score: float) -> PairedTally:
        """Returns the results including one more game.

        Args:
            score: A's score in the added game: 1, 0.5 or 0.
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

    The likelihood of a hypothesis is the maximum over all multinomial distributions
    with the hypothesis's mean score. No prior is needed for pair scores that never
    occurred: if the mean lies outside the observed scores, the maximum gives some
    probability to 2 or to 0 points. Therefore a pair adds at most the logarithm of the
    ratio of the expected scores.

    Args:
        counts: Numbers of pairs with 0, 1/2, 1, 3/2 and 2 points, ``[..., 5]``.
        elo0: Elo difference under the null hypothesis, finite.
        elo1: Elo difference under the alternative hypothesis, finite.

    Returns:
        Finite natural logarithms, ``[...]``; positive if ``elo1`` is likelier.
    """
    seen = np.asarray(counts, np.float64)
    return _deficit(seen, expected_score(elo0)) - _deficit(seen, expected_score(elo1))


def sprt_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Returns the log-likelihood ratios at which a sequential test (SPRT) ends.

    Source: Wald 1945. The error rates are near ``alpha`` and ``beta``, but may exceed
    them: the last pair overshoots the bound, and few pairs do not determine five
    probabilities well.

    Args:
        alpha: Probability of accepting ``elo1`` if ``elo0`` is true, in (0, 0.5).
        beta: Probability of accepting ``elo0`` if ``elo1`` is true, in (0, 0.5).

    Returns:
        (lower, upper): the test accepts ``elo0`` at or below lower, and ``elo1`` at or
        above upper.
    """
    return math.log(beta / (1.0 - alpha)), math.log((1.0 - beta) / alpha)


def _deficit(counts: NDArray[np.float64], mean: float) -> NDArray[np.float64]:
    """Returns the decrease of the maximum log-likelihood due to a fixed mean.

    The maximum-likelihood multinomial with a given mean has probabilities p_i = f_i /
    (1 + t (s_i - mean)), with frequencies f and scores s. Bisection finds the t at
    which sum_i f_i (s_i - mean) / (1 + t (s_i - mean)) is 0; between its two poles,
    this sum decreases in t. If all observed scores lie on one side of the mean, t is at
    a pole. The result is stationary in t, so small errors in t matter little.
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
