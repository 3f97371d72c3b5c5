"""The scale of returns: worked batches, its running average, and use in V-trace."""

import math

import numpy as np
import pytest
import torch

from tengen.agents.bases.policy_update import ReturnScale, RunningSquare
from tengen.agents.vtrace import Vtrace, VtraceUpdate
from tengen.envs import ActionSpec
from tests.unit.agents.agent_fakes import TableNet, item

REWARD = torch.tensor([[8.0, 16, 99, 4], [2, 4, 8, 16]])
GOES_ON = torch.zeros(2, 4, dtype=torch.uint8)
IS_RESET = torch.tensor([[0, 0, 1, 0], [0, 0, 0, 0]], dtype=torch.uint8)
# Discount 1/2. In the first row an episode ends with reward 16: 8 + 16 / 2, 16, and 4
# of the next episode. In the second row: 2 + 12 / 2, 4 + 16 / 2, 8 + 16 / 2, 16.
RETURNS = [16.0, 16, 4, 8, 12, 16, 16]


def rms(numbers):
    return math.sqrt(sum(n * n for n in numbers) / len(numbers))


def test_a_batch_is_measured_by_the_returns_within_its_unrolls():
    scale = ReturnScale(0.5)
    assert scale.value == 1.0
    scale.observe(REWARD / 2, GOES_ON, IS_RESET)
    assert scale.value == pytest.approx(rms(RETURNS) / 2)


def test_no_reward_beyond_a_step_that_terminated_counts():
    scale = ReturnScale(0.5)
    scale.observe(REWARD[1:] / 2, torch.tensor([[0, 1, 0, 1]]), torch.zeros(1, 4))
    assert scale.value == pytest.approx(rms([1 + 2 / 2, 2, 4 + 8 / 2, 8]))


def test_the_scale_follows_over_a_hundred_batches():
    scale = ReturnScale(0.5)
    alive = torch.zeros(1, 1, dtype=torch.uint8)
    for _ in range(50):
        scale.observe(torch.tensor([[3.0]]), alive, alive)
    assert scale.value == pytest.approx(3.0)
    scale.observe(torch.tensor([[30.0]]), alive, alive)
    share = 0.01 / (1.0 - 0.99**51)
    assert scale.value == pytest.approx(math.sqrt(9 + share * (900 - 9)))


def observe(scale, *rewards):
    alive = torch.zeros(1, 1, dtype=torch.uint8)
    for reward in rewards:
        scale.observe(torch.tensor([[reward]]), alive, alive)


@pytest.mark.parametrize("reward", [1e6, 2e19, 3e38])
@pytest.mark.parametrize("num_before", [0, 1, 50])
def test_one_outlier_neither_stays_nor_spoils_the_scale(reward, num_before):
    scale = ReturnScale(0.5)
    observe(scale, *[1.0] * num_before, reward)
    assert scale.value <= 10.0
    assert scale.scaled(torch.tensor([reward, -reward])).tolist() == [100.0, -100.0]
    observe(scale, *[1.0] * 100)
    assert scale.value < 1.5


def test_larger_rewards_are_followed_within_batches():
    scale = ReturnScale(0.5)
    observe(scale, *[0.0] * 500, *[1e4] * 40)
    assert scale.value > 3e3


def test_a_scale_that_an_earlier_version_spoiled_begins_anew():
    scale = ReturnScale(0.5)
    spoiled = torch.tensor([math.nan, 0.5], dtype=torch.float64)
    scale.load_state({"return_scale": spoiled})
    observe(scale, 3.0)
    assert scale.value == pytest.approx(3.0)


@pytest.mark.parametrize("reward", [0.0, 0.3])
def test_small_returns_stay_small(reward):
    scale = ReturnScale(0.9)
    scale.observe(torch.full((2, 1), reward), torch.zeros(2, 1), torch.zeros(2, 1))
    assert scale.value == 1.0


def test_steps_that_all_reset_say_nothing_of_returns():
    scale = ReturnScale(0.9)
    scale.observe(torch.full((2, 1), 50.0), torch.zeros(2, 1), torch.ones(2, 1))
    assert scale.value == 1.0


def test_vtrace_learns_of_rewards_in_units_of_returns_and_keeps_the_scale():
    # Two steps with reward 6; the closing step's reward is ignored: returns of 9 and 6.
    columns = item(
        observation=[0, 1, 2],
        action=[0, 1, 0],
        reward=[6.0, 6, 1000],
        behaviour_log_prob=[math.log(0.5)] * 3,
    )
    net = TableNet(policy=np.zeros((3, 2)), value=np.array([1.0, 2, 3]))
    update = VtraceUpdate(Vtrace(discount=0.5), ActionSpec(num_choices=(2,)))
    (seen,) = update.minibatches(net, columns)
    scale = rms([9.0, 6.0])
    targets = [6 / scale + 0.5 * (6 / scale + 3 / 2), 6 / scale + 3 / 2]
    errors = [targets[0] - 1, targets[1] - 2]
    expected = sum(0.5 * error**2 for error in errors) / 2
    found = update.loss(net, seen).metrics["baseline_loss"]
    assert found.item() == pytest.approx(expected, rel=1e-5)

    resumed = VtraceUpdate(Vtrace(discount=0.5), ActionSpec(num_choices=(2,)))
    resumed.load_state(update.state())
    assert torch.equal(resumed.loss(net, seen).loss, update.loss(net, seen).loss)


def observed(least, *squares):
    square = RunningSquare(least)
    for one in squares:
        square.observe(one)
    return square


@pytest.mark.parametrize("outlier", [1e12, math.inf, math.nan])
@pytest.mark.parametrize("num_before", [0, 1, 2, 500])
def test_an_outlier_is_forgotten_whenever_it_comes(outlier, num_before):
    spoiled = observed(1.0, *[1.0] * num_before, outlier, *[1.0] * 70)
    assert spoiled.root < 2.0


@pytest.mark.parametrize("least", [1e-4, 0.01, 1.0, 50.0])
def test_an_outlier_is_held_to_the_average_of_small_numbers(least):
    square = observed(least, *[least**2] * 500, 1e12)
    assert square.root < 1.5 * least


@pytest.mark.parametrize("unit", [0.01, 1.0, 1e4])
def test_a_unit_is_known_after_a_few_batches(unit):
    assert observed(0.001, *[unit**2] * 10).root > 0.7 * unit


def test_before_any_batch_the_root_is_one():
    assert observed(0.01).root == 1.0


def test_a_root_is_at_least_what_is_asked_for():
    assert observed(0.01, 1e-12).root == 0.01


def test_a_resumed_average_goes_on():
    square = observed(0.01, 4.0, 1.0)
    other = RunningSquare(0.01)
    other.load(square.numbers())
    for one in (square, other):
        one.observe(9.0)
    assert other.root == square.root


def test_a_return_that_is_not_finite_counts_in_no_earlier_episode():
    scale = ReturnScale(0.5)
    rewards = torch.tensor([[2.0, torch.inf, 0.0]])
    ends = torch.tensor([[1, 0, 0]])
    scale.observe(rewards, ends, torch.tensor([[0, 1, 1]]))
    assert scale.value == pytest.approx(2.0)
