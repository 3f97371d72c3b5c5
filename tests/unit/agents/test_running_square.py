"""The running mean of squares: outliers at any time, and units of any size."""

from __future__ import annotations

import math

import pytest

from tengen.agents.running_square import RunningSquare


def observed(least: float, *squares: float) -> RunningSquare:
    square = RunningSquare(least)
    for one in squares:
        square.observe(one)
    return square


@pytest.mark.parametrize("outlier", [1e12, math.inf, math.nan])
@pytest.mark.parametrize("num_before", [0, 1, 2, 500])
def test_an_outlier_is_forgotten_whenever_it_comes(
    outlier: float, num_before: int
) -> None:
    spoiled = observed(1.0, *[1.0] * num_before, outlier, *[1.0] * 70)
    assert spoiled.root < 2.0


@pytest.mark.parametrize("least", [1e-4, 0.01, 1.0, 50.0])
def test_an_outlier_is_held_to_the_average_of_small_numbers(least: float) -> None:
    square = observed(least, *[least**2] * 500, 1e12)
    assert square.root < 1.5 * least


@pytest.mark.parametrize("unit", [0.01, 1.0, 1e4])
def test_a_unit_is_known_after_a_few_batches(unit: float) -> None:
    assert observed(0.001, *[unit**2] * 10).root > 0.7 * unit


def test_before_any_batch_the_root_is_one() -> None:
    assert observed(0.01).root == 1.0


def test_a_root_is_at_least_what_is_asked_for() -> None:
    assert observed(0.01, 1e-12).root == 0.01


def test_a_resumed_average_goes_on() -> None:
    square = observed(0.01, 4.0, 1.0)
    other = RunningSquare(0.01)
    other.load(square.numbers())
    for one in (square, other):
        one.observe(9.0)
    assert other.root == square.root
