"""An agent's score in ``tengen eval`` equals its return in training.

SEED RL #41: a loaded model scored less, because evaluation passed the memory, the last
action and the last reward to the network differently than training. Here the training
actor and the evaluation play the same episodes greedily, so each return must be equal.
"""

import numpy as np
import pytest

from tengen.actors import EnvironmentPort
from tengen.agents import Agent, EnvironmentAgent
from tengen.evaluation import play_episodes
from tengen.inference import drive
from tengen.models import resolve_model
from tengen.play.agent_player import open_agent

pytest.importorskip("gymnasium")

from tengen import envs

MODULE, TEAMS = "tests.unit.play.own_forms", "tests.team_environments"
NUM_EPISODES = 12
CASES = [
    ("a2c", "Walk", {}),
    ("agent57", "Walk", {"lstm_units": 8}),
    ("dqn", "NestedWalk", {}),
    ("iqn", "Walk", {}),
    ("ngu", "Walk", {"lstm_units": 8}),
    ("mappo", f"{TEAMS}:Signals", {"lstm_units": 8, "sees_last_step": True}),
    ("masac", f"{TEAMS}:Signals", {}),
    ("pqn", "Walk", {}),
    ("qmix", f"{TEAMS}:Signals", {"lstm_units": 8, "shares_parameters": False}),
    ("ppo", "Numbers", {"lstm_units": 8, "sees_last_step": True}),
    ("r2d2", "Walk", {"lstm_units": 8}),
    ("rnd", "Walk", {}),
    ("r2d3", "Walk", {"lstm_units": 8}),
    ("sac", "Numbers", {}),
    ("sac", "Walk", {}),
    ("vdn", f"{TEAMS}:Signals", {"lstm_units": 8}),
    ("vtrace", "ManyChoices", {"lstm_units": 8, "sees_last_step": True}),
]


class Best:
    """An agent that acts greedily in training, as in evaluation."""

    def __init__(self, agent):
        self._agent = agent

    def num_uniforms(self, actions):
        return self._agent.num_uniforms(actions)

    def act(self, outputs, actions, uniforms, slots):
        drawn = self._agent.act(outputs, actions, uniforms, slots)
        return {**drawn, **self._agent.act_greedily(outputs, actions)}

    def act_greedily(self, outputs, actions):
        return self._agent.act_greedily(outputs, actions)


def test_every_agent_of_environments_is_here():
    kinds = Agent.kinds().items()
    known = {kind for kind, agent in kinds if issubclass(agent, EnvironmentAgent)}
    assert {kind for kind, _, _ in CASES} == known


@pytest.mark.parametrize(("kind", "name", "settings"), CASES)
def test_eval_returns_what_training_does(kind, name, settings, tmp_path, publish_agent):
    task = name if ":" in name else f"{MODULE}:{name}"
    run = publish_agent(tmp_path / "run", task, kind, **settings)
    model = open_agent(resolve_model(run.path), "run", task=task)
    agent, signature = model.agent, model.backend.signature
    env = envs.make(task, 1, 7)
    layout = agent.layout_of(signature)
    port = EnvironmentPort(
        env,
        Best(agent),
        signature,
        agent.make_block(env.spec, layout, 1),
        lambda columns, state: 1,
        seed=1,
        turn_blocks=1,
    )
    runner = model.backend.bind(port.inputs, port.outputs, port.state)
    while len(port.stats.recent_returns) < NUM_EPISODES:
        port.begin(0)
        drive(port, runner)
    trained = list(port.stats.recent_returns)[:NUM_EPISODES]
    again = envs.make(task, 1, 7)
    report = play_episodes(again, agent, model.backend, NUM_EPISODES, model="run")
    assert trained == pytest.approx(report.returns)
    # If the weights always chose the same action, the test would prove nothing.
    each = np.array(report.returns) / np.array(report.lengths)
    assert len(set(each.round(6).tolist())) > 1
