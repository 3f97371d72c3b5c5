"""GoBigger: what an agent observes, scores as rewards, and games that end in time."""

import random

import numpy as np
import pytest

pytest.importorskip("gobigger")

from tengen import envs

# Nine numbers of the game, then 16 food balls, 4 thorns, 4 spores and 16 balls of
# players, with seven numbers each.
OF_GAME, CLONES = 9, 9 + 7 * 24


def clones(observation):
    """Returns the rows of players' balls, without padding."""
    balls = observation["observation/balls"][:, CLONES:].reshape(-1, 16, 7)
    return [rows[rows[:, 2] > 0] for rows in balls]


def test_an_agent_sees_its_own_ball_food_and_what_it_may_do():
    env = envs.make("gobigger/t2p2", 2, 0)
    assert env.spec.agents == ("0", "1")
    observation = env.reset()
    assert observation["observation/balls"].shape == (4, CLONES + 7 * 16)
    for balls in clones(observation):
        (own,) = balls[balls[:, 5] == 1]
        # Its only ball is its centre.
        np.testing.assert_allclose(own[:2], 0, atol=1e-6)
        assert own[2] > 0
    seen = observation["observation/balls"]
    food = seen[:, OF_GAME : OF_GAME + 7 * 16].reshape(4, 16, 7)
    assert (np.abs(food[..., :2]) < 1.2).all()
    assert (np.diff((food[..., :2] ** 2).sum(-1)) >= -1e-6).all()
    # A ball of 13,000 can be split, and can eject a spore.
    assert observation["action_mask"].all()
    step = env.step(np.full(4, 16))
    assert all((balls[:, 5] == 1).sum() == 2 for balls in clones(step.observation))
    # A small ball can only move.
    alone = envs.make("gobigger/t1p1", 1, 0)
    mask = alone.reset()["action_mask"]
    assert mask.tolist() == [[True] * 8 + [False] * 16]
    env.close()
    alone.close()


def test_a_game_lasts_three_minutes_and_rewards_are_the_growth():
    """The team's score after a game is its first score and 1000 times the return."""
    env = envs.make("gobigger/t2p1", 1, 3)
    before = random.getstate()
    first = env.reset()["observation/balls"][0]
    total, count = 0.0, 0
    while True:
        step = env.step(np.array([count // 20 % 8]))
        total, count = total + float(step.reward[0]), count + 1
        if step.terminated[0] or step.truncated[0]:
            break
    assert (bool(step.terminated[0]), count) == (True, 720)
    last = step.observation["observation/balls"][0]
    assert last[8] == 1
    score, final = (1000 * (10 ** row[5] - 1) for row in (first, last))
    assert final - score == pytest.approx(1000 * total, abs=5)
    assert total > 0
    # GoBigger's bots and balls do not draw from Python's global generator.
    assert random.getstate() == before
    assert env.step(np.array([0])).is_reset[0]
    env.close()
