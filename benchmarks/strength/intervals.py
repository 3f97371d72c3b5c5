"""Confidence intervals of means over few seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import fmean, variance

# The 97.5 % quantiles of Student's t distribution with 1 to 30 degrees of freedom.
_T = (
    *(12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228),
    *(2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086),
    *(2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042),
)


def t_quantile(freedom: float) -> float:
    """Returns the 97.5 % quantile of Student's t, with ``freedom`` rounded down."""
    return _T[min(max(int(freedom), 1), len(_T)) - 1]


def interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of the mean; None with fewer than two values."""
    if len(values) < 2:
        return None
    half = t_quantile(len(values) - 1) * math.sqrt(variance(values) / len(values))
    return fmean(values) - half, fmean(values) + half


def welch(a: Sequence[float], b: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % interval of mean(a) - mean(b) (Welch's t interval).

    None if a side has fewer than two values.
    """
    if len(a) < 2 or len(b) < 2:
        return None
    parts = [variance(values) / len(values) for values in (a, b)]
    total = sum(parts)
    if total == 0:
        return fmean(a) - fmean(b), fmean(a) - fmean(b)
    freedom = total**2 / sum(
        part**2 / (len(values) - 1) for part, values in zip(parts, (a, b), strict=True)
    )
    half = t_quantile(freedom) * math.sqrt(total)
    return fmean(a) - fmean(b) - half, fmean(a) - fmean(b) + half
