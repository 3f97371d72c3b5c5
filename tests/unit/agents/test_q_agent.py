"""Action selection of Q agents, and the updates of the target network."""

import numpy as np
import pytest
import torch

from tengen.actors import Slots
from tengen.agents.bases.q_agent import TargetUpdate, q_values
from tengen.agents.dqn import Dqn
from tengen.agents.r2d2 import R2d2
from tengen.envs import ActionSpec
from tengen.experience import ReplayConfig
from tests.unit.agents.agent_fakes import ONE_CHOICE, TableNet

ALL = Slots(0, 8, 8)


@pytest.mark.parametrize("agent", [Dqn(), R2d2()])
def test_the_epsilons_of_eight_copies(agent):
    # 0.4 ** (1 + 7 i / 7), the exploration rates of Horgan et al. 2018.
    expected = [0.4, 0.16, 0.064, 0.0256, 0.01024, 0.004096, 0.0016384, 0.00065536]
    assert agent.epsilons(ALL) == pytest.approx(expected)
    # An actor's copies have a slice of the exploration rates of all copies.
    assert agent.epsilons(Slots(2, 3, 8)) == pytest.approx(expected[2:5])


@pytest.mark.parametrize("agent", [Dqn(), R2d2()], ids=lambda agent: agent.kind)
def test_one_copy_explores_as_many_copies_do_on_average(agent):
    many = agent.epsilons(Slots(0, 1000, 1000)).mean()
    assert agent.epsilons(Slots(0, 1, 1)) == pytest.approx([many], rel=0.01)
    assert many < 0.1


def test_the_agents_of_a_copy_share_its_epsilon():
    agent = Dqn()
    copies = agent.epsilons(Slots(0, 2, 2))
    assert agent.epsilons(Slots(0, 6, 6, 3)).tolist() == copies.repeat(3).tolist()
    assert agent.epsilons(Slots(3, 3, 6, 3)).tolist() == copies[1:].repeat(3).tolist()
    one = agent.epsilons(Slots(0, 1, 1))
    assert agent.epsilons(Slots(0, 3, 3, 3)).tolist() == one.repeat(3).tolist()


def test_epsilons_may_be_the_same_for_all_or_none():
    assert Dqn(epsilon=0.1, epsilon_power=0.0).epsilons(ALL).tolist() == [0.1] * 8
    assert Dqn(epsilon=0.0).epsilons(ALL).tolist() == [0.0] * 8


@pytest.mark.parametrize("is_duelling", [False, True])
def test_the_best_action_is_taken_unless_a_uniform_number_is_below_epsilon(is_duelling):
    agent = Dqn(is_duelling=is_duelling, epsilon=0.4)
    values = np.array([[1, 5, 2], [7, 5, 2], [0, 0, 3], [2, 2, 2]], np.float32)
    outputs = {"q": values}
    if is_duelling:
        outputs = {"advantage": values, "value": np.full(4, -50, np.float32)}
    assert agent.num_uniforms(ONE_CHOICE) == 2
    greedy = agent.act_greedily(outputs, ONE_CHOICE)["action"]
    assert greedy.tolist() == [1, 0, 2, 0]
    # Rates: 0.4 ** (1, 10 / 3, 17 / 3, 8). At 0.1 only the first copy explores.
    uniforms = np.array([[0.1, 0.99], [0.1, 0.4], [0.1, 0.7], [0.1, 0.0]])
    chosen = agent.act(outputs, ONE_CHOICE, uniforms, Slots(0, 4, 4))
    assert list(chosen) == ["action", "q_taken", "q_best"]
    # The mean over the actions of a dueling head is the state's value, -50.
    shift = -50 - values.mean(1) if is_duelling else np.zeros(4)
    taken = values[np.arange(4), chosen["action"]] + shift
    assert chosen["q_taken"] == pytest.approx(taken)
    assert chosen["q_best"] == pytest.approx(values.max(1) + shift)
    assert chosen["action"].tolist() == [2, 0, 2, 0]
    assert chosen["action"].dtype == np.int64
    # A uniform number equal to the rate 0.4 does not explore.
    uniforms[:, 0] = 0.4
    chosen = agent.act(outputs, ONE_CHOICE, uniforms, Slots(0, 4, 4))
    assert chosen["action"].tolist() == greedy.tolist()


def test_every_action_is_explored_alike():
    agent = Dqn(epsilon=1.0, epsilon_power=0.0)
    zeros = np.zeros((300, 3), np.float32)
    outputs = {"advantage": zeros, "value": zeros[:, 0]}
    uniforms = np.stack([np.zeros(300), np.arange(300) / 300], axis=1)
    chosen = agent.act(outputs, ONE_CHOICE, uniforms, Slots(0, 300, 300))["action"]
    assert np.bincount(chosen).tolist() == [100, 100, 100]


def test_what_a_network_is_asked_for():
    asked = Dqn().outputs_of(ONE_CHOICE)
    assert {n: s.shape for n, s in asked.items()} == {"value": (), "advantage": (3,)}
    asked = Dqn(is_duelling=False).outputs_of(ONE_CHOICE)
    assert {n: s.shape for n, s in asked.items()} == {"q": (3,)}


def test_q_values_of_duelling_answers():
    outputs = {
        "value": torch.tensor([[10.0]]),
        "advantage": torch.tensor([[[1.0, 2.0, 6.0]]]),
    }
    assert q_values(outputs, {}).tolist() == [[[8.0, 9.0, 13.0]]]
    assert q_values({"q": outputs["advantage"]}, {}).tolist() == [[[1.0, 2.0, 6.0]]]


@pytest.mark.parametrize(
    "actions",
    [
        ActionSpec(shape=(2,), num_choices=(3, 2)),
        ActionSpec(shape=(1,), low=(-1.0,), high=(1.0,)),
    ],
)
@pytest.mark.parametrize("agent", [Dqn, R2d2])
def test_only_one_choice_is_not_refused(agent, actions):
    assert agent.refusal_of(ONE_CHOICE) == ""
    assert "single discrete action" in agent.refusal_of(actions)


def test_a_target_follows_at_its_period_alone():
    net = TableNet(q=np.zeros((2, 3)))
    update = TargetUpdate(Dqn(target_period=3), net, ReplayConfig())
    followed = []
    for num_steps in range(1, 8):
        with torch.no_grad():
            net.tables["q"].fill_(num_steps)
        update.stepped(net, num_steps, {})
        followed.append(update.target.tables["q"][0, 0].item())
    assert followed == [0, 0, 3, 3, 3, 6, 6]
    assert not update.target.training
    assert not any(p.requires_grad for p in update.target.parameters())


def test_a_target_is_kept_and_taken_back():
    update = TargetUpdate(Dqn(), TableNet(q=[[1.0, 2.0, 3.0]]), ReplayConfig())
    other = TargetUpdate(Dqn(), TableNet(q=[[7.0, 7.0, 7.0]]), ReplayConfig())
    other.load_state({name: t.clone() for name, t in update.state().items()})
    assert other.target.tables["q"].tolist() == [[1.0, 2.0, 3.0]]
