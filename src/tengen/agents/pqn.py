"""PQN: Q-learning from unrolls of the newest policy, without replay or target network.

Source: Gallici et al. 2024, "Simplifying Deep Temporal Difference Learning"
(arXiv:2407.04811), section 4.

Layer normalization keeps the network stable, which in DQN is the task of replay and the
target network. The targets of a batch are computed once, with the network that begins
to learn from the batch, and several epochs of minibatches follow.

Differs from the paper: every copy of the environment explores with its own constant
probability (``EpsilonAgent``), whereas the paper's probability falls during training;
the optimizer is AdamW without weight decay and not RAdam; a truncated episode
bootstraps; the Huber loss replaces half the squared error; rewards are divided by a
running scale (``ReturnScale``), whereas the paper's scale is a constant of the task.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.defaults import (
    net_for,
    plain_learner,
    shows_boards,
    shows_screens,
)
from tengen.agents.bases.policy_update import ReturnScale
from tengen.agents.bases.q_agent import EpsilonAgent, q_values
from tengen.agents.bases.unrolls import (
    answer_legally,
    network_inputs,
    transitions,
    unroll_of_all,
)
from tengen.agents.ppo import check_minibatches, shuffled_parts
from tengen.bounds import bounded
from tengen.config import check
from tengen.envs import EnvSpec
from tengen.errors import UsageError
from tengen.experience import STATE, ExperienceConfig, ItemLayout, ReplayConfig
from tengen.learners import LearnerConfig, LossParts, Update
from tengen.nets import MlpConfig, NetConfig
from tengen.tensors import FRAMES, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

# Actors in other processes usually have a hundredth of this lag.
_MAX_LAG = 1_000


@dataclass(frozen=True, kw_only=True)
class Pqn(EpsilonAgent):
    """PQN; see the module docstring."""

    kind: Literal["pqn"] = "pqn"
    """The agent's name, as in ``--agent``."""
    is_duelling: bool = False
    """Whether the network has duelling heads; the paper has none."""
    epsilon: float = 0.2
    """Probability of a random action in the copy that explores most, in [0, 1]."""
    epsilon_power: float = 2.0
    """Spread of exploration over the copies; see ``EpsilonAgent.epsilon_power``."""
    unroll_length: int = bounded(32, 1, 100_000, "use 32")
    """Number T of transitions in an unroll, 1 to 100,000."""
    trace_lambda: float = bounded(0.95, 0, 1)
    """Lambda of the returns, in [0, 1]; 0 gives one-step targets, and 1 uses all
    rewards to the end of the unroll."""
    num_epochs: int = bounded(4, 1, 1_000)
    """Number of passes over a batch, 1 to 1,000."""
    num_minibatches: int = bounded(4, 1, 10_000)
    """Number of minibatches per epoch, with one optimizer step on each, 1 to 10,000."""
    max_lag: int | None = bounded(None, 0, None, "use 1000")
    """Maximum policy lag of an unroll in optimizer steps, at least 0. The learner skips
    unrolls of older policies. None: 1,000."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=32)
    )
    """Settings of the actors; by default an actor produces one batch per turn."""

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with the paper's lambda and epochs for images."""
        if shows_screens(spec) or shows_boards(spec):
            return dataclasses.replace(self, trace_lambda=0.65, num_epochs=2)
        return self

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns unrolls with a closing step; see ``EnvironmentAgent.layout``."""
        memory = [name for name in state if not name.startswith(FRAMES)]
        if memory:
            raise UsageError(
                f"net ({', '.join(memory)}) must have no memory with agent pqn; set "
                f"net.lstm_units=0, or use --agent r2d2"
            )
        length = self.unroll_length
        return ItemLayout(
            num_steps=length + 1, period=length, is_closed=True, state=dict(state)
        )

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns a network with layer normalization, as in the paper."""
        net = MlpConfig(num_units=128, activation="relu", layer_norm=True)
        return net_for(spec, net, layer_norm=True)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a queue for two batches; see ``EnvironmentAgent.default_store``."""
        return ReplayConfig(sampler="fifo", max_items=32)

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``: a batch has one turn's unrolls."""
        small_rate = 5e-4 if shows_boards(spec) else 1e-3
        return plain_learner(
            batch_size=16,
            learning_rate=2.5e-4 if shows_screens(spec) else small_rate,
            max_grad_norm=10.0,
        )

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """See ``Agent.check``."""
        super().check(net, store, learner)
        check_minibatches(self.num_minibatches, learner.batch_size * self.unroll_length)

    def check_task(
        self,
        task: str,
        net: NetConfig,
        store: ExperienceConfig,
        learner: LearnerConfig,
    ) -> None:
        """See ``Agent.check_task``; checks that the network is normalized too."""
        super().check_task(task, net, store, learner)
        check(
            net.layer_norm,
            "net.layer_norm",
            False,
            "must be true with agent pqn, which has no target network; use --set "
            "net.layer_norm=true with net.kind mlp or nature",
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> PqnUpdate:
        """See ``Agent.make_update``."""
        return PqnUpdate(self)


class PqnUpdate(Update):
    """PQN's update, with epochs of minibatches and the Huber loss.

    A batch has B unrolls of T transitions, with the columns of ``tengen.actors.block``
    in shape ``[B, T + 1, ...]``. The last step is only for bootstrapping.
    """

    is_recordable = True
    later_state = ("return_scale",)

    def __init__(self, agent: Pqn) -> None:
        """Creates an update with the agent's settings."""
        self._agent = agent
        self._scale = ReturnScale(agent.discount)
        self.max_lag = _MAX_LAG if agent.max_lag is None else agent.max_lag

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        return self._scale.state()

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        self._scale.load_state(tensors)

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Computes the targets, then yields transitions; see ``Update.minibatches``."""
        agent, group = self._agent, self.group
        columns = self._scale.divided(columns, group)
        rows = transitions(net, self._with_targets(net, columns), group)
        rows = {name: group.gather_rows(column) for name, column in rows.items()}
        for part in shuffled_parts(
            rows["action"], agent.num_epochs, agent.num_minibatches
        ):
            own = part[group.own(len(part))]
            yield {name: column[own] for name, column in rows.items()}

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``.

        Args:
            net: The network in training mode.
            columns: Columns of transitions, ``[rows, 1, ...]``.
        """
        from tengen import losses
        from tengen.nets.modules.standard import uncounted

        inputs, state = network_inputs(net, columns)
        first = {name: column[0] for name, column in inputs.items()}
        with uncounted(net):  # ``minibatches`` has added these rows to the statistics
            outputs, _ = answer_legally(net, first, state)
        q = q_values(outputs, first)
        is_live = 1.0 - columns["is_reset"][:, 0].float()
        errors = losses.td_errors(q, columns["action"][:, 0], columns["target"][:, 0])
        metrics = {
            "td_error": (errors.abs() * is_live).mean(),
            "q": q.max(-1).values.mean(),
        }
        return LossParts((losses.td_loss(errors, 1.0) * is_live).mean(), metrics)

    def _with_targets(self, net: Net, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the columns of a batch's transitions, with ``target`` added."""
        import torch

        from tengen import losses

        with torch.no_grad():
            unrolled = unroll_of_all(net, columns, self.group)
            inputs, _ = network_inputs(net, columns)
            best = q_values(unrolled.outputs, inputs).max(-1).values
            steps = unrolled.columns
            targets = losses.gae_targets(
                v=best,
                reward=steps["reward"],
                terminated=steps["terminated"],
                is_reset=steps["is_reset"],
                discount=self._agent.discount,
                trace_lambda=self._agent.trace_lambda,
            )
        states = {name: c for name, c in columns.items() if name.startswith(STATE)}
        rows = {**steps, "target": targets.returns}
        return {
            **{name: column.transpose(0, 1) for name, column in rows.items()},
            **states,
        }
