"""Checkpoints of before networks had a mean picture, and updates their scales."""

import pytest
import torch

from tengen.agents.dqn import Dqn, DqnUpdate
from tengen.agents.pqn import Pqn, PqnUpdate
from tengen.agents.vtrace import Vtrace, VtraceUpdate
from tengen.envs import ActionSpec
from tengen.errors import RunError
from tengen.experience import ReplayConfig
from tengen.learners import AdamWConfig, Learner, LearnerConfig
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.unit.learners.learner_fakes import FakeTable
from tests.unit.learners.test_recorded import learner_of

CHOICE = ActionSpec(num_choices=(3,))
NET = NatureConfig(channels=(4,), kernels=(3,), strides=(1,), num_units=8)
LATER = ("centres.", "return_scale", "advantage_scale")


def made(agent):
    wanted = Signature(
        inputs={"observation": TensorSpec(dtype="uint8", shape=(1, 8, 8))},
        outputs=agent.outputs_of(CHOICE),
    )
    net = NET.build(wanted)
    replay = ReplayConfig(sampler="prioritized")
    update = {
        "vtrace": lambda: VtraceUpdate(agent, CHOICE),
        "pqn": lambda: PqnUpdate(agent),
        "dqn": lambda: DqnUpdate(agent, net, replay),
    }[agent.kind]()
    config = LearnerConfig(batch_size=4, optimizer=AdamWConfig())
    table = FakeTable()
    return Learner(config, net, update, table, num_threads=1)


@pytest.mark.parametrize(
    "agent", [Vtrace(), Pqn(), Dqn()], ids=lambda agent: agent.kind
)
def test_they_go_on_without(agent):
    with made(agent) as old, made(agent) as new:
        state = old.state()
        kept = {
            name: tensor.clone()
            for name, tensor in state.tensors.items()
            if not any(word in name for word in LATER)
        }
        assert len(kept) < len(state.tensors)
        seen = {"observation": torch.randint(0, 256, (5, 1, 8, 8), dtype=torch.uint8)}
        expected = old.net.eval().answer(seen, {})[0]
        new.load_state(state._replace(tensors=kept))
        # Training does not bring a mean either, which would be another network.
        new.net.train().answer(seen, {})
        found = new.net.eval().answer(seen, {})[0]
        for name, answer in expected.items():
            assert torch.equal(found[name], answer)
        del kept["net.torso.dense.weight"]
        with refused(RunError, "net.torso.dense.weight"):
            new.load_state(state._replace(tensors=kept))


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("mappo", {"critic"}),
        ("qmix", {"target", "mixer", "target_mixer"}),
    ],
)
def test_agents_go_on_without_statistics_of_the_state(kind, names):
    task = "tests.team_environments:TwoStep"
    with learner_of(kind, task)[0] as old, learner_of(kind, task)[0] as new:
        state = old.state()
        kept = {
            name: tensor + 1 if name.startswith("agent.") else tensor.clone()
            for name, tensor in state.tensors.items()
            if not name.startswith("agent.state_standard.")
        }
        assert len(kept) == len(state.tensors) - 3
        new.load_state(state._replace(tensors=kept))
        found = new.state().tensors
        own = [n.split(".") for n in found if n.startswith("agent.")]
        assert {prefix for _, prefix, *rest in own if rest} == {
            "state_standard",
            *names,
        }
        for name, tensor in found.items():
            assert torch.equal(tensor, kept.get(name, state.tensors[name])), name
