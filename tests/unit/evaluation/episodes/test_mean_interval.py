"""Student's interval against printed tables and against its promise."""

from __future__ import annotations

import math

import numpy as np
import pytest

from tengen.evaluation.episodes.play import mean_interval

# Two-sided 5 %, by degrees of freedom, as tables print them.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 30: 2.042, 99: 1.984}


@pytest.mark.parametrize("freedom", TABLE)
def test_the_table(freedom: int) -> None:
    num_values = freedom + 1
    # Half are 1 above the mean and half 1 below, or one is the mean.
    values = [7.0 + (-1) ** i for i in range(num_values - num_values % 2)]
    values += [7.0] * (num_values % 2)
    spread = math.sqrt((num_values - num_values % 2) / freedom)
    interval = mean_interval(values)
    assert interval is not None
    half = TABLE[freedom] * spread / math.sqrt(num_values)
    assert interval == pytest.approx((7 - half, 7 + half), rel=2e-4)


def test_very_many_values_are_as_the_normal_distribution_says() -> None:
    values = np.tile([0.0, 2.0], 200_000)
    interval = mean_interval(values.tolist())
    assert interval is not None
    half = 1.959964 / math.sqrt(len(values))
    assert interval == pytest.approx((1 - half, 1 + half), abs=1e-7)


def test_one_value_and_equal_values() -> None:
    assert mean_interval([3.0]) is None
    assert mean_interval([3.0, 3.0, 3.0]) == (3.0, 3.0)


def test_nineteen_of_twenty_intervals_hold_the_mean() -> None:
    """Of five values each, where a normal quantile would give 88 %."""
    samples = np.random.default_rng(1).normal(4.0, 3.0, (4000, 5))
    intervals = [mean_interval(row.tolist()) for row in samples]
    share = np.mean([pair is not None and pair[0] < 4 < pair[1] for pair in intervals])
    assert share == pytest.approx(0.95, abs=0.015)
