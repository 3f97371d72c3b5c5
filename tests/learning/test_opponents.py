"""Opponents from the run's history keep a policy from going round in circles."""

import dataclasses

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen.games import allow
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import RoleContext, make_role, write_config
from tengen.run import RunDirectory

TASK = "tests.team_environments:RockPaperScissors"
NUM_TURNS = 120
PAYOFF = np.array([[0, -1, 1], [1, 0, -1], [-1, 1, 0]])
"""``[own action, the other's action]``."""


def exploitability(net):
    """Returns the mean payoff of a best response to the policy, over both agents."""
    inputs = {
        "observation": torch.ones(2, 1),
        "agent_id": torch.eye(2, dtype=torch.bool),
    }
    with torch.no_grad():
        logits = net.answer(inputs, {})[0]["policy"]
    policies = torch.softmax(logits.double(), dim=-1).numpy()
    return float((policies @ PAYOFF.T).max(axis=1).mean())


def trained(share, path):
    """Returns the mean exploitability in the second half of a run."""
    allow(TASK)
    settings = ["learner.optimizer.learning_rate=2e-4"]
    settings += [f"agent.actor.opponents={share}"]
    config = override(make_config(TASK, "ppo", None), settings)
    config = dataclasses.replace(config, seed=1)
    run = RunDirectory.create_or_resume(path)
    write_config(run, config)
    context = RoleContext(saves=False)
    roles = {
        name: make_role(name, config, run, context)
        for name in ("learn", "export", "gate", "actor")
    }
    found = []
    for _ in range(NUM_TURNS):
        for role in roles.values():
            role.turn()
        if context.shared.learned is not None:
            found.append(exploitability(context.shared.learned.net))
    for role in roles.values():
        role.close()
    return np.mean(found[len(found) // 2 :])


@pytest.mark.slow
def test_with_opponents_no_action_is_given_up(tmp_path):
    """Seeds 1 to 3 had 0.65 to 0.69; the policy of a single action has 1."""
    assert trained(0.5, tmp_path / "run") < 0.78


@pytest.mark.slow
def test_the_newest_model_alone_goes_round_in_circles(tmp_path):
    """Seeds 1 to 3 had 0.85 to 0.96."""
    assert trained(0.0, tmp_path / "run") > 0.78
