"""Complete episodes: which ones count, their returns, and the network's inputs."""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any
from unittest import mock

import numpy as np
import pytest
from numpy.typing import NDArray

from tengen.actors import EnvironmentPort, StepBlock, step_tensors
from tengen.envs import ActionSpec, EnvSpec, Step
from tengen.errors import RunError, UsageError
from tengen.evaluation import Acting, play_episodes
from tengen.evaluation.episodes.play import Draws
from tengen.evaluation.episodes.report import mean_interval
from tengen.inference import drive
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused

CHOICES = ActionSpec(num_choices=(3,))


class ScriptedEnv:
    """Vectorized copies: episode k of copy c has ``lengths[c][k]`` steps.

    The reward of a step is ``rewards(c, k, t, action)``. The observation is c, k and
    the steps done. Every second episode of a copy is truncated; the others terminate.
    """

    def __init__(self, lengths, reward, actions=CHOICES):
        self.num_envs = len(lengths)
        self.lengths = lengths
        self.reward = reward
        self.spec = EnvSpec(
            name="scripted",
            observations={"observation": TensorSpec(shape=(3,))},
            actions=actions,
            max_episode_steps=None,
            reward_threshold=None,
        )
        self.taken: list[list[Any]] = []

    def reset(self):
        self.episode = np.zeros(self.num_envs, np.int64)
        self.time = np.zeros(self.num_envs, np.int64)
        self.is_over = np.zeros(self.num_envs, np.bool_)
        return self._seen()

    def step(self, actions):
        self.taken.append(actions.tolist())
        reward = np.zeros(self.num_envs, np.float32)
        terminated, truncated = np.zeros((2, self.num_envs), np.bool_)
        is_reset = self.is_over
        for c in range(self.num_envs):
            if is_reset[c]:
                self.episode[c] += 1
                self.time[c] = 0
                continue
            k = int(self.episode[c])
            reward[c] = self.reward(c, k, int(self.time[c]), actions[c])
            self.time[c] += 1
            # After the script's end, the copy repeats the length of its last episode.
            script = self.lengths[c]
            if self.time[c] == script[min(k, len(script) - 1)]:
                (truncated if k % 2 else terminated)[c] = True
        self.is_over = terminated | truncated
        return Step(self._seen(), reward, terminated, truncated, is_reset)

    def observed(self, observation):
        raise NotImplementedError

    def own_action(self, action):
        raise NotImplementedError

    def close(self):
        pass

    def _seen(self):
        copies = np.arange(self.num_envs)
        seen = np.stack([copies, self.episode, self.time], axis=1)
        return {"observation": seen.astype(np.float32)}


class FirstLogit:
    """A policy that takes the likeliest of three actions, without random numbers."""

    def num_uniforms(self, actions):
        return 0

    def act(self, outputs, actions, *_):
        return self.act_greedily(outputs, actions)

    def act_greedily(self, outputs, actions):
        return {"action": outputs["policy"].argmax(axis=1)}


class Counting:
    """A recurrent network that counts steps from a zero state: action count % 3."""

    name = version = "counting"
    precision: Any = "fp32"
    batch_shape: Any = "dynamic"

    def __init__(self, **inputs):
        self.signature = Signature(
            inputs={"observation": TensorSpec(shape=(3,)), **inputs},
            outputs={"policy": TensorSpec(shape=(3,))},
            state={"count": TensorSpec()},
        )
        self.rows: list[dict[str, Any]] = []
        self.answer = 1.0

    def bind(self, inputs, outputs, state=None):
        self.arrays = inputs, outputs, state
        return self

    def run(self, num_rows):
        inputs, outputs, state = self.arrays
        self.rows.append(
            {n: a.copy() for n, a in (*inputs.items(), *state.items())},
        )
        outputs["policy"][:] = 0
        best = state["count"].astype(int) % 3
        outputs["policy"][np.arange(num_rows), best] = self.answer
        state["count"] += 1


def one_a_step(c, k, t, action):
    return 1.0


def test_episodes_are_given_out_before_the_first_step():
    """Copy 0 plays every other episode, though it is much slower than copy 1."""
    env = ScriptedEnv([[100, 200, 300], [1, 2, 3]], one_a_step)
    told = []
    report = play_episodes(
        env, FirstLogit(), Counting(), 5, model="m", watch=told.append
    )
    assert report.returns == (100, 1, 200, 2, 300)
    assert report.lengths == (100, 1, 200, 2, 300)
    assert report.num_frames == 603
    assert report.mean_return == 603 / 5
    assert told == [1, 2, 3, 4, 5]
    # No copy makes a step after the last episode that counts has ended.
    assert len(env.taken) == 100 + 1 + 200 + 1 + 300


def test_no_round_begins_after_the_end_of_a_limit():
    """Both copies play the two episodes of the rounds that copy 1 has begun."""
    env = ScriptedEnv([[4, 9, 5], [2, 7, 9]], one_a_step)
    calls = itertools.count(1)
    settings = {"model": "m", "goes_on": lambda: next(calls) not in (4, 5)}
    report = play_episodes(env, FirstLogit(), Counting(), 8, **settings)
    # The limit ends at step 4, with which copy 0 ends its first episode.
    assert report.lengths == (4, 2, 9, 7)
    assert report.num_cut == 0
    assert next(calls) == len(env.taken) + 1 == 4 + 1 + 9 + 1


def test_an_evaluation_can_be_stopped_after_its_limit():
    env = ScriptedEnv([[100]], one_a_step)
    goes_on = mock.Mock(side_effect=[True, False, False, KeyError])
    with pytest.raises(KeyError):
        play_episodes(env, FirstLogit(), Counting(), 8, model="m", goes_on=goes_on)
    assert len(env.taken) == 4


def test_an_episode_that_never_ends_is_cut():
    """The cut copy plays no further episode; the other copy's are complete."""
    env = ScriptedEnv([[10**9], [3, 4, 3]], one_a_step)
    report = play_episodes(env, FirstLogit(), Counting(), 6, model="m", max_steps=20)
    # Copy 0 has episodes 0, 2 and 4, and copy 1 has 1, 3 and 5; 2 and 4 never begin.
    assert report.lengths == report.returns == (20, 3, 4, 3)
    assert report.num_cut == report.to_json()["cut"] == 1
    whole = play_episodes(
        ScriptedEnv([[20]], one_a_step),
        FirstLogit(),
        Counting(),
        1,
        model="m",
        max_steps=20,
    )
    assert (whole.lengths, whole.num_cut) == ((20,), 0)


@pytest.mark.parametrize("num_envs", [1, 2, 3, 7])
def test_every_number_of_copies_counts_as_many_episodes(num_envs):
    lengths = [[1 + (c + k * num_envs) for k in range(7)] for c in range(num_envs)]
    env = ScriptedEnv(lengths, one_a_step)
    report = play_episodes(env, FirstLogit(), Counting(), 7, model="m")
    assert report.returns == report.lengths == (1, 2, 3, 4, 5, 6, 7)


def test_the_mean_and_its_interval():
    env = ScriptedEnv([[2]], lambda c, k, t, action: (k + 1) * 0.5)
    report = play_episodes(env, FirstLogit(), Counting(), 3, model="m")
    assert report.returns == (1.0, 2.0, 3.0)
    # The standard deviation is 1; the t quantile for 2 degrees of freedom is 4.30265.
    half = 4.30265 / 3**0.5
    assert report.interval == pytest.approx((2 - half, 2 + half), abs=1e-4)
    assert report.to_json() == {
        "episodes": 3,
        "mean_return": 2.0,
        "low": report.interval[0],
        "high": report.interval[1],
        "interval": "95 % of the mean, Student's t",
        "returns": [1.0, 2.0, 3.0],
        "lengths": [2, 2, 2],
        "frames": 6,
        "cut": 0,
        "win_rate": None,
        "teams": {},
        "match": None,
    }


def test_episodes_of_at_least_the_return_of_a_win_are_won():
    env = ScriptedEnv([[2]], lambda c, k, t, action: (k + 1) * 0.5)
    env.spec = dataclasses.replace(env.spec, win_return=2.0)
    report = play_episodes(env, FirstLogit(), Counting(), 3, model="m")
    assert report.returns == (1.0, 2.0, 3.0)
    assert report.win_rate == report.to_json()["win_rate"] == 2 / 3


def test_one_episode_has_no_interval():
    env = ScriptedEnv([[4]], one_a_step)
    report = play_episodes(env, FirstLogit(), Counting(), 1, model="m").to_json()
    assert (report["mean_return"], report["low"], report["high"]) == (4.0, None, None)


def test_memory_begins_anew_with_each_episode():
    """An action is rewarded if it is the step's index in the episode, modulo 3."""

    def right(c, k, t, action):
        return float(action == t % 3)

    env = ScriptedEnv([[2, 4, 3, 5], [7, 1, 1, 4]], right)
    report = play_episodes(env, FirstLogit(), Counting(), 8, model="m")
    assert report.returns == report.lengths == (2, 7, 4, 1, 3, 1, 5, 4)


def test_a_network_is_shown_what_it_was_trained_with():
    """The inputs equal an actor's, also the state, last action and last reward."""
    lengths = [[3, 1, 2], [2, 2, 4]]
    last = {"last_action": TensorSpec(shape=(3,)), "last_reward": TensorSpec()}

    def reward(c, k, t, action):
        return 100 * c + 10 * k + t + 0.25 * action

    evaluated = Counting(**last)
    play_episodes(ScriptedEnv(lengths, reward), FirstLogit(), evaluated, 6, model="m")

    trained = Counting(**last)
    env = ScriptedEnv(lengths, reward)
    tensors = step_tensors(trained.signature.inputs, CHOICES, {})
    port = EnvironmentPort(
        env,
        FirstLogit(),
        trained.signature,
        StepBlock(tensors, 2, 4, is_closed=False),
        lambda columns, state: 1,
        seed=0,
        turn_blocks=3,
    )
    port.begin(0)
    drive(port, trained.bind(port.inputs, port.outputs, port.state))

    assert len(evaluated.rows) == 10
    assert len(trained.rows) == 12
    for ours, theirs in zip(evaluated.rows, trained.rows, strict=False):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert np.array_equal(ours[name], theirs[name]), name
    # In an episode's first row the last action and reward are zero; then they are set.
    begins = [row for row in evaluated.rows if row["observation"][0, 2] == 0]
    assert [row["last_reward"][0] for row in begins] == [0] * 4
    assert [row["count"][0] for row in begins] == [0] * 4
    assert evaluated.rows[1]["last_action"].tolist() == [[1, 0, 0]] * 2
    assert evaluated.rows[1]["last_reward"].tolist() == [0, 100]


def test_real_numbers_are_taken_within_their_bounds():
    class Beyond(FirstLogit):
        def act_greedily(self, outputs, actions):
            return {"action": np.full((1, 2), (-3.0, 0.25), np.float32)}

    bounds = ActionSpec(shape=(2,), low=(-1.0, -1.0), high=(1.0, 1.0))
    env = ScriptedEnv([[2]], one_a_step, bounds)
    play_episodes(env, Beyond(), Counting(), 1, model="m")
    assert env.taken == [[[-1.0, 0.25]]] * 2


def test_an_answer_that_is_no_number_ends_it():
    network = Counting()
    network.answer = float("nan")
    with refused(RunError, "policy (model runs/x)"):
        play_episodes(
            ScriptedEnv([[2]], one_a_step), FirstLogit(), network, 1, model="runs/x"
        )


def test_copies_that_no_episode_is_for_are_refused():
    env = ScriptedEnv([[1], [1]], one_a_step)
    with refused(UsageError, "num_envs (2)"):
        play_episodes(env, FirstLogit(), Counting(), 1, model="m")


# Student's t, two-sided 5 %, by degrees of freedom, from printed tables.
TABLE = {1: 12.706, 2: 4.303, 3: 3.182, 4: 2.776, 9: 2.262, 30: 2.042, 99: 1.984}


@pytest.mark.parametrize("freedom", TABLE)
def test_the_table(freedom):
    num_values = freedom + 1
    # Half are 1 above the mean and half 1 below; an odd value is the mean.
    values = [7.0 + (-1) ** i for i in range(num_values - num_values % 2)]
    values += [7.0] * (num_values % 2)
    spread = math.sqrt((num_values - num_values % 2) / freedom)
    interval = mean_interval(values)
    half = TABLE[freedom] * spread / math.sqrt(num_values)
    assert interval == pytest.approx((7 - half, 7 + half), rel=2e-4)


def test_very_many_values_are_as_the_normal_distribution_says():
    values = np.tile([0.0, 2.0], 200_000)
    interval = mean_interval(values.tolist())
    half = 1.959964 / math.sqrt(len(values))
    assert interval == pytest.approx((1 - half, 1 + half), abs=1e-7)


def test_one_value_and_equal_values():
    assert mean_interval([3.0]) is None
    assert mean_interval([3.0, 3.0, 3.0]) == (3.0, 3.0)


def test_nineteen_of_twenty_intervals_hold_the_mean():
    """Samples have five values; a normal quantile would give only 88 %."""
    samples = np.random.default_rng(1).normal(4.0, 3.0, (4000, 5))
    intervals = [mean_interval(row.tolist()) for row in samples]
    share = np.mean([pair is not None and pair[0] < 4 < pair[1] for pair in intervals])
    assert share == pytest.approx(0.95, abs=0.015)


NUM_ROWS = 4_000
NUM_CHOICES = ActionSpec(num_choices=(4,))
SEVERAL = ActionSpec(shape=(2,), num_choices=(2, 3))
NUMBERS = ActionSpec(shape=(1,), low=(-1.0,), high=(1.0,))
OUTPUTS = {"policy": np.zeros((NUM_ROWS, 1), np.float32)}


class Fixed:
    """A policy whose best action is the last one, and which samples the first one."""

    def num_uniforms(self, actions):
        return 1

    def act(self, outputs, actions, uniforms, slots):
        assert uniforms.shape == (len(outputs["policy"]), 1)
        return {"action": np.zeros_like(self._best(outputs, actions))}

    def act_greedily(self, outputs, actions):
        return {"action": self._best(outputs, actions)}

    def _best(self, outputs, actions):
        last: NDArray[Any] = np.array(actions.num_choices, np.int64) - 1
        if not actions.is_discrete:
            last = np.array(actions.high, np.float32)
        return np.broadcast_to(
            last.reshape(actions.shape), (len(outputs["policy"]), *actions.shape)
        ).copy()


def chosen(acting, actions, seed=0):
    return acting.choose(Fixed(), OUTPUTS, actions, Draws(seed))


def test_greedy_takes_the_best_and_sampled_draws():
    assert (chosen(Acting(), NUM_CHOICES) == 3).all()
    assert (chosen(Acting(mode="sampled"), NUM_CHOICES) == 0).all()


def test_epsilon_takes_any_action_in_its_share_of_steps():
    taken = chosen(Acting(mode="epsilon", epsilon=0.4), NUM_CHOICES)
    shares = np.bincount(taken, minlength=4) / NUM_ROWS
    # A random action can be the best one too; standard deviations are below 0.008.
    assert shares == pytest.approx([0.1, 0.1, 0.1, 0.7], abs=0.04)
    assert (chosen(Acting(mode="epsilon", epsilon=0.0), NUM_CHOICES) == 3).all()
    several = chosen(Acting(mode="epsilon", epsilon=1.0), SEVERAL)
    for part, num_choices in enumerate(SEVERAL.num_choices):
        shares = np.bincount(several[:, part], minlength=num_choices) / NUM_ROWS
        assert shares == pytest.approx([1 / num_choices] * num_choices, abs=0.04)


def test_real_numbers_have_no_epsilon():
    assert (chosen(Acting(mode="epsilon", epsilon=1.0), NUMBERS) == 1.0).all()


def test_each_step_draws_anew_and_a_seed_repeats_it():
    acting, draws = Acting(mode="epsilon", epsilon=0.5), Draws(3)
    first, second = (
        acting.choose(Fixed(), OUTPUTS, NUM_CHOICES, draws).tolist() for _ in range(2)
    )
    assert first != second
    assert chosen(acting, NUM_CHOICES, seed=3).tolist() == first
    assert chosen(acting, NUM_CHOICES, seed=4).tolist() != first


def test_what_it_says_and_refuses():
    assert str(Acting()) == "greedy"
    assert str(Acting(mode="epsilon")) == "greedy, except for epsilon 0.001"
    for epsilon in (-0.1, 1.1, float("nan")):
        with refused(UsageError, "epsilon ("):
            Acting(mode="epsilon", epsilon=epsilon)
