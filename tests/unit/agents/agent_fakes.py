"""Networks with known outputs, handmade items, and an environment that counts steps.

Legend: T time, B items, A actions, S states.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from tengen.actors import EnvironmentPort, Slots
from tengen.envs import ActionSpec, EnvSpec, Step
from tengen.experience import ReplayConfig, StepTable
from tengen.inference import drive
from tengen.nets import Net, NetConfig
from tengen.roles.actor.links import open_writer
from tengen.store import Column
from tengen.tensors import Signature, TensorSpec

Tensors = dict[str, Tensor]

ONE_CHOICE = ActionSpec(num_choices=(3,))
"""A single action with three choices."""


class TableNet(Net):
    """A network whose outputs are rows of tables: row i for the observation i.

    Each row is a parameter, so its gradient shows which observations were learned from.
    """

    def __init__(self, **tables):
        tensors = {
            n: torch.as_tensor(t, dtype=torch.float32) for n, t in tables.items()
        }
        outputs = {n: TensorSpec(shape=tuple(t.shape[1:])) for n, t in tensors.items()}
        inputs = {"observation": TensorSpec(dtype="int64")}
        super().__init__(Signature(inputs=inputs, outputs=outputs), NetConfig())
        self.tables = nn.ParameterDict(tensors)

    def answer(self, inputs, state):
        place = inputs["observation"]
        return {name: table[place] for name, table in self.tables.items()}, {}


class LeakyNet(Net):
    """A recurrent network: state = leak * state + seen[i], q = state + table[i].

    With leak 1 and seen 1 the state counts the observations of an episode.

    Attributes:
        unrolls: For each call of ``unroll``: the initial state, whether gradients were
            enabled, and the first observations.
    """

    def __init__(self, leak, seen, q):
        seen_rows = torch.as_tensor(seen, dtype=torch.float32)
        table = torch.as_tensor(q, dtype=torch.float32)
        wanted = Signature(
            inputs={"observation": TensorSpec(dtype="int64")},
            outputs={"q": TensorSpec(shape=tuple(table.shape[1:]))},
            state={"memory": TensorSpec()},
        )
        super().__init__(wanted, NetConfig())
        self.leak = nn.Parameter(torch.tensor(leak))
        self.seen = nn.Parameter(seen_rows)
        self.table = nn.Parameter(table)
        self.unrolls: list[tuple[Tensor, bool, Tensor]] = []

    def answer(self, inputs, state):
        place = inputs["observation"]
        memory = self.leak * state["memory"] + self.seen[place]
        return {"q": memory[..., None] + self.table[place]}, {"memory": memory}

    def unroll(self, inputs, state, is_first):
        observations = inputs["observation"]
        given = torch.where(is_first[0], 0.0, state["memory"]).detach()
        self.unrolls.append((given, torch.is_grad_enabled(), observations[0]))
        answers = []
        for place, begins in zip(observations, is_first, strict=True):
            kept = {"memory": torch.where(begins, 0.0, state["memory"])}
            outputs, state = self.answer({"observation": place}, kept)
            answers.append(outputs["q"])
        return {"q": torch.stack(answers)}, state


def items_of(rows, *, num_actions=3, seed=0):
    """Returns items ``[B, T + 1]`` of random rows; no two have the same observation.

    Reset rows also have rewards and actions, which must not affect results.

    Returns:
        The columns of a batch, and the observations ``[T + 1, B]``, which are the
        numbers of the rows' states.
    """
    rng = np.random.default_rng(seed)
    shape = rows.is_reset.shape
    places = np.arange(np.prod(shape)).reshape(shape)
    reward = np.zeros(shape, np.float32)
    reward[:-1] = np.where(rows.is_reset[:-1], 77.0, rows.reward)
    terminated = np.zeros(shape, np.uint8)
    terminated[:-1] = rows.terminated
    columns = {
        "observation": places,
        "action": rng.integers(num_actions, size=shape),
        "reward": reward,
        "terminated": terminated,
        "is_reset": rows.is_reset.astype(np.uint8),
        "behaviour_log_prob": np.log(rng.uniform(0.2, 0.9, shape)).astype(np.float32),
    }
    return {
        name: torch.from_numpy(np.ascontiguousarray(column.T))
        for name, column in columns.items()
    }, places


def item(**columns):
    """Returns one item ``[1, T]`` with the given columns; other columns are zero."""
    length = len(next(iter(columns.values())))
    dtypes = {"observation": torch.int64, "action": torch.int64}
    flags = ("terminated", "truncated", "is_reset")
    dtypes |= dict.fromkeys(flags, torch.uint8)
    names = ("observation", "action", "reward", *flags, "behaviour_log_prob")
    return {
        name: torch.tensor(
            [list(columns.get(name, [0] * length))],
            dtype=dtypes.get(name, torch.float32),
        )
        for name in names
    }


class NetRunner:
    """A runner that evaluates a network in this process."""

    def __init__(self, net, port):
        self._net, self._port = net, port

    @torch.no_grad()
    def run(self, num_rows):
        port = self._port
        inputs = {name: torch.from_numpy(a) for name, a in port.inputs.items()}
        state = {name: torch.from_numpy(a) for name, a in port.state.items()}
        outputs, state = self._net.answer(inputs, state)
        for name, tensor in outputs.items():
            port.outputs[name][:] = tensor.numpy()
        for name, tensor in state.items():
            port.state[name][:] = tensor.numpy()


class CountingEnv:
    """N copies that observe the number of steps so far in their episode.

    Episode e of copy i lasts ``lengths[(e + i) % len(lengths)]`` steps; it terminates
    if e + i is even and is truncated if e + i is odd. Each step's reward is 1.
    """

    def __init__(self, num_envs, lengths):
        self.num_envs = num_envs
        self.spec = EnvSpec(
            name="counting",
            observations={"observation": TensorSpec(dtype="int64")},
            actions=ONE_CHOICE,
            max_episode_steps=None,
            reward_threshold=None,
        )
        self._lengths = np.array(lengths)
        self.reset()

    def reset(self):
        self._count = np.zeros(self.num_envs, np.int64)
        self._episode = np.arange(self.num_envs)
        self._is_over = np.zeros(self.num_envs, np.bool_)
        return {"observation": self._count.copy()}

    def step(self, actions):
        is_reset = self._is_over
        self._count = np.where(is_reset, 0, self._count + 1)
        self._episode = self._episode + is_reset
        lengths = self._lengths[self._episode % len(self._lengths)]
        self._is_over = (self._count == lengths) & ~is_reset
        is_even = self._episode % 2 == 0
        return Step(
            {"observation": self._count.copy()},
            np.where(is_reset, 0, 1).astype(np.float32),
            self._is_over & is_even,
            self._is_over & ~is_even,
            is_reset,
        )

    def close(self):
        pass


def table_of(agent, layout, folder, num_envs, store=None, batch_size=3_000, **options):
    """Returns an agent's table for the steps of counting environments; a queue."""
    columns = agent.columns(CountingEnv(1, [1]).spec)
    return StepTable(
        folder / "steps",
        {name: Column(dtype=t.dtype, shape=t.shape) for name, t in columns.items()},
        layout,
        store or ReplayConfig(sampler="fifo", max_items=10_000),
        seed=1,
        num_slots=num_envs,
        batch_size=batch_size,
        **options,
    )


def net_of(agent, spec, config):
    """Returns a network of an agent for an environment."""
    inputs, outputs = agent.inputs_of(spec), agent.outputs_of(spec.actions)
    return config.build(Signature(inputs=inputs, outputs=outputs))


def acted_in_team(agent, env, net, folder, num_turns):
    """Acts in an environment of several agents.

    Returns:
        The port, the description of the table, and the tensors of all items.
    """
    num_slots = agent.num_slots(env.spec)
    num_copies = env.num_envs // env.spec.num_agents
    layout = agent.layout_of(net.signature)
    columns = agent.columns(env.spec)
    table = StepTable(
        folder / "steps",
        {name: Column(dtype=t.dtype, shape=t.shape) for name, t in columns.items()},
        layout,
        ReplayConfig(sampler="fifo", max_items=10_000),
        seed=1,
        num_slots=num_copies * num_slots,
        batch_size=3_000,
    )
    writer = open_writer(table, "actor-0", agent, env.spec, num_copies)
    port = EnvironmentPort(
        env,
        agent,
        net.signature,
        agent.make_block(env.spec, layout, num_copies),
        writer,
        seed=1,
        turn_blocks=1,
    )
    for version in range(num_turns):
        port.begin(version)
        drive(port, NetRunner(net, port))
    told = table.describe()
    batch = table.sample(port.stats.num_items)
    items = {n: torch.from_numpy(np.array(c)) for n, c in batch.columns.items()}
    batch.ack()
    table.close()
    return port, told, items


def port_of(agent, net, env, steps):
    """Returns a port that writes an agent's steps in vectorized copies to a table."""
    first = agent.first_priorities(env.spec.actions)
    return EnvironmentPort(
        env,
        agent,
        net.signature,
        agent.make_block(env.spec, steps.layout, env.num_envs),
        steps.writer("actor-0", env.num_envs, first).append,
        seed=1,
        turn_blocks=agent.turn_blocks(steps.layout),
        behaviour=agent.behaviour(Slots(0, env.num_envs, env.num_envs), 1),
    )
