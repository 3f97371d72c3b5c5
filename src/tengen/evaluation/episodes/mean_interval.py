"""How sure a mean of few numbers is: Student's interval."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

__all__ = ["mean_interval"]

_CONFIDENCE = 0.95
# More halvings than a float has bits change nothing.
_NUM_HALVINGS = 80


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of the mean of what the values were drawn from.

    It is exact for values from a normal distribution, and nearly so for the mean of
    many values from any other. Values that are all the same give an interval of no
    width, which says that the sample has not seen how they vary.

    Source: Student 1908, "The probable error of a mean".

    Args:
        values: At least one.

    Returns:
        Its low and its high end; None for one value, which says nothing of how they
        vary.
    """
    if len(values) < 2:
        return None
    sample = np.array(values, np.float64)
    error = float(sample.std(ddof=1)) / math.sqrt(len(values))
    mean, half = float(sample.mean()), _t_quantile(len(values) - 1) * error
    return mean - half, mean + half


def _t_quantile(freedom: int) -> float:
    """Returns what Student's t exceeds in absolute value with probability 5 %."""
    low, high = 1.0, 16.0  # 12.7 with one degree of freedom, 1.96 with very many
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        if _probability_within(middle, freedom) < _CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, freedom: int) -> float:
    """Returns the probability that Student's variable lies in [-t, t].

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    # Each term of the series is the one before by a fraction of cosine squared.
    terms = np.arange(1, (freedom - is_odd) // 2)
    fractions = cosine**2 * (2 * terms - 1 + is_odd) / (2 * terms + is_odd)
    series = 1.0 + float(np.cumprod(fractions).sum())
    if not is_odd:
        return sine * series
    return 2 / math.pi * (angle + (sine * cosine * series if freedom > 1 else 0.0))
