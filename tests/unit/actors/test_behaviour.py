"""The memory of an episode against a readable reference, and policies of episodes."""

import json

import numpy as np
import pytest

from tengen.actors import INTRINSIC, Bandit, Behaviour, EpisodicMemory, InTurn, Slots
from tengen.agents.agent57 import Agent57
from tengen.tensors import EMBEDDING, NOVELTY, POLICY


class SlowMemory:
    """Algorithm 1 of the NGU paper for one copy, with lists.

    Differs from the paper as ``EpisodicMemory`` says. The mean distance is a list of
    the mean distances of all steps, because no test has a thousand steps.
    """

    def __init__(self, num_neighbours, means):
        self.kept, self.means, self.k = [], means, num_neighbours

    def nearest(self, embedding):
        distances = [float(((embedding - one) ** 2).sum()) for one in self.kept]
        self.kept.append(embedding)
        return sorted(distances)[: self.k]

    def novelty(self, near):
        mean, epsilon = np.mean(self.means) if self.means else 0.0, 1e-4
        scaled = [max(d / mean - 0.008, 0.0) if d else 0.0 for d in near]
        scaled += [1.0] * (self.k - len(near))
        similarity = sum(epsilon / (d + epsilon) for d in scaled) ** 0.5 + 1e-3
        usual = (self.k * epsilon / (1 + epsilon)) ** 0.5 + 1e-3
        return 0.0 if similarity > 8 else min(1.0, usual / similarity)


@pytest.mark.parametrize("num_neighbours", [1, 3, 10])
def test_novelty_is_that_of_the_slow_memory(num_neighbours):
    rng = np.random.default_rng(0)
    means = []
    slow = [SlowMemory(num_neighbours, means) for _ in range(3)]
    memory = EpisodicMemory(3, 1_000, num_neighbours)
    for step in range(150):
        # Some embeddings repeat, and the second copy begins episodes.
        embedding = rng.integers(0, 3, (3, 4)).astype(np.float32)
        if step in (20, 90):
            memory.clear(np.array([False, True, False]))
            slow[1].kept = []
        near = [one.nearest(row) for one, row in zip(slow, embedding, strict=True)]
        if any(near):
            means.append(np.mean([d for row in near for d in row]))
        expected = [one.novelty(row) for one, row in zip(slow, near, strict=True)]
        found = memory.novelty(embedding)
        np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert found.dtype == np.float32


def walked(memory, path):
    return [float(memory.novelty(np.array([[x, 0.0]], np.float32))[0]) for x in path]


def test_a_second_pass_of_an_episode_is_worth_less():
    memory = EpisodicMemory(1, 1_000, 5)
    path = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]
    first, second = walked(memory, path), walked(memory, path)
    assert sum(second) < 0.5 * sum(first)
    assert second[3] < 0.2 * first[3]


def test_a_new_episode_forgets_the_last():
    memory, other = EpisodicMemory(1, 1_000, 5), EpisodicMemory(1, 1_000, 5)
    path = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]
    for _ in range(3):
        assert walked(memory, path)[0] == 1.0
        memory.clear(np.ones(1, np.bool_))
    # Of the steps of earlier episodes, only the mean distance matters.
    walked(other, path)
    assert walked(memory, [100.0]) == [1.0]


def test_the_oldest_are_replaced_and_the_rest_is_found():
    memory = EpisodicMemory(1, 4, 1)
    walked(memory, [0.0, 10.0, 20.0, 30.0, 40.0])
    kept, gone = walked(memory, [10.0, 0.0])
    assert kept < 0.1
    assert gone == 1.0


@pytest.mark.parametrize("value", [0.0, 1e18])
def test_embeddings_that_never_differ_are_not_novel_and_never_nan(value):
    memory = EpisodicMemory(2, 100, 10)
    embedding = np.full((2, 3), value, np.float32)
    found = [memory.novelty(embedding) for _ in range(50)]
    assert np.isfinite(found).all()
    assert max(found[-1]) < 0.05
    assert min(found[0]) == 1.0


def test_distances_between_embeddings_far_from_zero_are_exact():
    rng = np.random.default_rng(1)
    path = rng.integers(0, 4, (60, 1, 3)).astype(np.float32)
    near, far = EpisodicMemory(1, 100, 3), EpisodicMemory(1, 100, 3)
    for embedding in path:
        assert near.novelty(embedding) == far.novelty(embedding + 4096)


def explorer(num_rows, first=0, num_policies=3):
    memory = EpisodicMemory(num_rows, 100, 2)
    selector = InTurn(Slots(first, num_rows, 10), num_policies)
    return Behaviour(selector, memory, num_rows, num_policies)


def test_a_policy_lasts_an_episode_and_all_have_their_turn():
    behaviour = explorer(2, first=4)
    policies = [behaviour.begin()[POLICY].argmax(1).tolist()]
    for step in range(6):
        is_reset = np.array([step == 2, step in (1, 3, 5)])
        given = behaviour.step(np.ones(2, np.float32), is_reset)
        assert given[POLICY].sum(1).tolist() == [1, 1]
        policies.append(given[POLICY].argmax(1).tolist())
    assert [row[0] for row in policies] == [1, 1, 1, 2, 2, 2, 2]
    assert [row[1] for row in policies] == [2, 2, 0, 0, 1, 1, 2]


def test_novelty_in_the_run_scales_that_in_the_episode_within_bounds():
    behaviour = explorer(4)
    behaviour.begin()
    novelty = np.array([-3.0, 1.0, 2.5, 40.0], np.float32)
    outputs = {EMBEDDING: np.zeros((4, 2), np.float32), NOVELTY: novelty}
    assert behaviour.observe(outputs)[INTRINSIC].tolist() == [1.0, 1.0, 2.5, 5.0]
    again = behaviour.observe(outputs)[INTRINSIC]
    assert again.max() < 1.0


class Returns:
    """A selector that always chooses policy 0, and keeps what it is told."""

    def __init__(self):
        self.told = []

    def choose(self, row):
        return 0

    def ended(self, row, policy, episode_return):
        self.told.append((row, policy, episode_return))


def test_a_selector_is_told_the_return_of_an_episode_once():
    selector = Returns()
    behaviour = Behaviour(selector, EpisodicMemory(2, 10, 1), 2, 2)
    behaviour.begin()
    for step in range(7):
        # Copy 0 resets at steps 3 and 6; the reward of a reset step is 0.
        is_reset = np.array([step in (3, 6), False])
        reward = np.where(is_reset, 0, step + 1).astype(np.float32)
        behaviour.step(reward, is_reset)
    assert selector.told == [(0, 0, 6.0), (0, 0, 11.0)]


def bandit(num_rows=1, num_policies=4, window=20, epsilon=0.0, first=0, seed=1):
    slots = Slots(first, num_rows, 10)
    return Bandit(slots, num_policies, window=window, epsilon=epsilon, seed=seed)


def chosen(one, returns, num_episodes, row=0):
    """Lets a bandit choose; ``returns(policy, episode)`` are the returns."""
    policies = []
    for episode in range(num_episodes):
        policies.append(one.choose(row))
        one.ended(row, policies[-1], returns(policies[-1], episode))
    return policies


def test_every_policy_is_tried_before_one_is_preferred():
    policies = chosen(bandit(), lambda policy, _: 0.0, 80)
    assert policies[:4] == [0, 1, 2, 3]
    assert np.abs(np.bincount(policies) - 20).max() <= 4
    # Copies begin with different policies.
    assert chosen(bandit(first=6), lambda policy, _: 0.0, 4) == [2, 3, 0, 1]


def test_the_choice_is_the_highest_bound_of_the_window():
    returns = {0: [1.0, 3.0], 1: [2.0], 2: [0.0, 0.0, 0.0], 3: [1.5]}
    one = bandit()
    for policy, found in returns.items():
        for episode_return in found:
            one.ended(0, policy, episode_return)
    bounds = [np.mean(found) + 3.0 / len(found) ** 0.5 for found in returns.values()]
    assert one.choose(0) == np.argmax(bounds) == 1


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_best_discounts_are_found_and_found_again_when_others_become_best(seed):
    agent, rng = Agent57(), np.random.default_rng(0)
    # One of three prizes pays at a time. A policy goes to the one whose mean over the
    # run is worth most with its discount, so other discounts earn something in turn.
    steps, means = np.array([2, 60, 200]), np.array([1.0, 1.4, 2.3])
    prizes = (means * agent.discounts()[:, None] ** steps).argmax(1)
    paying = np.repeat([2, 0, 1, 0, 2, 1], 300)

    def returns(policy, episode):
        is_paid = prizes[policy] == paying[episode] and rng.random() < 0.8
        return float(3 * means[prizes[policy]] * is_paid)

    policies = chosen(agent.selector(Slots(0, 1, 1), seed), returns, len(paying))
    # Uniform choices and any fixed policy have 1/3, and a bandit that forgets nothing
    # 0.35 to 0.39. Half of the choices are random.
    assert np.mean(prizes[policies] == paying) > 0.5


def test_an_episode_that_leaves_the_window_counts_no_more():
    one = bandit(num_policies=2, window=3)
    for policy, episode_return in [(0, 100.0), (1, 1.0), (1, 1.0), (1, 1.0)]:
        one.ended(0, policy, episode_return)
    # Policy 0 has no episode in the window, so it is taken next, without a division.
    assert one.choose(0) == 0
    one.ended(0, 0, 0.0)
    assert one.state() == [[[1, 1.0], [1, 1.0], [0, 0.0]]]


def test_the_choice_does_not_depend_on_the_unit_of_returns():
    def returns(policy, episode):
        return float((policy * 7 + episode) % 5)

    small = chosen(bandit(), returns, 60)
    assert small == chosen(bandit(), lambda *given: 1e6 * returns(*given), 60)


def test_random_policies_have_their_share_and_are_a_function_of_the_seed():
    one, same, other = (bandit(epsilon=0.5, seed=seed) for seed in (1, 1, 2))
    found = chosen(one, lambda policy, _: float(policy == 2), 400)
    assert found == chosen(same, lambda policy, _: float(policy == 2), 400)
    assert found != chosen(other, lambda policy, _: float(policy == 2), 400)
    shares = np.bincount(found, minlength=4) / len(found)
    assert shares[2] > 0.4
    assert shares[[0, 1, 3]].min() > 0.1


def test_a_bandit_goes_on_from_its_state_also_with_other_copies():
    def returns(policy, episode):
        return float(policy == 2)

    one = bandit(num_rows=2)
    chosen(one, returns, 30)
    chosen(one, lambda policy, _: float(policy == 1), 30, row=1)
    kept = json.loads(json.dumps(one.state()))
    for num_rows in (1, 2, 3):
        again = bandit(num_rows=num_rows)
        again.load_state(kept)
        assert again.choose(0) == one.choose(0)
        assert again.state() == [*kept, []][:num_rows]


def test_a_state_of_more_policies_loses_those_that_are_gone():
    one = bandit(num_policies=2)
    one.load_state([[[0, 1.0], [5, 2.0], [-1, 2.0], [1, float("nan")]]])
    assert one.state() == [[[0, 1.0]]]
    with pytest.raises((TypeError, ValueError)):
        one.load_state([[["x", None]]])
    with pytest.raises((TypeError, ValueError)):
        one.load_state({"a": 1})
