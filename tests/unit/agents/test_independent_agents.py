"""Agents of one environment learn as rows: items, counts, states, returns, players."""

from __future__ import annotations

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import envs, games
from tengen.actors import EnvironmentPort
from tengen.agents.dqn import Dqn
from tengen.agents.ppo import Ppo
from tengen.envs.parallel_env import ParallelEnv
from tengen.errors import UsageError
from tengen.evaluation import play_episodes
from tengen.inference import drive
from tengen.inference.torch_backend import TorchBackend
from tengen.models import resolve_model
from tengen.nets import MlpConfig, Net, NetConfig
from tengen.play import AgentPlayer
from tengen.play.agent_player import open_agent
from tengen.recipes import make_config
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.team_environments import MaskedTeam, Scripted, TwoStep, TwoTeams
from tests.unit.agents.agent_fakes import NetRunner, acted_in_team

NUM_AGENTS, NUM_COPIES = 3, 2


class Counter(Net):
    """Its state is the number of steps since it was zero; all actions are as good."""

    def __init__(self, spec):
        wanted = Signature(
            inputs=spec.observations,
            outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
            state={"memory": TensorSpec()},
        )
        super().__init__(wanted, NetConfig())

    def answer(self, inputs, state):
        memory = state["memory"] + 1.0
        outputs = {"policy": torch.zeros(len(memory), 3), "value": memory}
        return outputs, {"memory": memory}


@pytest.fixture
def scripted():
    return ParallelEnv(Scripted, NUM_COPIES, 0, name="team")


def test_each_agent_writes_its_own_items(scripted, tmp_path):
    agent, net = Ppo(unroll_length=6), Counter(scripted.spec)
    _, _, items = acted_in_team(agent, scripted, net, tmp_path, 2)
    columns = {name: column.numpy() for name, column in items.items()}
    assert len(columns["action"]) == 2 * NUM_COPIES * NUM_AGENTS
    # Each agent's rows: a reset step at time 5 follows five steps of the episode.
    live = {
        agent: columns["is_reset"][columns["agent_id"][:, 0].argmax(1) == agent][0, :6]
        for agent in range(NUM_AGENTS)
    }
    assert {name: (rows == 0).tolist() for name, rows in live.items()} == {
        0: [True, True, False, False, True, False],
        1: [True, True, True, False, False, False],
        2: [False, False, True, True, True, False],
    }
    is_reset = columns["is_reset"][:, :6] != 0
    index = columns["agent_id"][:, :6].argmax(2)
    assert (columns["reward"][:, :6] == np.where(is_reset, 0, index + 1)).all()


def test_frames_and_episodes_are_those_of_copies(scripted, tmp_path):
    agent, net = Ppo(unroll_length=6), Counter(scripted.spec)
    port, told, _ = acted_in_team(agent, scripted, net, tmp_path, 2)
    stats = port.stats
    # 12 steps of each copy are two episodes of five steps and two reset steps.
    assert (stats.num_frames, told["num_rows"]) == (20, 20)
    assert (stats.num_episodes, told["num_episodes"]) == (4, 4)
    # The means over the agents that acted: of 1 and 2, 1 and 2, 2 and 3, 3, 1 and 3.
    assert list(stats.recent_returns) == pytest.approx([10.5] * 4)
    assert list(stats.recent_lengths) == [5] * 4
    assert stats.num_copies == NUM_COPIES


def test_the_state_of_an_absent_agent_is_zero(scripted):
    agent, net = Ppo(unroll_length=6), Counter(scripted.spec)
    port = EnvironmentPort(
        scripted,
        agent,
        net.signature,
        agent.make_block(scripted.spec, agent.layout(net.signature.state), NUM_COPIES),
        lambda columns, state: 1,
        seed=1,
        turn_blocks=1,
    )
    runner, seen = NetRunner(net, port), []
    port.begin(0)
    while port.next():
        seen.append(port.state["memory"][:NUM_AGENTS].tolist())
        runner.run(len(port.inputs["agent_id"]))
        port.done()
    # Before each step: agent 0 dies in the second step and comes in the fourth.
    assert seen == [[0, 0, 0], [1, 1, 0], [2, 2, 0], [0, 3, 1], [0, 0, 2], [1, 0, 3]]


def test_exploration_is_drawn_for_each_agent(scripted):
    """Some learners draw one random number for the whole team."""
    agent = Dqn(epsilon=1.0, epsilon_power=0.0, is_duelling=False)
    spec, taken = scripted.spec, []
    net = MlpConfig().build(
        Signature(inputs=spec.observations, outputs=agent.outputs_of(spec.actions))
    )
    port = EnvironmentPort(
        scripted,
        agent,
        net.signature,
        agent.make_block(spec, agent.layout({}), NUM_COPIES),
        lambda columns, state: taken.append(columns["action"].copy()) or 1,
        seed=1,
        turn_blocks=1,
    )
    port.begin(0)
    drive(port, NetRunner(net, port))
    actions = taken[0].reshape(NUM_COPIES * NUM_AGENTS, -1)
    assert len({tuple(row) for row in actions.tolist()}) == len(actions)
    shares = [(actions == choice).mean() for choice in range(3)]
    assert min(shares) > 0.25


def backend_of(spec):
    outputs = Ppo().outputs_of(spec.actions)
    wanted = Signature(inputs=spec.observations, outputs=outputs)
    return TorchBackend(MlpConfig(lstm_units=4).build(wanted), precision="fp32")


def test_returns_of_an_evaluation(scripted):
    backend = backend_of(scripted.spec)
    report = play_episodes(scripted, Ppo(), backend, 4, model="m")
    assert report.returns == pytest.approx((10.5,) * 4)
    assert report.lengths == (5,) * 4
    assert report.to_json()["teams"] == {}


def test_returns_of_teams():
    env = ParallelEnv(TwoTeams, NUM_COPIES, 0, name="team")
    backend = backend_of(env.spec)
    told = play_episodes(env, Ppo(), backend, 2, model="m").to_json()
    # Red has 1 and 1 of agent 0, 3 and 3 of agent 2, and the mean of both; blue has 2
    # of agent 1 in three steps.
    assert told["mean_return"] == pytest.approx(10.0)
    assert {team: one["mean_return"] for team, one in told["teams"].items()} == {
        "red": pytest.approx(10.0),
        "blue": pytest.approx(6.0),
    }


@pytest.mark.parametrize("kind", ["ppo", "dqn"])
def test_a_run_has_room_for_the_items_of_all_agents(kind):
    task = "tests.team_environments:TwoStep"
    games.allow(task)
    config = make_config(task, kind, None)
    net, store, learner = config.net, config.store, config.learner
    config.agent.check_task(task, net, store, learner)
    if store.is_queue:
        assert (
            learner.batch_size
            == 2 * make_config("CartPole-v1", kind, None).learner.batch_size
        )
    spec = envs.env_spec(task)
    table = config.agent.table_config(store, learner, 1, spec)
    config.agent.check_task(task, net, table, learner)


def test_a_player_of_several_agents_takes_only_dicts(tmp_path, publish_agent):
    task = "tests.team_environments:Scripted"
    run = publish_agent(tmp_path / "run", task, "ppo", sees_last_step=True)
    player = AgentPlayer(open_agent(resolve_model(run.path), "run", task=task))
    env = Scripted()
    seen, _ = env.reset()
    with refused(UsageError, "observation"):
        player.act(list(seen.values()))
    seen, rewards, *_ = env.step(player.act(seen))
    with refused(UsageError, "float"):
        player.act(seen, 1.0)
    assert set(player.act(seen, rewards)) == {"a", "b"}


def test_a_player_of_several_agents_takes_only_a_dict_of_masks(tmp_path, publish_agent):
    task = "tests.team_environments:MaskedTeam"
    run = publish_agent(tmp_path / "run", task, "ppo")
    player = AgentPlayer(open_agent(resolve_model(run.path), "run", task=task))
    seen, infos = MaskedTeam().reset()
    with refused(UsageError, "ndarray"):
        player.act(seen, None, np.ones(3))
    masks = {agent: info["action_mask"] for agent, info in infos.items()}
    assert player.act(seen, None, masks)["a"] == 0


PLAYED = [
    ("ppo", "TwoStep", TwoStep, {}),
    ("ppo", "Scripted", Scripted, {"lstm_units": 8, "sees_last_step": True}),
    ("ppo", "MaskedTeam", MaskedTeam, {}),
]


@pytest.mark.parametrize(("kind", "name", "own", "settings"), PLAYED)
def test_a_player_acts_as_the_evaluation_does(
    kind, name, own, settings, tmp_path, publish_agent
):
    task = f"tests.team_environments:{name}"
    run = publish_agent(tmp_path / "run", task, kind, **settings)
    model = open_agent(resolve_model(run.path), "run", task=task)
    report = play_episodes(
        envs.make(task, 1, 7), model.agent, model.backend, 1, model="run"
    )
    env, player, total, length = own(), AgentPlayer(model), 0.0, 0
    seen, infos = env.reset(seed=0)
    rewards = None
    while env.agents:
        masks = {a: i["action_mask"] for a, i in infos.items() if "action_mask" in i}
        actions = player.act(seen, rewards, masks or None)
        assert set(actions) == set(env.agents)
        seen, rewards, _, _, infos = env.step(actions)
        seen = {agent: seen[agent] for agent in seen if agent in env.agents}
        total += sum(rewards.values()) / len(rewards)
        length += 1
    assert length == report.lengths[0]
    assert total == pytest.approx(report.returns[0], rel=1e-6)
