"""The statistics of benchmarks/strength: screening designs and intervals over seeds."""

import random
import sys
from itertools import combinations

import pytest

from tests.test_house import ROOT

sys.path.insert(0, str(ROOT / "benchmarks" / "strength"))

from intervals import interval, welch
from screening import design, effects


def test_a_design_is_balanced_in_each_factor_and_in_each_pair():
    runs = design(11)
    assert len(set(runs)) == 24
    for column in zip(*runs, strict=True):
        assert sum(column) == 12
    for first, second in combinations(zip(*runs, strict=True), 2):
        pairs = list(zip(first, second, strict=True))
        assert {pairs.count(pair) for pair in pairs} == {6}
    # The second half has all levels exchanged.
    for one, other in zip(runs[:12], runs[12:], strict=True):
        assert all(a != b for a, b in zip(one, other, strict=True))


def test_effects_are_found_whatever_pairs_of_factors_do():
    sizes = [30.0, 0.0, -12.0, 0.0, 5.0, 0.0, 0.0]
    runs = design(len(sizes))
    plain = [
        100.0 + sum(size for size, is_on in zip(sizes, run, strict=True) if is_on)
        for run in runs
    ]
    for size, found in zip(sizes, effects(len(sizes), plain), strict=True):
        assert found.size == pytest.approx(size)
    sign = [[1 if is_on else -1 for is_on in run] for run in runs]
    joint = [y + 8 * s[0] * s[2] for y, s in zip(plain, sign, strict=True)]
    for size, found in zip(sizes, effects(len(sizes), joint), strict=True):
        assert found.size == pytest.approx(size)


def test_the_interval_of_an_effect_covers_it_in_nineteen_of_twenty_screenings():
    rng = random.Random(0)
    covered = 0
    for _ in range(400):
        noisy = [40.0 * run[1] + rng.gauss(0, 50) for run in design(5)]
        low, high = effects(5, noisy)[1].interval
        covered += low <= 40.0 <= high
    assert 0.92 < covered / 400 < 0.98


def test_intervals_over_seeds_are_those_of_students_t():
    assert interval([3.0]) is None
    # The mean is 2, its standard error 1 / sqrt(3); t is 4.303.
    assert interval([1.0, 2.0, 3.0]) == pytest.approx((-0.484, 4.484), abs=1e-3)
    assert welch([1.0], [1.0, 2.0]) is None
    # Equal variances and sizes: twice the variance, and four degrees of freedom.
    low, high = welch([11.0, 12.0, 13.0], [1.0, 2.0, 3.0])
    assert (low, high) == pytest.approx((10 - 2.267, 10 + 2.267), abs=1e-3)
