"""Agents with choices never take an illegal one, nor learn from its value."""

import contextlib
import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn

pytest.importorskip("gymnasium")

from gymnasium import spaces

from tengen import games
from tengen.actors.environment_rows import EnvironmentRows
from tengen.agents import Agent, EnvironmentAgent
from tengen.agents.bases.unrolls import answer_legally
from tengen.agents.dqn import Dqn
from tengen.agents.iqn import Iqn
from tengen.agents.pqn import Pqn
from tengen.envs import ActionSpec
from tengen.envs.gymnasium_env import GymnasiumEnv
from tengen.errors import UsageError
from tengen.evaluation import Acting
from tengen.experience import ReplayConfig, StepTable
from tengen.inference import drive
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.store import Column
from tengen.tensors import ACTION_MASK, ILLEGAL, Signature, TensorSpec
from tests import masked_environments
from tests.masked_environments import DictDoors
from tests.refusals import refused
from tests.unit.agents.agent_fakes import NetRunner, TableNet, item, port_of

NUM_ENVS = 4


def kinds_for(actions):
    return [
        kind
        for kind, agent in Agent.kinds().items()
        if issubclass(agent, EnvironmentAgent)
        and not agent.needs_agents
        and not agent.refusal_of(actions)
    ]


KINDS = kinds_for(ActionSpec(num_choices=(8,)))
CASES = [
    *((kind, "StrictDoors") for kind in KINDS),
    *((kind, "ManyStrictDoors") for kind in ("dqn", "iqn", "r2d2", "ppo", "sac")),
    *((kind, "SeenStrictDoors") for kind in ("dqn", "pqn", "r2d2", "ppo", "sac")),
    *(
        (kind, "PairsOfStrictDoors")
        for kind in kinds_for(ActionSpec(shape=(2,), num_choices=(8, 3)))
    ),
]


@contextlib.contextmanager
def table_after_acting(agent, net, env, folder, store):
    """Yields a table with the items of four turns of acting, and their number."""
    columns = {
        name: Column(dtype=tensor.dtype, shape=tensor.shape)
        for name, tensor in agent.columns(env.spec).items()
    }
    table = StepTable(
        folder / "steps",
        columns,
        agent.layout(net.signature.state),
        store,
        seed=1,
        num_slots=NUM_ENVS,
        batch_size=3_000,
    )
    try:
        port = port_of(agent, net, env, table)
        for version in range(4):
            port.begin(version)
            drive(port, NetRunner(net, port))
        yield table, port.stats.num_items
    finally:
        table.close()


def items_of(agent, net, env, folder):
    """Returns the columns of all items of four turns of acting."""
    store = ReplayConfig(sampler="fifo", max_items=10_000)
    with table_after_acting(agent, net, env, folder, store) as (table, num_items):
        batch = table.sample(num_items)
        drawn = {
            name: torch.from_numpy(np.array(column))
            for name, column in batch.columns.items()
        }
        batch.ack()
    return drawn


class Made:
    """An agent, its network, its config, and items from its acting in strict doors."""

    def __init__(self, kind, name, folder):
        self.task = f"tests.masked_environments:{name}"
        self.env_class = getattr(masked_environments, name)
        games.allow(self.task)
        frames = ["net.num_frames=4"] if name == "SeenStrictDoors" else []
        self.config = override(make_config(self.task, kind, None), frames)
        self.agent = self.config.agent
        torch.manual_seed(0)
        self.net = self.config.net.build(self.agent.signature(self.task))
        self.num_choices = sum(self.env().spec.actions.num_choices)
        self.open = list(self.env_class.open_choices)
        self.closed = [i for i in range(self.num_choices) if i not in self.open]
        self.prefer_closed(self.net, 1e6)
        self.folder = folder

    @functools.cached_property
    def columns(self):
        return items_of(self.agent, self.net, self.env(), self.folder)

    def env(self):
        return GymnasiumEnv(self.env_class, NUM_ENVS, 0, name=self.task)

    def last_layers(self, net):
        return [
            layer
            for layer in net.modules()
            if isinstance(layer, nn.Linear) and layer.out_features == self.num_choices
        ]

    def prefer_closed(self, net, bias):
        """Makes every closed door seem best, or worst."""
        with torch.no_grad():
            for layer in self.last_layers(net):
                layer.bias[self.closed] = bias


@pytest.fixture(params=CASES, ids="-".join)
def made(request, tmp_path):
    return Made(*request.param, tmp_path)


class ShownDoors(DictDoors):
    """The observation is the mask, which is another one at each step."""

    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Dict(
            dict.fromkeys(("observation", "action_mask"), spaces.MultiBinary(8))
        )

    def drawn(self):
        observation, info = super().drawn()
        return {**observation, "observation": observation["action_mask"]}, info


@pytest.mark.parametrize("kind", KINDS)
def test_a_mask_is_stored_with_its_observation(kind, tmp_path):
    task = "tests.masked_environments:DictDoors"
    games.allow(task)
    env = GymnasiumEnv(ShownDoors, NUM_ENVS, 0, name=task)
    agent = make_config(task, kind, None).agent
    inputs = {**env.spec.observations, **agent.inputs_of(env.spec)}
    wanted = Signature(inputs=inputs, outputs=agent.outputs_of(env.spec.actions))
    net = agent.default_net(env.spec).build(wanted)
    columns = items_of(agent, net, env, tmp_path)
    shown = columns["observation/observation"]
    assert (columns[ACTION_MASK] != 0).eq(shown != 0).all()
    assert len(shown.flatten(0, 1).unique(dim=0)) > 10


def test_no_illegal_action_is_taken_or_learned_from(made):
    made_net, columns = made.net, made.columns
    mask, action = columns[ACTION_MASK] != 0, columns["action"]
    is_live = columns["is_reset"] == 0
    is_live[:, -1] = False  # a closing step has no action
    assert is_live.sum() > 50
    starts = np.cumsum((0, *made.env().spec.actions.num_choices[:-1]))
    chosen = action.flatten(2) if action.dim() > 2 else action[..., None]
    assert mask[is_live].gather(-1, (chosen + torch.from_numpy(starts))[is_live]).all()
    losses = []
    for bias in (1e6, -3.0):
        # Copied, because learning changes the statistics of observations.
        net = copy.deepcopy(made_net).eval()
        torch.manual_seed(0)
        update = made.agent.make_update(made.task, net, made.config.store)
        made.prefer_closed(net, bias)
        made.prefer_closed(getattr(update, "target", nn.Identity()), bias)
        torch.manual_seed(0)
        batch = next(iter(update.minibatches(net, dict(columns))))
        parts = update.loss(net, batch)
        parts.loss.backward()
        losses.append(parts.loss.item())
        for layer in made.last_layers(net):
            assert layer.weight.grad is not None
            assert not layer.weight.grad[made.closed].any()
            assert layer.weight.grad[made.open].any()
        if parts.priorities is not None:
            assert (parts.priorities < 1e3).all()
    assert np.isfinite(losses).all()
    assert losses[0] == losses[1]


@pytest.mark.parametrize("kind", ["dqn", "iqn", "r2d2"])
def test_first_priorities_ignore_the_values_of_illegal_actions(kind, tmp_path):
    made = Made(kind, "StrictDoors", tmp_path)
    told, agent_class = [], type(made.agent)
    computed = agent_class.priorities

    def priorities(agent, steps):
        told[-1].append(computed(agent, steps))
        return told[-1][-1]

    store = ReplayConfig(
        sampler="prioritized", max_items=10_000, min_items=1, max_ahead=10_000
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(agent_class, "priorities", priorities)
        for bias in (1e6, -3.0):
            made.prefer_closed(made.net, bias)
            told.append([])
            folder = tmp_path / str(bias)
            folder.mkdir()
            with table_after_acting(made.agent, made.net, made.env(), folder, store):
                pass
    first, second = map(np.concatenate, told)
    assert len(first) > 30
    assert (first < 1e3).all()
    assert (first == second).all()


def masked_items(masks, **columns):
    """Returns one item whose steps have the observations 0, 1, ..."""
    items = item(observation=range(len(masks)), **columns)
    return {**items, ACTION_MASK: torch.tensor([masks], dtype=torch.bool)}


# For each observation, the values of three actions.
VALUES = [[0.5, 7.0, 9.0], [2.0, 50.0, 70.0], [1e6, 1e6, 1e6]]
# The first two actions are legal in the first step, and only the first in the second.
MASKS = [[1, 1, 0], [1, 0, 0], [1, 1, 1]]


def target_of(kind, items):
    """Returns the target of the item's first step; its discount is 0.5."""
    store = ReplayConfig(sampler="prioritized")
    values = torch.tensor(VALUES)
    if kind == "pqn":
        agent = Pqn(discount=0.5, num_epochs=1, num_minibatches=1, trace_lambda=0.0)
        update = agent.make_update("", TableNet(q=values), store)
        (batch,) = update.minibatches(TableNet(q=values), items)
        return batch["target"].flatten()[0].item()
    if kind == "iqn":
        net = TableNet(quantiles=values[:, None].expand(-1, 8, -1))
        agent = Iqn(discount=0.5, num_steps=2)
    else:
        net = TableNet(q=values)
        agent = Dqn(discount=0.5, num_steps=2, is_duelling=False)
    update = agent.make_update("", net, store)
    (batch,) = update.minibatches(net, items)
    error = update.loss(net, batch).priorities
    return values[0, items["action"][0, 0]].item() + error.item()


@pytest.mark.parametrize("kind", ["dqn", "iqn", "pqn"])
def test_a_target_has_the_mask_of_the_state_it_bootstraps_from(kind):
    items = masked_items(
        MASKS, action=[0, 0, 0], reward=[1.0, 0.0, 0.0], is_reset=[0, 1, 0]
    )
    # Neither illegal actions nor the next episode's steps affect the target.
    assert target_of(kind, items) == pytest.approx(1.0 + 0.5 * 2.0, abs=1e-4)
    items["truncated"][0, 0] = 1
    assert target_of(kind, items) == pytest.approx(1.0 + 0.5 * 2.0, abs=1e-4)
    items["terminated"][0, 0] = 1
    assert target_of(kind, items) == pytest.approx(1.0, abs=1e-4)


def test_only_outputs_of_choices_are_masked():
    spec = TensorSpec(shape=(3,))
    wanted = Signature(
        inputs={"observation": TensorSpec(dtype="int64")},
        outputs={"q": spec, "inverse": spec},
    )
    rows = EnvironmentRows(wanted, ActionSpec(num_choices=(3,)), 2)
    mask = np.array([[True, False, True], [False, True, True]])
    rows.begin({"observation": np.arange(2), ACTION_MASK: mask})
    rows.take_answers("m")
    assert (rows.outputs["q"] == np.where(mask, 0, np.float32(ILLEGAL))).all()
    assert (rows.outputs["inverse"] == 0).all()
    net = TableNet(q=torch.zeros(2, 3), inverse=torch.zeros(2, 3))
    inputs = {"observation": torch.arange(2), ACTION_MASK: torch.from_numpy(mask)}
    outputs, _ = answer_legally(net, inputs, {})
    assert (outputs["q"].detach().numpy() == rows.outputs["q"]).all()
    assert (outputs["inverse"] == 0).all()


class Unnamed(Dqn):
    """An own agent whose network's output no mask applies to."""

    def outputs_of(self, actions):
        return {"preferences": TensorSpec(shape=actions.num_choices)}


def test_an_agent_without_an_output_of_choices_is_refused_where_there_are_masks():
    def check(name):
        task = f"tests.masked_environments:{name}"
        games.allow(task)
        config = make_config(task, "dqn", None)
        Unnamed().check_task(task, config.net, config.store, config.learner)

    check("BlindDoors")
    with refused(UsageError, "outputs of agent dqn (preferences) must include"):
        check("DictDoors")


def test_evaluation_takes_no_illegal_action(made):
    from tengen.evaluation import play_episodes
    from tengen.inference.torch_backend import TorchBackend

    backend = TorchBackend(made.net, precision="fp32")
    samples = ("sampled",) if made.agent.draws_actions else ()
    for mode in ("greedy", "epsilon", *samples):
        acting = Acting(mode=mode, epsilon=0.5)
        report = play_episodes(
            made.env(), made.agent, backend, 8, model="m", acting=acting
        )
        assert report.lengths == (10,) * 8
