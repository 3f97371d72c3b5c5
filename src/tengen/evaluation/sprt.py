"""A sequential test of two hypotheses on the pairs of games of a match.

A pair is the two games of one opening, colours exchanged. Its points are 0, 1/2, 1,
3/2 or 2; the two games are far from independent, and pairs are. So the test is on
pairs: a multinomial of five outcomes, of which the hypotheses say the mean alone.

Source: Wald 1945, "Sequential tests of statistical hypotheses" (the test and its
bounds); Li, Liu and Ying 2014, "Generalized sequential probability ratio test for
separate families of hypotheses" (both likelihoods at their maximum under their
hypothesis); Owen 1988, "Empirical likelihood ratio confidence intervals for a single
functional" (the maximum of a multinomial of a given mean). No normal approximation is
made, unlike in some programs that test engines.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tengen.evaluation.elo import Tally, expected_score

__all__ = ["NUM_PAIR_RESULTS", "PairedTally", "log_likelihood_ratio", "sprt_bounds"]

NUM_PAIR_RESULTS = 5
"""Results of a pair of games: 0, 1/2, 1, 3/2 and 2 points."""

_SCORES = np.arange(NUM_PAIR_RESULTS) / (NUM_PAIR_RESULTS - 1)
# Keeps the poles out of logarithms and divisions; what it stands for has no weight.
_TINY = np.finfo(np.float64).tiny
# Halves the interval of the multiplier to below its rounding.
_NUM_HALVINGS = 52


@dataclass(frozen=True)
class PairedTally:
    """Results of the first games of a match, as A sees them, with their pairs."""

    tally: Tally = field(default_factory=Tally)
    """The games."""
    pairs: tuple[int, ...] = (0,) * NUM_PAIR_RESULTS
    """Whole pairs by A's points: 0, 1/2, 1, 3/2, 2."""
    first_score: float | None = None
    """A's score in the first game of a pair whose second is to come."""

    def after(self, score: float) -> PairedTally:
        """Returns the results with the next game.

        Args:
            score: A's, 1, 0.5 or 0.
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
    """Returns how much likelier the pairs are at ``elo1`` than at ``elo0``.

    It is the logarithm of the ratio of the greatest likelihoods among the multinomials
    whose mean is the expected score at either difference. Results that were never seen
    need no prior: a hypothesis that is above or below all that was seen gives the 0 or
    the 2 points as much weight as its mean needs. So a pair says at most the logarithm
    of the ratio of the expected scores, and few pairs never say much.

    Args:
        counts: ``[..., 5]`` pairs by points, 0, 1/2, 1, 3/2, 2; at least 0.
        elo0: Difference of ratings of the one hypothesis, finite.
        elo1: That of the other.

    Returns:
        ``[...]`` natural logarithms, finite; positive speaks for ``elo1``.
    """
    seen = np.asarray(counts, np.float64)
    return _deficit(seen, expected_score(elo0)) - _deficit(seen, expected_score(elo1))


def sprt_bounds(alpha: float, beta: float) -> tuple[float, float]:
    """Returns the ratios at which the test ends, as natural logarithms.

    Source: Wald 1945. They are approximate: the last pair overshoots them, and few
    pairs say little of the five shares, so that error rates come out near what was
    asked for and not below it.

    Args:
        alpha: How often elo1 may be taken for true where elo0 is, in (0, 0.5).
        beta: How often elo0 where elo1 is, in (0, 0.5).

    Returns:
        (lower, upper): at or below lower the test is for elo0, at or above upper for
        elo1.
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
