"""A screening design: the effects of up to 11 settings from 24 runs.

Plackett and Burman (1946), "The Design of Optimum Multifactorial Experiments", N = 12,
with its foldover: 12 more runs with all levels exchanged, so that effects of single
factors are not confounded with interactions of two.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from intervals import t_quantile

MAX_FACTORS = 11
# The generating row of the design for 12 runs (Plackett and Burman 1946, table).
_ROW = (1, 1, 0, 1, 1, 1, 0, 0, 0, 1, 0)


def design(num_factors: int) -> list[tuple[bool, ...]]:
    """Returns the levels of each factor in each of 24 runs.

    Args:
        num_factors: The number of factors, 1 to 11.
    """
    half = [
        tuple(bool(_ROW[(column - row) % MAX_FACTORS]) for column in range(MAX_FACTORS))
        for row in range(MAX_FACTORS)
    ]
    half.append((False,) * MAX_FACTORS)
    runs = [*half, *(tuple(not level for level in run) for run in half)]
    return [run[:num_factors] for run in runs]


class Effect(NamedTuple):
    """The effect of switching a factor on."""

    size: float
    interval: tuple[float, float]
    """The 95 % confidence interval of ``size``."""
    t: float
    """``size`` divided by its standard error."""


def effects(num_factors: int, results: Sequence[float]) -> list[Effect]:
    """Returns the effects of all factors, with the error from the residuals.

    Args:
        num_factors: The number of factors, 1 to 11.
        results: The result of each run of ``design(num_factors)``.
    """
    runs = design(num_factors)
    mean = sum(results) / len(runs)
    sizes = [
        2
        * sum(y if run[k] else -y for run, y in zip(runs, results, strict=True))
        / len(runs)
        for k in range(num_factors)
    ]
    fitted = [
        mean + sum(s / 2 if on else -s / 2 for s, on in zip(sizes, run, strict=True))
        for run in runs
    ]
    freedom = len(runs) - 1 - num_factors
    variance = sum((y - f) ** 2 for y, f in zip(results, fitted, strict=True)) / freedom
    error = 2 * math.sqrt(variance / len(runs))
    half = t_quantile(freedom) * error
    return [
        Effect(size, (size - half, size + half), size / error if error else 0.0)
        for size in sizes
    ]
