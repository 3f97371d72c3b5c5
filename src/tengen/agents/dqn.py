"""DQN: double Q-learning with n-step targets and prioritized replay, as in Ape-X.

Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning";
van Hasselt et al. 2016, "Deep Reinforcement Learning with Double Q-learning"
(arXiv:1509.06461); Schaul et al. 2016, "Prioritized Experience Replay"
(arXiv:1511.05952); Horgan et al. 2018, "Distributed Prioritized Experience Replay"
(arXiv:1803.00933).

As in Ape-X, every copy of the environment explores with its own probability, and the
priority of a new item is computed from the actor's Q values.

Differs from the papers: a new item's priority uses the Q values with which the actor
chose its actions, so the maximum of these values replaces the target network's value of
the online network's best action; rewards are not clipped; targets bootstrap at a
truncation; the exponent of the importance weights is constant, not annealed to 1; the
optimizer is AdamW without weight decay and with a falling learning rate, not RMSProp.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.defaults import plain_learner, shows_boards, shows_screens
from tengen.agents.bases.q_agent import (
    LEAST_PRIORITY,
    QAgent,
    TargetUpdate,
    acting_errors,
    q_values,
)
from tengen.agents.bases.unrolls import (
    answer_legally,
    first_steps,
    network_inputs,
    time_major,
)
from tengen.envs import Arrays, EnvSpec
from tengen.errors import UsageError
from tengen.experience import ExperienceConfig, ItemLayout, ReplayConfig
from tengen.learners import LearnerConfig, LossParts
from tengen.tensors import FRAMES, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class Dqn(QAgent):
    """Settings of DQN; the module docstring gives the sources and the differences."""

    kind: Literal["dqn"] = "dqn"
    """The agent's name, as in ``--agent``."""
    fixed: ClassVar[tuple[str, ...]] = (*QAgent.fixed, "num_steps")
    also_called: ClassVar[tuple[str, ...]] = ("apex", "ape-x", "ddqn")
    target_period: int = 50
    """Number of optimizer steps between updates of the target network, at least 1
    (Ape-X: 2,500). The default is small because small tasks are learned in a few
    thousand steps."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=64)
    )
    """Settings of the actors."""

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with a longer ``target_period`` for images.

        For boards it also uses one-step targets, because on MinAtar's Asterix the agent
        hardly learned with three-step targets, prioritized replay, or a learning rate
        above 1e-4 (benchmarks/results/environments.md).
        """
        if shows_boards(spec):
            return dataclasses.replace(self, target_period=1_000, num_steps=1)
        if shows_screens(spec):
            return dataclasses.replace(self, target_period=2_000)
        return self

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns items of n + 1 steps, one n-step transition each."""
        memory = [name for name in state if not name.startswith(FRAMES)]
        if memory:
            raise UsageError(
                f"net ({', '.join(memory)}) must not be recurrent with agent dqn; set "
                "net.lstm_units=0, or use --agent r2d2"
            )
        return ItemLayout(num_steps=self.num_steps + 1, period=1, state=dict(state))

    def priorities(self, steps: Arrays) -> NDArray[np.float64]:
        """Returns absolute TD errors; see ``EnvironmentAgent.priorities``."""
        errors = acting_errors(steps, num_steps=self.num_steps, discount=self.discount)
        return np.abs(errors[:, 0]) + LEAST_PRIORITY

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a prioritized replay, or a uniform replay for boards.

        ``for_environment`` explains why boards differ.
        """
        is_large = shows_screens(spec)
        if shows_boards(spec):
            return ReplayConfig(
                sampler="uniform",
                max_items=100_000,
                min_items=1_000,
                samples_per_item=16.0,
            )
        return ReplayConfig(
            sampler="prioritized",
            max_items=1_000_000 if is_large else 100_000,
            min_items=20_000 if is_large else 1_000,
            samples_per_item=8.0,
        )

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``."""
        # For screens, use Dopamine's batch size, learning rate and Adam epsilon (Castro
        # et al. 2018, arXiv:1812.06110).
        is_large = shows_screens(spec)
        small_rate = 1e-4 if shows_boards(spec) else 2e-3
        return plain_learner(
            batch_size=32 if is_large else 64,
            learning_rate=6.25e-5 if is_large else small_rate,
            max_grad_norm=10.0,
            epsilon=1.5e-4 if is_large else 1e-8,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> DqnUpdate:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return DqnUpdate(self, net, store)


class TransitionEnds(NamedTuple):
    """First and last steps of B n-step transitions, shorter where an episode ends."""

    first: tuple[dict[str, Tensor], dict[str, Tensor]]
    """Inputs and state ``[B, ...]`` of the step in which the action was taken."""
    last: tuple[dict[str, Tensor], dict[str, Tensor]]
    """Inputs and state ``[B, ...]`` of the step from which the target bootstraps."""
    action: Tensor
    """Action ``[B]`` int64 taken in the step ``first``."""
    reward: Tensor
    """Discounted sum ``[B]`` of the rewards from ``first`` to ``last``."""
    discount: Tensor
    """Factor ``[B]`` of the bootstrap value; 0 if the episode terminated."""


class DqnUpdate(TargetUpdate[Dqn]):
    """DQN's update, with the Huber loss (delta 1) of n-step TD errors.

    A batch has B items of n + 1 steps, with the columns of ``tengen.actors.block`` in
    shape ``[B, n + 1, ...]``, and importance_weight, ``[B]`` float32.
    """

    is_recordable = True

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen import losses
        from tengen.nets.modules.standard import uncounted

        rows = self.ends(net, columns)
        q_first = _values(net, *rows.first)
        with torch.no_grad(), uncounted(net):
            value = losses.double_q_values(
                _values(net, *rows.last), _values(self.target, *rows.last)
            )
            targets = rows.reward + losses.product_or_zero(rows.discount, value)
        errors = losses.td_errors(q_first, rows.action, targets)
        weights = columns.get("importance_weight", 1.0)
        weighted = losses.td_loss(errors, 1.0) * weights
        metrics = {"td_error": errors.abs().mean(), "q": q_first.max(-1).values.mean()}
        return LossParts(weighted.mean(), metrics, errors.abs() + LEAST_PRIORITY)

    def ends(self, net: Net, columns: dict[str, Tensor]) -> TransitionEnds:
        """Returns the first and last steps of the n-step transitions in a batch.

        Args:
            net: The network, which computes states of past images from ``columns``.
            columns: Columns of the batch, tensors ``[B, n + 1, ...]``.
        """
        import torch

        from tengen import losses

        steps = time_major(columns)
        inputs, state = network_inputs(net, columns)
        # The target bootstraps from the last step of the episode or of the item.
        is_end = steps["is_reset"] != 0
        is_end[0] = False
        is_end[-1] = True
        end = is_end.int().argmax(0)
        rows = torch.arange(len(end), device=end.device)
        states = net.states_of_inputs(inputs, state, first_steps(steps["is_reset"]))
        at_end = torch.zeros_like(steps["reward"])
        at_end[end, rows] = 1.0

        def targets(reward: Tensor, bootstrap: Tensor) -> Tensor:
            return losses.n_step_targets(
                reward=reward[:-1],
                terminated=steps["terminated"][:-1],
                is_reset=steps["is_reset"],
                bootstrap=bootstrap,
                num_steps=self._agent.num_steps,
                discount=self._agent.discount,
            )[0]

        nothing = torch.zeros_like(at_end)
        return TransitionEnds(
            first=({name: column[0] for name, column in inputs.items()}, state),
            last=(
                {name: column[end, rows] for name, column in inputs.items()},
                {name: column[end, rows] for name, column in states.items()},
            ),
            action=steps["action"][0],
            reward=targets(steps["reward"], nothing),
            # Targets are linear in the bootstrap value, so the factor of this value is
            # the target for rewards of 0 and a bootstrap value of 1.
            discount=targets(nothing, at_end),
        )


def _values(net: Net, inputs: dict[str, Tensor], state: dict[str, Tensor]) -> Tensor:
    """Returns Q values ``[B, A]``."""
    return q_values(answer_legally(net, inputs, state)[0], inputs)
