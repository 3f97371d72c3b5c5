"""R2D2: double Q-learning of a network with memory, from sequences in replay.

Source: Kapturowski et al. 2019, "Recurrent Experience Replay in Distributed
Reinforcement Learning", sections 2.3 and 3: stored state and burn-in, value rescaling,
priorities of sequences, a new one's by the Q values that the actor acted by.

Differs from the paper: the loss is a mean over the steps of a sequence, not a sum;
sequences run on across the ends of episodes, where the memory is emptied and no reward
or value is carried over; importance weights are used, with the exponent of the store;
the optimizer is AdamW without decay of weights, whose rate cools down, and not Adam at
one rate.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tengen.actors import EnvironmentActorConfig
from tengen.agents.default_nets import net_for, shows_screens
from tengen.agents.q_agent import (
    LEAST_PRIORITY,
    QAgent,
    TargetUpdate,
    acting_errors,
    q_values,
)
from tengen.agents.unrolls import first_steps, network_inputs, time_major
from tengen.bounds import bounded
from tengen.config import check_range
from tengen.envs import Arrays, EnvSpec
from tengen.experience import ExperienceConfig, ItemLayout, ReplayConfig
from tengen.learners import AdamWConfig, LearnerConfig, LossParts
from tengen.nets import NetConfig
from tengen.tensors import TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

__all__ = ["R2d2", "R2d2Update"]


@dataclass(frozen=True, kw_only=True)
class R2d2(QAgent):
    """R2D2; see the module docstring."""

    kind: Literal["r2d2"] = "r2d2"
    """The agent's name, as in ``--agent``."""
    fixed: ClassVar[tuple[str, ...]] = (
        *QAgent.fixed,
        "unroll_length",
        "burn_in",
        "period",
    )
    sees_last_step: bool = True
    """Whether the network is shown the last action and the last reward."""
    unroll_length: int = bounded(40, 1, 100_000, "use 40")
    """Steps of a sequence that the learner learns from, 1 to 100,000 (the paper has
    80). The gradient reaches further back with more of them, at more work for
    each sequence."""
    burn_in: int = bounded(20, 0, 100_000, "use 20")
    """Steps before those, 0 to 100,000 (the paper has 40): the network runs over them
    from the stored state without learning, so that the recurrent state is nearly the
    one that its present weights would have reached."""
    period: int = 20
    """Steps between the first steps of two successive sequences, 1 to ``unroll_length``
    (the paper has 40). With half of ``unroll_length`` each step is in two sequences."""
    num_steps: int = 5
    """Number n of rewards that an n-step target adds up before it bootstraps, 1 to
    1,000."""
    discount: float = 0.997
    """Discount factor of one step, in [0, 1]."""
    target_period: int = 25
    """Optimizer steps between two copies of the weights to the target network, at least
    1 (the paper has 2,500). A small task is learned in one or two thousand steps."""
    eta: float = bounded(0.9, 0, 1)
    """Weight of the largest TD error in a sequence's priority, in [0, 1]; the mean TD
    error has the rest."""
    rescaling_epsilon: float = bounded(1e-3, 1e-9, 1)
    """Epsilon of the paper's value rescaling, above 0, at most 1."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=60)
    )
    """How environments are stepped."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        check_range("period", self.period, 1, self.unroll_length, "use half of it")

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """See ``EnvironmentAgent.layout``: burn-in, the sequence, and one step more."""
        return ItemLayout(
            num_steps=self.burn_in + self.unroll_length + 1,
            period=self.period,
            state=dict(state),
        )

    def for_environment(self, spec: EnvSpec) -> Self:
        """See ``EnvironmentAgent.for_environment``: for screens, short sequences.

        With them a run makes four times as many optimizer steps in the same environment
        steps as with the paper's lengths, and Pong was learned much sooner
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
        """See ``EnvironmentAgent.priorities``: of the steps behind the burn-in."""
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
        """See ``EnvironmentAgent.default_net``: one with memory.

        Its forget bias is as torch draws it: with 1 added, one seed of three did not
        learn CartPole-v1 in twice the frames.
        """
        num_units = 256 if shows_screens(spec) else 64
        return dataclasses.replace(
            net_for(spec), lstm_units=num_units, lstm_forget_bias=0.0
        )

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """See ``EnvironmentAgent.default_store``: prioritized replay of sequences."""
        # For screens each step is learned from four times: it is in two sequences, and
        # each sequence is drawn twice. The paper's 0.75 times suits actors that make
        # more steps than the learner can learn from.
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
        return LearnerConfig(
            # A step costs in proportion to its batch: small ones buy more steps.
            batch_size=16 if is_large else 32,
            num_shards=1,
            optimizer=AdamWConfig(
                learning_rate=2e-4 if is_large else 1e-3,
                # The paper's 1e-3 is for losses that are added up over 80 steps. With
                # means it left steps a hundredth of what their rate says.
                epsilon=1e-8,
                weight_decay=0.0,
                num_warmup_steps=0,
                max_grad_norm=40.0,
                average_decay=0.0,
            ),
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> R2d2Update:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return R2d2Update(self, net, store)


class R2d2Update(TargetUpdate):
    """The squared errors of a sequence's n-step targets on the rescaled scale.

    Columns, B sequences: as ``tengen.actors.block`` lists them, each ``[B, burn_in +
    unroll_length + 1, ...]``; the states before their first steps ``[B, ...]``;
    importance_weight ``[B]`` float32. The last step only bootstraps.
    """

    def __init__(self, agent: R2d2, net: Net, store: ReplayConfig) -> None:
        """Makes the update, with a target as the network is."""
        super().__init__(net, agent.target_period)
        self._agent = agent
        self.importance_exponent = store.importance_exponent_of_draws

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen import losses

        agent, steps = self._agent, time_major(columns)
        q_online = self._q_values(net, columns, steps)
        with torch.no_grad():
            q_target = self._q_values(self.target, columns, steps)
        learned = {name: column[agent.burn_in :] for name, column in steps.items()}
        targets = losses.n_step_targets(
            reward=learned["reward"][:-1],
            terminated=learned["terminated"][:-1],
            is_reset=learned["is_reset"],
            bootstrap=losses.double_q_values(q_online, q_target),
            num_steps=agent.num_steps,
            discount=agent.discount,
            rescaling_epsilon=agent.rescaling_epsilon,
        )
        is_live = learned["is_reset"][:-1] == 0
        errors = is_live * losses.td_errors(
            q_online[:-1], learned["action"][:-1], targets
        )
        weights = columns.get("importance_weight", 1.0)
        loss = (losses.td_loss(errors).mean(0) * weights).mean()
        metrics = {"td_error": errors.abs().mean(), "q": q_online.max(-1).values.mean()}
        priorities = losses.sequence_priorities(errors, is_live > 0, agent.eta)
        return LossParts(loss, metrics, priorities + LEAST_PRIORITY)

    def _q_values(
        self, net: Net, columns: dict[str, Tensor], steps: dict[str, Tensor]
    ) -> Tensor:
        """Returns ``[unroll_length + 1, B, A]`` after a burn-in without gradient."""
        import torch

        from tengen.nets.modules.standard import uncounted

        burn_in = self._agent.burn_in
        inputs, state = network_inputs(net, columns)
        is_first = first_steps(steps["is_reset"])
        if burn_in > 0:
            with torch.no_grad(), uncounted(net):
                before = {name: column[:burn_in] for name, column in inputs.items()}
                _, state = net.unroll(before, state, is_first[:burn_in])
        learned = {name: column[burn_in:] for name, column in inputs.items()}
        outputs, _ = net.unroll(learned, state, is_first[burn_in:])
        return q_values(outputs)
