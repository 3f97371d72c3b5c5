"""R2D2: double Q-learning with a recurrent network on replayed sequences.

Source: Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed
Reinforcement Learning", sections 2.3 and 3, for stored state and burn-in, value
rescaling, and priorities of sequences. New items' priorities use the actor's Q values.

Differs from the paper: the loss is a mean over the steps of a sequence, not a sum;
sequences continue across episode boundaries, where the recurrent state is reset and no
reward or value propagates; the loss has importance weights, with the store's exponent;
the optimizer is AdamW without weight decay and with a cool-down, not Adam with a
constant learning rate.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.defaults import net_for, plain_learner, shows_screens
from tengen.agents.bases.q_agent import (
    LEAST_PRIORITY,
    QAgent,
    SequenceAgent,
    TargetUpdate,
    acting_errors,
    q_values,
)
from tengen.agents.bases.unrolls import learned_outputs, time_major
from tengen.bounds import bounded
from tengen.envs import Arrays, EnvSpec
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LearnerConfig, LossParts
from tengen.nets import NetConfig

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class R2d2(SequenceAgent, QAgent):
    """Settings of R2D2; the module docstring gives the source and the differences."""

    kind: Literal["r2d2"] = "r2d2"
    """The agent's name, as in ``--agent``."""
    sees_last_step: bool = True
    """Whether the last action and the last reward are inputs of the network."""
    unroll_length: int = bounded(40, 1, 100_000, "use 40")
    """Number of steps with a loss in a sequence, 1 to 100,000 (80 in the paper). With
    more steps the gradient reaches further back, but each sequence takes longer."""
    burn_in: int = bounded(20, 0, 100_000, "use 20")
    """Number of burn-in steps at the start of a sequence, 0 to 100,000 (40 in the
    paper). The network processes them from the stored state without a loss, so that the
    recurrent state is close to that of the current weights."""
    period: int = 20
    """Number of steps between the starts of successive sequences, 1 to
    ``unroll_length`` (40 in the paper). With half of ``unroll_length``, each step is in
    two sequences."""
    num_steps: int = 5
    """Number n of rewards in an n-step target before it bootstraps, 1 to 1,000."""
    discount: float = 0.997
    """Discount factor per step, in [0, 1]."""
    target_period: int = 25
    """Number of optimizer steps between updates of the target network, at least 1
    (2,500 in the paper). The default is small because small tasks are learned in one or
    two thousand steps."""
    eta: float = bounded(0.9, 0, 1)
    """Weight of the maximum TD error in a sequence's priority, in [0, 1]; the mean TD
    error has the weight 1 - eta."""
    rescaling_epsilon: float = bounded(1e-3, 1e-9, 1)
    """Epsilon of the paper's value rescaling, above 0, at most 1."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=60)
    )
    """Settings of the actors."""

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with shorter sequences if the observations are screens.

        A run then performs four times as many optimizer steps per environment step as
        with the paper's lengths, and learned Pong much sooner
        (benchmarks/results/environments.md).
        """
        if not shows_screens(spec):
            return self
        return dataclasses.replace(
            self,
            discount=0.99,
            burn_in=10,
            unroll_length=20,
            period=10,
            target_period=40,
            actor=dataclasses.replace(self.actor, turn_steps=40),
        )

    def priorities(self, steps: Arrays) -> NDArray[np.float64]:
        """See ``EnvironmentAgent.priorities``; excludes the burn-in steps."""
        learned = {name: column[:, self.burn_in :] for name, column in steps.items()}
        errors = acting_errors(
            learned,
            num_steps=self.num_steps,
            discount=self.discount,
            rescaling_epsilon=self.rescaling_epsilon,
        )
        sizes = np.abs(errors)
        num_live = (learned["is_reset"][:, :-1] == 0).sum(axis=1)
        means = sizes.sum(axis=1) / np.maximum(num_live, 1)
        mixed: NDArray[np.float64] = (
            self.eta * sizes.max(axis=1) + (1.0 - self.eta) * means + LEAST_PRIORITY
        )
        return mixed

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns a network with an LSTM; see ``EnvironmentAgent.default_net``.

        The LSTM has torch's forget bias: with 1 added to the bias, one of three seeds
        scored 127 on CartPole-v1 after 60,000 frames, and the others 370 and 495.
        """
        num_units = 256 if shows_screens(spec) else 64
        return dataclasses.replace(
            net_for(spec), lstm_units=num_units, lstm_forget_bias=0.0
        )

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a prioritized replay; see ``EnvironmentAgent.default_store``."""
        # For screens the learner uses each step four times, because a step is in two
        # sequences and each sequence is sampled twice. The paper's 0.75 times suits
        # actors that produce more steps than the learner can process.
        is_large = shows_screens(spec)
        return ReplayConfig(
            sampler="prioritized",
            max_items=40_000 if is_large else 5_000,
            min_items=1_000 if is_large else 100,
            samples_per_item=2.0 if is_large else 16.0,
            priority_exponent=0.9,
            importance_exponent=0.6,
        )

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``."""
        is_large = shows_screens(spec)
        return plain_learner(
            # An optimizer step takes time proportional to the batch size, so small
            # batches allow more steps per minute.
            batch_size=16 if is_large else 32,
            learning_rate=2e-4 if is_large else 1e-3,
            max_grad_norm=40.0,
            # The paper's 1e-3 suits losses summed over 80 steps. For averaged losses,
            # 1e-3 reduced updates to a hundredth of the learning rate.
            epsilon=1e-8,
            cooldown=0.2,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> R2d2Update:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return R2d2Update(self, net, store)


class R2d2Update(TargetUpdate[R2d2]):
    """R2D2's update, with squared TD errors of rescaled n-step targets.

    A batch has B sequences, with the columns of ``tengen.actors.block`` in shape ``[B,
    burn_in + unroll_length + 1, ...]``, the states before their first steps, ``[B,
    ...]``, and importance_weight, ``[B]`` float32. The last step is only for
    bootstrapping.
    """

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        return self.q_loss(net, columns)

    def q_loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Returns the loss of the Q values; see ``Update.loss``."""
        import torch

        from tengen import losses

        agent, steps = self._agent, time_major(columns)
        q_online = q_values(*learned_outputs(net, columns, agent.burn_in))
        with torch.no_grad():
            q_target = q_values(*learned_outputs(self.target, columns, agent.burn_in))
        learned = {name: column[agent.burn_in :] for name, column in steps.items()}
        reward, discount = self.goals(learned)
        targets = losses.n_step_targets(
            reward=reward,
            terminated=learned["terminated"][:-1],
            is_reset=learned["is_reset"],
            bootstrap=losses.double_q_values(q_online, q_target),
            num_steps=agent.num_steps,
            discount=discount,
            rescaling_epsilon=agent.rescaling_epsilon,
        )
        is_live = learned["is_reset"][:-1] == 0
        taken = learned["action"][:-1]
        errors = is_live * losses.td_errors(q_online[:-1], taken, targets)
        weights = columns.get("importance_weight", 1.0)
        loss = (losses.td_loss(errors).mean(0) * weights).mean()
        metrics = {"td_error": errors.abs().mean(), "q": q_online.max(-1).values.mean()}
        priorities = losses.sequence_priorities(errors, is_live, agent.eta)
        return LossParts(loss, metrics, priorities + LEAST_PRIORITY)

    def goals(self, learned: dict[str, Tensor]) -> tuple[Tensor, float | Tensor]:
        """Returns the rewards ``[T, B]`` to learn, and their discount per step.

        Args:
            learned: Columns ``[T + 1, B, ...]`` of the steps after the burn-in.
        """
        return learned["reward"][:-1], self._agent.discount
