"""Draws of actions against the learner's distributions and exact probabilities."""

import math

import numpy as np
import pytest
import torch

from tengen.actors import make_action_draws
from tengen.envs import ActionSpec
from tengen.losses import make_distribution

# Parts' choices, an action's shape, outputs of a row.
KINDS = [
    ((5,), (), 5),
    ((3,), (1,), 3),
    ((2, 1, 4), (3,), 7),
    ((), (), 2),
    ((), (3,), 6),
]
# The largest float64 below 1, and 0.
LAST = np.nextafter(1.0, 0.0)


def outputs_of(num_rows, num_outputs, scale):
    rng = np.random.default_rng(5)
    return (scale * rng.normal(size=(num_rows, num_outputs))).astype(np.float32)


def torch_log_prob(num_choices, shape, outputs, actions):
    distribution = make_distribution(num_choices, shape)
    result = distribution.log_prob(
        torch.from_numpy(outputs), torch.from_numpy(np.ascontiguousarray(actions))
    ).numpy()
    return result


@pytest.mark.parametrize("scale", [0.1, 1.0, 10.0])
@pytest.mark.parametrize(("num_choices", "shape", "num_outputs"), KINDS)
def test_log_probabilities_are_those_of_the_learner(
    num_choices, shape, num_outputs, scale
):
    draws = make_action_draws(num_choices, shape)
    outputs = outputs_of(2000, num_outputs, scale)
    uniforms = np.random.default_rng(6).random((2000, draws.num_uniforms))
    actions, log_prob = draws.draw(outputs, uniforms)
    assert actions.shape == (2000, *shape)
    assert actions.dtype == (np.int64 if num_choices else np.float32)
    assert log_prob.dtype == np.float32
    expected = torch_log_prob(num_choices, shape, outputs, actions)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-5)
    again, _ = draws.draw(outputs, uniforms)
    np.testing.assert_array_equal(again, actions)


def test_choices_are_drawn_as_often_as_they_are_probable():
    # Even steps through [0, 1): each count is exact to one.
    weights = np.array([1.0, 0.0, 3.0, 4.0, 2.0])
    with np.errstate(divide="ignore"):
        logits = np.maximum(np.log(weights), -1e4).astype(np.float32) + 7.0
    num_draws = 10_000
    uniforms = (np.arange(num_draws) + 0.5)[:, None] / num_draws
    draws = make_action_draws((5,), ())
    actions, log_prob = draws.draw(np.tile(logits, (num_draws, 1)), uniforms)
    counts = np.bincount(actions, minlength=5)
    np.testing.assert_allclose(counts, weights / 10 * num_draws, atol=1)
    assert counts[1] == 0
    np.testing.assert_allclose(np.exp(log_prob), weights[actions] / 10, rtol=1e-5)


def test_parts_are_drawn_each_by_itself():
    # Joint frequencies of 2 by 3 choices, five standard deviations.
    first, second = np.array([0.3, 0.7]), np.array([0.2, 0.5, 0.3])
    logits = np.log(np.concatenate([first, second])).astype(np.float32)
    num_draws = 100_000
    draws = make_action_draws((2, 3), (2,))
    uniforms = np.random.default_rng(1).random((num_draws, draws.num_uniforms))
    actions, _ = draws.draw(np.tile(logits, (num_draws, 1)), uniforms)
    counts = np.zeros((2, 3))
    np.add.at(counts, (actions[:, 0], actions[:, 1]), 1)
    expected = first[:, None] * second
    bound = 5 * np.sqrt(expected * (1 - expected) / num_draws)
    assert (np.abs(counts / num_draws - expected) < bound).all()


def test_numbers_are_drawn_from_independent_gaussians():
    outputs = np.array([1.0, -2.0, math.log(0.5), math.log(3.0)], np.float32)
    num_draws = 100_000
    draws = make_action_draws((), (2,))
    uniforms = np.random.default_rng(2).random((num_draws, draws.num_uniforms))
    actions, _ = draws.draw(np.tile(outputs, (num_draws, 1)), uniforms)
    normals = np.sort((actions - [1.0, -2.0]) / [0.5, 3.0], axis=0)
    # Kolmogorov and Smirnov: beyond 2 / sqrt(n) once in 1500 times.
    ranks = (np.arange(num_draws) + 0.5) / num_draws
    for column in normals.T:
        exact = [0.5 * math.erfc(-x / math.sqrt(2.0)) for x in column.tolist()]
        assert np.abs(np.array(exact) - ranks).max() < 2 / math.sqrt(num_draws)
    correlation = np.corrcoef(actions.T)[0, 1]
    assert abs(correlation) < 5 / math.sqrt(num_draws)


@pytest.mark.parametrize("uniform", [0.0, LAST])
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e38])
@pytest.mark.parametrize(("num_choices", "shape", "num_outputs"), KINDS)
def test_extreme_outputs_and_uniforms_draw_actions_with_finite_log_probabilities(
    num_choices, shape, num_outputs, scale, uniform
):
    draws = make_action_draws(num_choices, shape)
    outputs = outputs_of(100, num_outputs, scale)
    actions, log_prob = draws.draw(outputs, np.full((100, draws.num_uniforms), uniform))
    assert np.isfinite(log_prob).all()
    assert np.isfinite(actions).all()
    if num_choices:
        assert (actions >= 0).all()
        assert (actions < (num_choices if shape else num_choices[0])).all()
        assert (log_prob > -2000).all()  # no choice whose weight is 0 in float64
    expected = torch_log_prob(num_choices, shape, outputs, actions)
    np.testing.assert_allclose(log_prob, expected, rtol=1e-5, atol=1e-5)


BOUNDED = ActionSpec(
    shape=(4,), low=(0.0, -2.0, -np.inf, 5.0), high=(1000.0, 2.0, 1.0, 5.0)
)


def test_numbers_with_bounds_are_drawn_on_the_scale_of_their_bounds():
    assert BOUNDED.is_bounded == (True, True, False, True)
    assert BOUNDED.scale == ((500.0, 0.0, 0.0, 5.0), (500.0, 2.0, 1.0, 1.0))
    outputs = outputs_of(2000, 8, 1.0)
    plain, scaled = (
        make_action_draws((), (4,)),
        make_action_draws((), (4,), BOUNDED.scale),
    )
    uniforms = np.random.default_rng(6).random((2000, plain.num_uniforms))
    numbers, _ = plain.draw(outputs, uniforms)
    actions, log_prob = scaled.draw(outputs, uniforms)
    wanted = (500.0, 0.0, 0.0, 5.0) + numbers * (500.0, 2.0, 1.0, 1.0)
    np.testing.assert_allclose(actions, wanted, rtol=1e-5, atol=1e-4)
    greedy = (500.0, 0.0, 0.0, 5.0) + outputs[:, :4] * (500.0, 2.0, 1.0, 1.0)
    np.testing.assert_allclose(scaled.greedy(outputs), greedy, rtol=1e-6, atol=1e-6)
    distribution = make_distribution((), (4,), BOUNDED.scale)
    theirs = distribution.log_prob(torch.from_numpy(outputs), torch.from_numpy(actions))
    np.testing.assert_allclose(log_prob, theirs.numpy(), rtol=1e-3, atol=1e-3)
    # The weight of the entropy bonus does not depend on the bounds.
    entropy = make_distribution((), (4,)).entropy(torch.from_numpy(outputs))
    torch.testing.assert_close(distribution.entropy(torch.from_numpy(outputs)), entropy)


def test_the_learner_has_the_actors_densities_where_bounds_are_far_from_0():
    spec = ActionSpec(shape=(1,), low=(1e9,), high=(1e9 + 100,))
    rng = np.random.default_rng(5)
    outputs = rng.standard_normal((50, 2)).astype(np.float32)
    draws = make_action_draws((), (1,), spec.scale)
    actions, log_prob = draws.draw(outputs, rng.random((50, draws.num_uniforms)))
    learner = make_distribution((), (1,), spec.scale)
    theirs = learner.log_prob(torch.from_numpy(outputs), torch.from_numpy(actions))
    assert theirs.dtype == torch.float32
    np.testing.assert_allclose(log_prob, theirs.numpy(), rtol=1e-4, atol=1e-4)


def test_bounds_that_no_simulator_means_are_none():
    most = float(np.finfo(np.float32).max)
    spec = ActionSpec(shape=(2,), low=(-most, 0.0), high=(most, np.inf))
    assert spec.is_bounded == (False, False)
    assert spec.scale == ((0.0, 0.0), (1.0, 1.0))
    assert ActionSpec(num_choices=(2,)).is_bounded == ()


def test_first_and_last_choices_that_never_happen_are_not_drawn():
    draws = make_action_draws((3,), ())
    outputs = np.array([[-1e4, 0.0, -1e4]] * 2, np.float32)
    actions, _ = draws.draw(outputs, np.array([[0.0], [LAST]]))
    assert actions.tolist() == [1, 1]


@pytest.mark.parametrize("log_std", [-50.0, 50.0])
def test_standard_deviations_have_the_bounds_of_the_learner(log_std):
    draws = make_action_draws((), ())
    outputs = np.array([[0.5, log_std]], np.float32)
    actions, log_prob = draws.draw(outputs, np.array([[0.5, 0.0]]))
    # cos 0 = 1: the mean and sqrt(2 log 2) standard deviations
    std = math.exp(min(max(log_std, -20.0), 2.0))
    expected = 0.5 + std * math.sqrt(2.0 * math.log(2.0))
    assert actions[0] == pytest.approx(expected, rel=1e-6)
    np.testing.assert_allclose(
        log_prob, torch_log_prob((), (), outputs, actions), rtol=1e-5
    )


def test_greedy_actions_are_the_likeliest():
    outputs = np.array([[1.0, 3.0, 3.0, 0.0, -1.0, -2.0]], np.float32)
    assert make_action_draws((6,), ()).greedy(outputs).tolist() == [1]
    assert make_action_draws((6,), (1,)).greedy(outputs).tolist() == [[1]]
    pair = make_action_draws((2, 4), (2,)).greedy(outputs)
    assert pair.tolist() == [[1, 0]]
    assert pair.dtype == np.int64
    numbers = make_action_draws((), (3,)).greedy(outputs)
    assert numbers.tolist() == [[1.0, 3.0, 3.0]]
    assert numbers.dtype == np.float32
    assert make_action_draws((), ()).greedy(outputs[:, :2]).tolist() == [1.0]
