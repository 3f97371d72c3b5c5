"""Earlier models act for the other teams, and nothing is learned from their steps."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

pytest.importorskip("gymnasium")

from tengen import games
from tengen.actors import Behaviours, EnvironmentPort, Opponents, Slots
from tengen.agents.ppo import Ppo
from tengen.envs.parallel_env import ParallelEnv
from tengen.errors import RunError, UsageError
from tengen.experience import ReplayConfig, StepTable
from tengen.inference import drive
from tengen.learners import Learner
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.store import Batch, Column
from tengen.tensors import Signature, TensorSpec
from tests.refusals import refused
from tests.team_environments import Duel, TwoTeams
from tests.unit.agents.agent_fakes import NetRunner

NUM_COPIES = 4
DUEL = "tests.team_environments:Duel"


class Always:
    """A model that takes one action; its state counts the steps of an episode.

    Attributes:
        counts: The states after each evaluation.
    """

    def __init__(self, action):
        self.action, self.counts = action, []

    def bind(self, inputs, outputs, state):
        self._outputs, self._state = outputs, state
        return self

    def run(self, num_rows):
        self._outputs["policy"][:num_rows] = 100.0 * np.eye(3)[self.action]
        for array in self._state.values():
            array[:num_rows] += 1
            self.counts.append(array[:num_rows].tolist())


class Duellists:
    """A port of copies of an environment of two teams, whose newest model takes 0."""

    def __init__(self, own, models, share, num_steps=6, agent=None):
        self.made, self.blocks = [], []
        self.env = ParallelEnv(self._make(own), NUM_COPIES, 0, name="duel")
        spec, num_rows = self.env.spec, self.env.num_envs
        agent = agent or Ppo(unroll_length=num_steps)
        signature = Signature(
            inputs=spec.observations,
            outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
            state={"memory": TensorSpec()},
        )
        slots = Slots(0, num_rows, num_rows)
        self.opponents = Opponents(spec, signature, slots, share, 1, models.get)
        self.opponents.offer(sorted(models))
        self.port = EnvironmentPort(
            self.env,
            agent,
            signature,
            agent.make_block(spec, agent.layout(signature.state), NUM_COPIES),
            lambda columns, state: self.blocks.append(columns) or 1,
            seed=1,
            turn_blocks=1,
            slots=slots,
            opponents=self.opponents,
        )
        port = self.port
        self._newest = Always(0).bind(port.inputs, port.outputs, port.state)

    def _make(self, own):
        return lambda: self.made.append(own()) or self.made[-1]

    def play(self, num_turns):
        for version in range(num_turns):
            self.port.begin(version)
            drive(self.port, self._newest)

    def joined(self, name):
        """A column of the steps of all blocks, ``[copies, agents, T]``."""
        columns = [block[name][:, :-1] for block in self.blocks]
        rows = np.concatenate(columns, axis=1)
        return rows.reshape(NUM_COPIES, -1, *rows.shape[1:])


def test_one_team_learns_and_the_other_acts_with_an_earlier_model():
    duel = Duellists(TwoTeams, {3: Always(2)}, share=1.0)
    duel.play(10)
    action, is_reset = duel.joined("action"), duel.joined("is_reset") != 0
    learning = set()
    # Six steps are an episode: five steps and a reset step. Agents 0 and 2 are a team.
    for copy, env in enumerate(duel.made):
        for episode in range(10):
            steps = slice(6 * episode, 6 * episode + 5)
            live = ~is_reset[copy, :, steps]
            team = 1 if live[1].any() else 0
            learning.add(team)
            is_own = np.array([team == 0, team == 1, team == 0])
            assert not live[~is_own].any()
            assert (action[copy, is_own, steps][live[is_own]] == 0).all()
            taken = env.taken[5 * episode : 5 * episode + 5]
            for actions in taken:
                for name, chosen in actions.items():
                    index = env.possible_agents.index(name)
                    assert chosen == (0 if is_own[index] else 2)
    assert learning == {0, 1}
    for name in ("reward", "terminated"):
        assert (duel.joined(name)[is_reset] == 0).all()


def test_episodes_are_counted_after_the_learning_team_has_left_them(tmp_path):
    """Agent 1, the only one of its team, leaves two steps before the others."""
    agent = Ppo(unroll_length=6)
    duel = Duellists(TwoTeams, {3: Always(2)}, share=1.0, agent=agent)
    table = table_of(agent, duel.env.spec, agent.layout({}), tmp_path)
    writer = table.writer("actor-0", 3 * NUM_COPIES, num_together=3)
    duel.play(10)
    for block in duel.blocks:
        writer.append(block, {})
    told, is_live = table.describe(), duel.joined("is_reset") == 0
    assert told["num_episodes"] == duel.port.stats.num_episodes == 10 * NUM_COPIES
    # Nobody learned from the other two steps.
    assert told["num_rows"] == is_live.any(axis=1).sum() < duel.port.stats.num_frames
    table.close()


def test_the_share_is_that_of_episodes():
    duel = Duellists(Duel, {3: Always(1)}, share=0.3, num_steps=10)
    duel.play(100)
    is_live = (duel.joined("is_reset") == 0).reshape(NUM_COPIES, 2, 100, 10)[..., 0]
    with_opponent = ~is_live.all(axis=1)
    assert is_live.any(axis=1).all()
    assert 0.2 < with_opponent.mean() < 0.4
    sides = is_live[:, 0][with_opponent]
    assert 0.35 < sides.mean() < 0.65


def test_without_models_all_teams_learn():
    for share, models in ((1.0, {}), (0.0, {3: Always(2)})):
        duel = Duellists(Duel, models, share=share, num_steps=10)
        duel.play(4)
        is_reset = duel.joined("is_reset").reshape(NUM_COPIES, 2, 4, 10)
        assert (is_reset == [0] * 9 + [1]).all()


def test_a_model_that_was_removed_is_no_opponent():
    duel = Duellists(Duel, {3: None}, share=1.0, num_steps=10)
    duel.play(2)
    assert duel.joined("is_reset").sum() == 2 * NUM_COPIES * 2


def test_an_opponent_has_a_state_of_its_own_from_each_episode_s_start():
    model = Always(2)
    duel = Duellists(Duel, {3: model}, share=1.0, num_steps=10)
    duel.play(3)
    # The last evaluation of an episode is that at its reset step.
    assert model.counts == [[t] * NUM_COPIES for t in range(1, 11)] * 3


def test_an_opponent_s_state_is_zero_when_its_agent_comes():
    model = Always(2)
    duel = Duellists(TwoTeams, {3: model}, share=1.0)
    duel.play(10)
    found = set()
    for episode in range(10):
        found |= set(zip(*model.counts[6 * episode : 6 * episode + 6], strict=True))
    # Agents a, b and c, until the episode's reset step.
    assert found == {(1, 2, 3, 1, 1, 2), (1, 2, 3, 4, 1, 1), (1, 1, 1, 2, 3, 4)}


def test_models_that_win_are_drawn_more_often():
    """The signal is 0 or 1, so action 2 never wins; action 0 is right half the time."""
    models = {3: Always(2), 5: Always(0)}
    duel = Duellists(Duel, models, share=1.0, num_steps=10)
    duel.play(60)
    results = dict(duel.opponents.state()[0])
    assert results[3] < 0.15
    assert 0.4 < results[5] < 0.6
    for model in models.values():
        model.counts.clear()
    duel.play(60)
    num_steps = {n: sum(map(len, model.counts)) for n, model in models.items()}
    assert num_steps[5] > 4 * num_steps[3] > 0


def test_results_outlive_the_process(tmp_path):
    path = tmp_path / "actors" / "behaviour-0.json"
    duel = Duellists(Duel, {3: Always(2), 5: Always(0)}, share=1.0, num_steps=10)
    kept = Behaviours(path, 0.0)
    kept.add(duel.opponents)
    duel.play(5)
    kept.close()
    again = Duellists(Duel, {}, share=1.0).opponents
    Behaviours(path, 0.0).add(again)
    assert again.state() == duel.opponents.state()
    again.offer([5, 7])
    (results,) = again.state()
    assert [number for number, _ in results] == [5, 7]
    assert dict(results)[7] == 0.5
    path.write_text(json.dumps({"schema": 1, "copies": [["x"]]}))
    with refused(RunError, "behaviour"):
        Behaviours(path, 0.0).add(again)


def test_the_same_seed_draws_the_same_opponents():
    found = []
    for _ in range(2):
        models = {number: Always(number % 3) for number in range(4)}
        duel = Duellists(Duel, models, share=0.5, num_steps=10)
        duel.play(10)
        found.append((duel.joined("is_reset"), duel.opponents.state()))
    assert np.array_equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def table_of(agent, spec, layout, folder):
    columns = agent.columns(spec)
    return StepTable(
        folder / "steps",
        {n: Column(dtype=t.dtype, shape=t.shape) for n, t in columns.items()},
        layout,
        ReplayConfig(sampler="fifo", max_items=10_000),
        seed=1,
        num_slots=NUM_COPIES * agent.num_slots(spec),
        batch_size=5_000,
    )


def steps_of(kind, folder):
    """Returns an agent's config, and columns of items that an actor has written.

    The second result has the rows of opponents, ``[B, T]``.
    """
    games.allow(DUEL)
    config = override(make_config(DUEL, kind, None), ["net.standardizes=false"])
    agent, signature = config.agent, config.signature
    env = ParallelEnv(Duel, NUM_COPIES, 0, name="duel")
    spec, layout = env.spec, agent.layout_of(signature)
    num_slots = agent.num_slots(spec)
    table = table_of(agent, spec, layout, folder)
    first = agent.first_priorities(spec.actions)
    writer = table.writer(
        "actor-0", NUM_COPIES * num_slots, first, num_together=num_slots
    )
    slots = Slots(0, env.num_envs, env.num_envs)
    torch.manual_seed(1)
    net = config.net.build(agent.signature(DUEL))
    opponents = Opponents(spec, signature, slots, 0.7, 1, Sevens(signature).open)
    opponents.offer([1, 2])
    port = EnvironmentPort(
        env,
        agent,
        signature,
        agent.make_block(spec, layout, NUM_COPIES),
        writer.append,
        seed=1,
        turn_blocks=8,
        slots=slots,
        opponents=opponents,
    )
    port.begin(0)
    drive(port, NetRunner(net, port))
    batch = table.sample(port.stats.num_items)
    columns = {name: np.array(column) for name, column in batch.columns.items()}
    batch.ack()
    told = table.describe()
    assert (told["num_rows"], told["num_episodes"]) == (
        port.stats.num_frames,
        port.stats.num_episodes,
    )
    table.close()
    return config, columns


class Sevens:
    """A model whose outputs are all 7."""

    def __init__(self, signature):
        self._names = list(signature.outputs)

    def open(self, number):
        return self

    def bind(self, inputs, outputs, state):
        self._outputs = outputs
        return self

    def run(self, num_rows):
        for name in self._names:
            self._outputs[name][:num_rows] = 7.0


class OneBatch:
    """An experience that always returns the same batch."""

    config = None

    def __init__(self, columns):
        self._columns = columns

    def sample(self, num_samples):
        count = len(self._columns["is_reset"])
        keys, share = np.arange(count), np.full(count, 1.0 / count)
        copied = {name: column.copy() for name, column in self._columns.items()}
        return Batch(0, keys, share, copied, count, lambda *_: None)


def learned(config, columns):
    """Returns the weights after two learner steps, and the metrics."""
    torch.manual_seed(0)
    net = config.net.build(config.agent.signature(DUEL))
    update = config.agent.make_update(DUEL, net, config.store)
    with Learner(
        config.learner, net, update, OneBatch(columns), num_threads=1
    ) as learner:
        metrics = list(learner.steps(2))
    return [tensor.detach().numpy() for tensor in net.parameters()], metrics


@pytest.mark.parametrize(
    "kind",
    ["a2c", "dqn", "iqn", "mappo", "ppo", "pqn", "r2d2", "rnd", "sac", "vtrace"],
)
def test_the_steps_of_opponents_have_no_part_in_any_loss(kind, tmp_path):
    config, columns = steps_of(kind, tmp_path)
    is_reset = columns["is_reset"] != 0
    is_theirs = is_reset & (columns["truncated"] != 0)
    # No item of DQN, IQN or SAC begins with a reset step, and one of SAC has a single
    # transition.
    if kind == "sac":
        assert not is_theirs.any()
        return
    assert 0.7 > is_theirs.mean() > (0.01 if kind in ("dqn", "iqn") else 0.1)
    before, metrics = learned(config, columns)
    # An observation after a transition is used to bootstrap, whoever acts on it.
    is_unused = is_theirs.copy()
    is_unused[:, 1:] &= is_reset[:, :-1]
    rng, other = np.random.default_rng(0), dict(columns)
    for name, column in columns.items():
        if name in ("is_reset", "truncated", "model_version", "terminated"):
            continue
        if name.startswith("state/") or column.ndim < 2:
            continue
        is_seen = name.startswith("observation") or name in ("agent_id", "last_action")
        rows = is_unused if is_seen or name == "global_state" else is_theirs
        noise = rng.integers(0, 2, column.shape).astype(column.dtype)
        wide = rows.reshape(*rows.shape, *[1] * (column.ndim - 2))
        other[name] = np.where(wide, noise, column)
        if name == "global_state":
            # Its statistics count the states of all items.
            other[name][is_unused] = rng.permutation(column[is_unused])
    after, metrics_after = learned(config, other)
    for one, two in zip(before, after, strict=True):
        np.testing.assert_allclose(one, two, atol=1e-6)
    for one, two in zip(metrics, metrics_after, strict=True):
        assert one["loss"] == pytest.approx(two["loss"], abs=1e-6)


def test_opponents_need_several_teams():
    task = "tests.team_environments:TwoStep"
    games.allow(task)
    for name, kind in (("CartPole-v1", "ppo"), (task, "mappo")):
        config = override(make_config(name, kind, None), ["agent.actor.opponents=0.5"])
        with refused(UsageError, "agent.actor.opponents (0.5)"):
            config.check_task()
    games.allow(DUEL)
    override(make_config(DUEL, "mappo", None), ["agent.actor.opponents=1"]).check_task()
