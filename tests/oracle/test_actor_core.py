"""The C++ core of an actor against numpy and readable loops."""

from __future__ import annotations

import numpy as np
import pytest

from tengen import _core
from tests.refusals import refused


@pytest.mark.parametrize("row_size", [1, 2, 4, 5, 8])
@pytest.mark.parametrize(
    ("key", "counter"),
    [
        ((2**64 - 1, 0), (0, 0, 0, 0)),
        ((7, 3), (12, 2**63, 0, 1)),
        ((7, 4), (2**64 - 2, 2**64 - 1, 2**64 - 1, 1)),
    ],
)
def test_uniform_numbers_are_those_of_numpy(
    key: tuple[int, int], counter: tuple[int, int, int, int], row_size: int
) -> None:
    fresh = np.random.Philox(
        key=np.array(key, np.uint64), counter=np.array(counter, np.uint64)
    )
    num_blocks = -(-row_size // 4)
    expected = np.random.Generator(fresh).random((6, 4 * num_blocks))[:, :row_size]
    assert np.array_equal(_core.uniforms(key, counter, 6, row_size), expected)


def draw_slowly(
    logits: np.ndarray, uniforms: np.ndarray, num_choices: tuple[int, ...]
) -> tuple[np.ndarray, np.ndarray]:
    """Samples by inverting the cumulative probabilities, one choice at a time."""
    parts = np.split(logits.astype(np.float64), np.cumsum(num_choices)[:-1], axis=1)
    choices, log_prob = [], np.zeros(len(logits))
    for place, part in enumerate(parts):
        weights = np.exp(part - part.max(axis=1, keepdims=True))
        bounds = weights.cumsum(axis=1)
        point = uniforms[:, place] * bounds[:, -1]
        chosen = np.array(
            [int((b <= p).sum()) for b, p in zip(bounds, point, strict=True)]
        )
        choices.append(chosen)
        picked = weights[np.arange(len(weights)), chosen]
        log_prob += np.log(picked / bounds[:, -1])
    return np.stack(choices, axis=1), log_prob


@pytest.mark.parametrize("num_choices", [(1,), (2,), (18,), (3, 1, 5)])
def test_choices_are_those_of_the_inverse(num_choices: tuple[int, ...]) -> None:
    rng = np.random.default_rng(sum(num_choices))
    logits = rng.normal(0, 4, (3000, sum(num_choices))).astype(np.float32)
    # More uniform numbers than choices, as for a policy that needs extra ones.
    uniforms = rng.random((3000, len(num_choices) + 2))
    choices, log_prob = _core.ChoiceDraws(num_choices).draw(logits, uniforms)
    expected, expected_log_prob = draw_slowly(logits, uniforms, num_choices)
    # None of the 3000 samples is close enough to a bound for exp() rounding to matter.
    assert np.array_equal(choices, expected)
    np.testing.assert_allclose(log_prob, expected_log_prob, rtol=1e-5, atol=1e-6)


def test_sizes_that_do_not_fit_are_refused() -> None:
    draws = _core.ChoiceDraws([2, 3])
    logits, uniforms = np.zeros((4, 5), np.float32), np.zeros((4, 2))
    with refused(_core.CoreError, "logits (4)"):
        draws.draw(logits[:, :4], uniforms)
    for wrong in (uniforms[:3], uniforms[:, :1]):
        with refused(_core.CoreError, "uniforms"):
            draws.draw(logits, wrong)
    with refused(_core.CoreError, "num_choices (0)"):
        _core.ChoiceDraws([2, 0])


def test_the_first_array_that_is_not_finite_is_named() -> None:
    whole = np.zeros((3, 2), np.float32)
    for value in (np.nan, np.inf, -np.inf):
        broken = whole.copy()
        broken[2, 1] = value
        assert _core.first_not_finite([whole, broken, broken]) == 1
    assert _core.first_not_finite([whole, whole[:, 0].copy()]) == 2


def test_columns_take_the_rows_of_a_step() -> None:
    rng = np.random.default_rng(1)
    shapes = {"screen": (2, 3), "reward": (), "flag": (), "version": ()}
    dtypes = {
        "screen": "uint8",
        "reward": "float32",
        "flag": "uint8",
        "version": "int64",
    }
    columns = {n: np.zeros((4, 5, *shapes[n]), dtypes[n]) for n in shapes}
    expected = {n: c.copy() for n, c in columns.items()}
    writer = _core.StepColumns(list(columns), list(columns.values()))
    for t in (0, 3, 4):
        rows = {
            "screen": rng.integers(0, 255, (4, 2, 3), np.uint8),
            "reward": rng.normal(size=4).astype(np.float32),
            "flag": rng.random(4) < 0.5,
        }
        writer.put(t, [*rows.values(), 7 + t])
        for name, row in rows.items():
            expected[name][:, t] = row
        expected["version"][:, t] = 7 + t
    for name, column in columns.items():
        assert np.array_equal(column, expected[name]), name


@pytest.mark.parametrize(
    ("rows", "name"),
    [
        ([np.zeros(4, np.float64)], "reward"),
        ([np.zeros(4, np.int32)], "reward"),
        ([np.zeros(3, np.float32)], "reward"),
        ([np.zeros((4, 2), np.float32)], "reward"),
        ([7], "reward"),
        ([], "rows"),
    ],
)
def test_rows_that_do_not_fit_are_refused(rows: list[object], name: str) -> None:
    column = np.zeros((4, 5), np.float32)
    writer = _core.StepColumns(["reward"], [column])
    with refused(_core.CoreError, name):
        writer.put(0, rows)
    with refused(_core.CoreError, "step (5)"):
        writer.put(5, [np.zeros(4, np.float32)])
    assert not column.any()


def test_episodes_are_counted_as_one_by_one() -> None:
    rng = np.random.default_rng(2)
    counts = _core.EpisodeCounts(3)
    returns, lengths = [0.0] * 3, [0] * 3
    for _ in range(400):
        reward = rng.normal(size=3).astype(np.float32)
        ended, cut, reset = (rng.random(3) < p for p in (0.05, 0.05, 0.1))
        num_resets, finished = counts.count(reward, ended, cut, reset)
        expected = []
        for i in range(3):
            returns[i] += float(reward[i])
            lengths[i] += not reset[i]
            if ended[i] or cut[i]:
                expected.append((returns[i], lengths[i]))
                returns[i], lengths[i] = 0.0, 0
        assert num_resets == reset.sum()
        assert finished == expected
