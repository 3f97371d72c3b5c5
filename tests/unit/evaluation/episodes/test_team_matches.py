"""Matches of two models in environments with teams, and the results of teams."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("gymnasium")

from gymnasium import spaces

from tengen.agents.ppo import Ppo
from tengen.envs.parallel_env import ParallelEnv
from tengen.evaluation import Side, Tally, play_episodes
from tengen.tensors import Signature, TensorSpec
from tests.team_environments import Duel, Parallel


class Always:
    """A model that takes one action."""

    def __init__(self, env, action):
        outputs = {"policy": TensorSpec(shape=(3,)), "value": TensorSpec()}
        self.signature = Signature(inputs=env.spec.observations, outputs=outputs)
        self._action = action

    def bind(self, inputs, outputs, state):
        self._outputs = outputs
        return self

    def run(self, num_rows):
        self._outputs["policy"][:num_rows] = np.eye(3)[self._action]


class Auction(Parallel):
    """Some steps, or one if agent a's action is 2; the reward is action and bonus.

    Attributes:
        bonus: Each agent's bonus.
        log: The actions of all episodes.
    """

    def __init__(self, bonus, teams, log, num_steps=1):
        self.bonus, self.teams, self._log = bonus, teams, log
        self._num_steps = num_steps
        self.possible_agents = tuple(bonus)

    def observation_space(self, agent):
        return spaces.Box(0.0, 1.0, (1,), np.float32)

    def reset(self, seed=None, options=None):
        self.agents, self._left = list(self.possible_agents), self._num_steps
        return self._all(np.zeros(1, np.float32)), {}

    def step(self, actions):
        self._log.append({agent: int(action) for agent, action in actions.items()})
        rewards = {
            agent: action + self.bonus[agent] for agent, action in actions.items()
        }
        self._left -= 1
        if is_over := self._left == 0 or actions["a"] == 2:
            self.agents = []
        ends = self._all(is_over), self._all(False), {}
        return self._all(np.zeros(1, np.float32)), rewards, *ends

    def _all(self, value):
        return dict.fromkeys(self.possible_agents, value)


def auction(num_copies, bonus, teams):
    log = []
    env = ParallelEnv(lambda: Auction(bonus, teams, log), num_copies, 0, name="auction")
    return env, log


def played(env, num_episodes, first, second=None, **settings):
    against = None
    if second is not None:
        against = Side(Ppo(), Always(env, second), "second")
    model = Always(env, first)
    settings |= {"model": "m", "against": against}
    return play_episodes(env, Ppo(), model, num_episodes, **settings)


def test_the_team_with_the_greatest_return_wins():
    env, _ = auction(2, {"a": 0.0, "b": 1.0, "c": 1.0}, {"a": "x", "b": "y", "c": "z"})
    report = played(env, 6, 0)
    draws = Tally(0, 6, 0)
    assert report.tallies == {"x": Tally(0, 0, 6), "y": draws, "z": draws}
    assert report.tally is None
    told = report.to_json()
    assert told["match"] is None
    scores = {"score": 0.5, "score_low": 0.188, "score_high": 0.812}
    found = told["teams"]["y"]
    assert {n: found.pop(n) for n in scores} == pytest.approx(scores, abs=1e-3)
    results = {"wins": 0, "draws": 6, "losses": 0}
    assert found == {"mean_return": 1.0, "returns": [1.0] * 6, **results}


@pytest.mark.parametrize("num_copies", [1, 3, 4])
def test_both_sides_have_each_team_equally_often(num_copies):
    """Team x wins unless its side bids 0 and the other side 2."""
    env, log = auction(num_copies, {"a": 1.0, "b": 0.0}, {"a": "x", "b": "y"})
    report = played(env, 8, 2, 0)
    assert log[:8].count({"a": 2, "b": 0}) == log[:8].count({"a": 0, "b": 2}) == 4
    assert report.tally == Tally(8, 0, 0)
    assert report.tallies == {"x": Tally(4, 0, 0), "y": Tally(4, 0, 0)}
    env, _ = auction(num_copies, {"a": 1.0, "b": 0.0}, {"a": "x", "b": "y"})
    report = played(env, 8, 1, 0)
    assert report.tally == Tally(4, 4, 0)
    assert report.tallies == {"x": Tally(4, 0, 0), "y": Tally(0, 4, 0)}
    env, _ = auction(num_copies, {"a": 1.0, "b": 0.0}, {"a": "x", "b": "y"})
    assert played(env, 8, 0, 1).tally == Tally(0, 4, 4)


def test_with_three_teams_each_side_has_one_against_the_others():
    bonus = dict.fromkeys("abcd", 0.0)
    env, log = auction(2, bonus, {"a": "x", "b": "y", "c": "z", "d": "x"})
    report = played(env, 6, 2, 1)
    # Agents a and d are a team. Episodes 0 to 2: the first side has one team.
    assert log[:6] == [
        {"a": 2, "b": 1, "c": 1, "d": 2},
        {"a": 1, "b": 2, "c": 1, "d": 1},
        {"a": 1, "b": 1, "c": 2, "d": 1},
        {"a": 1, "b": 2, "c": 2, "d": 1},
        {"a": 2, "b": 1, "c": 2, "d": 2},
        {"a": 2, "b": 2, "c": 1, "d": 2},
    ]
    assert report.tally == Tally(6, 0, 0)
    assert report.tallies["x"] == Tally(3, 0, 0)


def test_equal_models_have_equal_results():
    env = ParallelEnv(Duel, 4, 0, name="duel")
    tally = played(env, 32, 2, 2).tally
    assert tally == Tally(0, 32, 0)
    env = ParallelEnv(Duel, 4, 0, name="duel")
    tally = played(env, 32, 0, 1).tally
    assert tally.wins > 5
    assert tally.losses > 5


def test_a_time_limit_favours_no_side():
    """Red wins every episode, and those of the first side with red are short."""
    given = {"a": 3.0, "b": 0.0}, {"a": "red", "b": "blue"}, [], 6
    env = ParallelEnv(lambda: Auction(*given), 4, 0, name="auction")
    calls = itertools.count()
    report = played(env, 64, 2, 0, goes_on=lambda: next(calls) < 10)
    assert report.tally == Tally(12, 0, 12)
    assert sorted(report.lengths) == [1] * 12 + [6] * 12
