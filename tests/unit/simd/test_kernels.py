"""The vector kernels: every set gives the same bits, and the right ones.

The exponential is tested natively, core/simd/kernels_test.cc.
"""

import numpy as np
import pytest

from tengen import _core

SETS = _core.kernel_names()
SIZES = [*range(1, 68), 81, 127, 128, 129, 225, 255, 361, 362, 400]
KINDS = ("spread", "tied", "minus infinity", "huge", "equal")


def values(kind, n):
    rng = np.random.default_rng([n, KINDS.index(kind)])
    x = rng.uniform(-4, 4, n)
    if kind == "tied":
        x = rng.integers(0, 3, n)
    elif kind == "minus infinity":
        x = np.where(rng.random(n) < 0.3, -np.inf, x)
        x[rng.integers(n)] = 1.0
    elif kind == "huge":
        x = rng.normal(size=n) * 1e30
    elif kind == "equal":
        x = np.full(n, -2.5)
    return np.asarray(x, np.float32)


def test_the_sets_of_this_processor():
    assert SETS[0] == "baseline"
    assert _core.kernel_name() == SETS[-1]
    with pytest.raises(_core.CoreError):
        _core.kernel_argmax("avx1024", np.zeros(1, np.float32))


@pytest.mark.parametrize("kind", KINDS)
def test_softmax(kind):
    for n in SIZES:
        x = values(kind, n)
        exact = np.exp(x.astype(np.float64) - x.max())
        exact /= exact.sum()
        baseline = _core.kernel_softmax("baseline", x)
        assert np.abs(np.array(baseline) - exact).max() < 1e-6
        assert sum(baseline) == pytest.approx(1, abs=1e-5)
        for name in SETS:
            assert _core.kernel_softmax(name, x) == baseline


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", SETS)
def test_argmax_is_the_first_largest(name, kind):
    for n in SIZES:
        x = values(kind, n)
        assert _core.kernel_argmax(name, x) == int(np.argmax(x))


@pytest.mark.parametrize("kind", ["spread", "tied", "minus infinity", "equal"])
@pytest.mark.parametrize("name", SETS)
def test_best_edge_is_puct_in_float32(name, kind):
    for n in SIZES:
        rng = np.random.default_rng(n)
        prior = rng.dirichlet(np.ones(n)).astype(np.float32)
        visits = rng.integers(1, 50, n).astype(np.float32)
        if kind in ("tied", "equal"):
            prior[:] = 0.125
            visits[:] = 2
        sums = values(kind, n)
        scale = np.float32(1.7)
        scores = sums / visits + prior * scale / (visits + np.float32(1))
        index, score = _core.kernel_best_edge(name, prior, visits, sums, float(scale))
        assert index == int(np.argmax(scores))
        assert score == scores[index]


@pytest.mark.parametrize("name", SETS)
def test_descents_in_flight_count_as_visits_and_first_ones_as_lost(name):
    for n in SIZES:
        rng = np.random.default_rng(n)
        prior = rng.dirichlet(np.ones(n)).astype(np.float32)
        in_flight = rng.integers(0, 3, n).astype(np.float32)
        visits = rng.integers(0, 9, n).astype(np.float32)
        sums = np.where(visits > 0, values("minus infinity", n), 0).astype(np.float32)
        scale, one = np.float32(1.7), np.float32(1)
        lost = np.float32(-1.25)
        means = np.where(visits > 0, sums / np.maximum(visits, one), lost)
        scores = means + prior * scale / (visits + in_flight + one)
        args = (prior, visits, sums, in_flight, float(scale), float(lost))
        index, score = _core.kernel_best_edge_in_flight(name, *args)
        assert index == int(np.argmax(scores))
        assert score == scores[index]
        if in_flight.max() > 0 or visits.min() == 0:
            continue
        alone = _core.kernel_best_edge(name, prior, visits, sums, float(scale))
        assert (index, score) == alone


def test_no_edge_left_is_the_first():
    sums = np.full(20, -np.inf, np.float32)
    ones = np.ones(20, np.float32)
    for name in SETS:
        assert _core.kernel_best_edge(name, ones, ones, sums, 1.0) == (0, -np.inf)
