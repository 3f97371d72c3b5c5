"""The random streams: known answers, independence, and moments."""

import numpy as np
import pytest

from tengen._core import Rng, philox4x32

NUM_DRAWS = 100_000
# Bounds are five standard errors; the streams are fixed, so a pass stays a pass.
NUM_ERRORS = 5.0


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        # Random123 1.09, tests/kat_vectors, philox4x32 with 10 rounds.
        (
            [0, 0, 0, 0],
            [0, 0],
            [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        ),
        (
            [0xFFFFFFFF] * 4,
            [0xFFFFFFFF] * 2,
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, expected):
    assert philox4x32(counter, key) == expected


def test_a_stream_is_a_function_of_its_place():
    place = {"seed": 1, "generation": 2, "game": 3, "ply": 4, "purpose": 5}
    draws = [Rng(**place).next64() for _ in range(2)]
    assert draws[0] == draws[1]
    others = {Rng(**{**place, name: 9}).next64() for name in place}
    others.add(Rng(**{**place, "generation": 3, "game": 2}).next64())
    assert len(others | {draws[0]}) == 7


def test_uniform_is_next64_scaled():
    a, b = Rng(7), Rng(7)
    for _ in range(100):
        assert a.uniform() == (b.next64() >> 11) * 2.0**-53


def draws(method, *args, num=NUM_DRAWS):
    rng = Rng(11)
    draw = getattr(rng, method)
    return np.array([draw(*args) for _ in range(num)])


def assert_mean(values, expected):
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - expected) < NUM_ERRORS * error


def assert_moments(values, mean, variance):
    assert_mean(values, mean)
    assert_mean((values - mean) ** 2, variance)


def test_uniform_moments():
    values = draws("uniform")
    assert values.min() >= 0
    assert values.max() < 1
    assert_moments(values, 0.5, 1 / 12)


def test_normal_moments():
    values = draws("normal")
    assert_moments(values, 0.0, 1.0)
    assert_mean(values**3, 0.0)
    assert_mean(values**4, 3.0)


def test_gumbel_moments():
    assert_moments(draws("gumbel"), np.euler_gamma, np.pi**2 / 6)


@pytest.mark.parametrize("alpha", [0.03, 0.3, 1.0, 2.5, 10.0])
def test_gamma_moments(alpha):
    values = draws("gamma", alpha)
    assert values.min() >= 0
    assert_moments(values, alpha, alpha)


@pytest.mark.parametrize("bound", [1, 2, 3, 7, 225, 1 << 31])
def test_below_is_in_range_and_even(bound):
    values = draws("below", bound, num=20_000)
    assert values.min() >= 0
    assert values.max() < bound
    if bound > 1:
        assert_mean(values.astype(float), (bound - 1) / 2)
    if bound <= 7:
        counts = np.bincount(values, minlength=bound)
        error = np.sqrt(len(values) / bound)
        assert np.abs(counts - len(values) / bound).max() < NUM_ERRORS * error
