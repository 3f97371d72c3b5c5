"""Team agents in games whose values are known, with an item for each joint action.

So QMIX and VDN descend the gradient of the exact loss of exploration with epsilon 1.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import envs, games
from tengen.actors import EnvironmentRows
from tengen.agents.bases.q_agent import q_values
from tengen.agents.bases.team_agent import agent_rows
from tengen.agents.bases.unrolls import learned_outputs
from tengen.agents.masac import Masac
from tengen.agents.qmix import Qmix
from tengen.agents.vdn import Vdn
from tengen.experience import ItemLayout, ReplayConfig
from tengen.nets import MlpConfig
from tests.team_environments import Climbing, TwoStep

MODULE = "tests.team_environments"
DISCOUNT = 0.99


def items_of(agent, task, plays, num_steps):
    """Returns an item for each play, a list of joint actions; repeats the last one."""
    games.allow(task)
    env = envs.make(task, len(plays), 0)
    block = agent.make_block(
        env.spec, ItemLayout(num_steps=num_steps, period=num_steps), len(plays)
    )
    rows = EnvironmentRows(agent.signature(task), env.spec.actions, env.num_envs)
    rows.begin(env.reset())
    none = np.zeros(env.num_envs, np.bool_)
    for t in range(num_steps):
        action = np.array([play[min(t, len(play) - 1)] for play in plays]).reshape(-1)
        step = env.step(action)
        block.append(rows.observed, {"action": action}, step, 0)
        rows.show(step.observation, action, step.reward, none)
    return {name: torch.from_numpy(c) for name, c in block.take({}).items()}


def learned(kind, task, plays, num_steps, *, seed, num_updates=400, **net):
    """Returns a trained network and its update, and the items."""
    games.allow(task)
    length = num_steps - 1
    agent = kind(
        unroll_length=length, period=length, discount=DISCOUNT, target_period=20
    )
    torch.manual_seed(seed)
    config = MlpConfig(num_units=32, activation="relu", **net)
    net = config.build(agent.signature(task))
    update = agent.make_update(task, net, ReplayConfig())
    items = items_of(agent, task, plays, num_steps)
    weights = [*net.parameters(), *update.parameters()]
    optimizer = torch.optim.Adam(weights, lr=1e-2)
    for number in range(1, num_updates + 1):
        optimizer.zero_grad()
        update.loss(net, items).loss.backward()
        optimizer.step()
        update.stepped(net, number, {})
    return net, update, items


def greedy_return(net, game):
    """Returns the return of an episode with the best action of each agent."""
    seen, _ = game.reset()
    total = 0.0
    ids = torch.eye(2, dtype=torch.bool)
    while game.agents:
        observation = torch.from_numpy(np.stack([seen[agent] for agent in game.agents]))
        outputs = net.answer({"observation": observation, "agent_id": ids}, {})[0]
        (values,) = outputs.values()
        actions = dict(zip(game.agents, values.argmax(-1).tolist(), strict=True))
        seen, rewards, *_ = game.step(actions)
        total += next(iter(rewards.values()))
    return total


TWO = list(itertools.product(range(2), repeat=2))
TWO_STEPS = [list(play) for play in itertools.product(TWO, repeat=2)]


@pytest.mark.parametrize(("kind", "best"), [(Qmix, 8.0), (Vdn, 7.0)])
@pytest.mark.parametrize(
    ("seed", "shares"), [(0, True), (1, True), (2, True), (0, False)]
)
def test_the_two_step_game(kind, best, seed, shares):
    """Rashid et al. 2018, section 5: a sum cannot represent the better matrix."""
    task = f"{MODULE}:TwoStep"
    net, _, _ = learned(kind, task, TWO_STEPS, 3, seed=seed, shares_parameters=shares)
    assert greedy_return(net, TwoStep()) == best


def q_of_joint_actions(net, items):
    """Returns VDN's Q value of each item's first joint action."""
    with torch.no_grad():
        rows = agent_rows(items)
        q = q_values(*learned_outputs(net, rows, 0))[0]
        return (
            q.gather(-1, rows["action"][:, :1]).reshape(len(items["action"]), -1).sum(1)
        )


def test_vdn_is_the_additive_least_squares_fit():
    """Of the matrix [0, 1; 1, 8]: row mean + column mean - grand mean."""
    # All items begin with actions that lead to the matrix.
    plays = [[(1, 0), last] for last in TWO]
    task = f"{MODULE}:TwoStep"
    net, _, items = learned(Vdn, task, plays, 3, seed=0, num_updates=800)
    second = {name: column[:, 1:] for name, column in items.items()}
    fit = q_of_joint_actions(net, second).tolist()
    assert fit == pytest.approx([-1.5, 2.5, 2.5, 6.5], abs=0.02)
    # The value of the first step is that of the fit's greatest entry.
    first = q_of_joint_actions(net, items)
    assert first.tolist() == pytest.approx([6.5 * DISCOUNT] * 4, abs=0.05)


def test_qmix_represents_a_monotonic_matrix():
    plays = [[(1, 0), last] for last in TWO]
    task = f"{MODULE}:TwoStep"
    net, update, items = learned(Qmix, task, plays, 3, seed=0, num_updates=800)
    with torch.no_grad():
        rows = agent_rows(items)
        q = q_values(*learned_outputs(net, rows, 0))[1]
        taken = q.gather(-1, rows["action"][:, 1:2]).reshape(4, 2)
        total = update.mixer(taken, items["global_state"][:, 1])
    assert total.tolist() == pytest.approx([0.0, 1.0, 1.0, 8.0], abs=0.1)


@pytest.mark.parametrize("kind", [Qmix, Vdn])
def test_the_climbing_game(kind):
    """The optimum 11 is beside penalties, which no monotonic function can represent."""
    plays = [[each] for each in itertools.product(range(3), repeat=2)]
    task = f"{MODULE}:Climbing"
    net, _, _ = learned(kind, task, plays, 2, seed=0)
    assert greedy_return(net, Climbing()) == 5.0


def learned_softly(task, plays, num_steps, *, seed, num_updates=600):
    """Returns MASAC's trained network, and the critics' last losses."""
    games.allow(task)
    agent = Masac(
        discount=DISCOUNT, target_rate=0.05, target_entropy=0.05, first_temperature=0.1
    )
    torch.manual_seed(seed)
    config = MlpConfig(num_units=32, activation="relu")
    net = config.build(agent.signature(task))
    update = agent.make_update(task, net, ReplayConfig())
    whole = items_of(agent, task, plays, num_steps)
    pairs = [
        {name: column[:, first : first + 2] for name, column in whole.items()}
        for first in range(num_steps - 1)
    ]
    items = {name: torch.cat([pair[name] for pair in pairs]) for name in pairs[0]}
    optimizer = torch.optim.Adam([*net.parameters(), *update.parameters()], lr=1e-2)
    losses = []
    for _ in range(num_updates):
        (batch,) = update.minibatches(net, items)
        optimizer.zero_grad()
        found = update.loss(net, batch)
        found.loss.backward()
        optimizer.step()
        update.move_targets(net)
        losses.append(found.metrics["critic_loss"].item())
    return net, losses[-20:]


@pytest.mark.parametrize("seed", range(3))
def test_masac_in_the_two_step_game(seed):
    task = f"{MODULE}:TwoStep"
    net, _ = learned_softly(task, TWO_STEPS, 3, seed=seed)
    assert greedy_return(net, TwoStep()) == 8.0


def test_masac_s_critics_represent_any_matrix():
    """Each entry of the climbing game, which no monotonic function can represent.

    The policies still find an equilibrium that is not the optimum, because at first
    the optimal action of an agent is bad on average over the actions of the other.
    """
    plays = [[each] for each in itertools.product(range(3), repeat=2)]
    task = f"{MODULE}:Climbing"
    net, losses = learned_softly(task, plays, 2, seed=0)
    assert max(losses) < 0.1
    assert greedy_return(net, Climbing()) in (5.0, 7.0)
