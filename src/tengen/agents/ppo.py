"""PPO: several epochs of clipped optimizer steps on each batch of unrolls.

Source: Schulman et al. 2017, "Proximal Policy Optimization Algorithms"
(arXiv:1707.06347), section 5; for advantages Schulman et al. 2016, "High-Dimensional
Continuous Control Using Generalized Advantage Estimation" (arXiv:1506.02438).

In one process (``--launch inline``) the acting policy is the newest one. With actors in
other processes (``--actors N``) the acting policy is some optimizer steps older, which
is called APPO. Then ``uses_vtrace`` corrects for the policy lag with V-trace (Espeholt
et al. 2018, "IMPALA", arXiv:1802.01561), and ``max_lag`` bounds the lag.

Differs from the paper: advantages are normalised over each minibatch, as is usual in
later work; rewards are divided by the scale of returns
(``tengen.agents.bases.policy_update``); reset steps are excluded; the clipped ratio is
relative to the acting policy, whose log-probabilities are stored, not to the policy
before the batch. With a ratio to the policy before the batch and V-trace's weights,
learning from policies ten batches old succeeded less often.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from tengen import envs
from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.defaults import plain_learner, shows_screens
from tengen.agents.bases.policy_agent import PolicyAgent
from tengen.agents.bases.policy_update import PolicyUpdate
from tengen.agents.bases.unrolls import (
    Unrolled,
    first_steps,
    network_inputs,
    time_major,
    transitions,
    unroll_legally,
    unroll_of_all,
)
from tengen.bounds import bounded
from tengen.config import check
from tengen.envs import EnvSpec
from tengen.experience import STATE, ExperienceConfig
from tengen.learners import LearnerConfig, LossParts
from tengen.nets import NetConfig
from tengen.tensors import FRAMES

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

# Default maximum lag in batches, five times the usual lag of actors in other processes.
_LAG_BATCHES = 25


@dataclass(frozen=True, kw_only=True)
class Ppo(PolicyAgent):
    """Settings of PPO; the module docstring gives the sources and the differences."""

    kind: Literal["ppo"] = "ppo"
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ("appo",)
    unroll_length: int = 32
    """Number T of transitions in an unroll, 1 to 100,000."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=32)
    )
    """Settings of the actors; by default an actor produces one batch per turn."""
    trace_lambda: float = bounded(0.9, 0, 1)
    """Lambda of GAE, in [0, 1]; 0 gives one-step advantages, and 1 uses all rewards to
    the end of the unroll. A larger value has less bias and more variance."""
    clip_ratio: float = bounded(0.2, 0, above=True, rule="must be positive; use 0.2")
    """Clip range of the ratio of new to old action probability, above 0: the distance
    from 1 beyond which the gradient is 0. A smaller value allows smaller changes of the
    policy."""
    clip_value: float | None = bounded(
        None, 0, above=True, rule="must be positive; use 0.2"
    )
    """Clip range of values, above 0: the distance from the value before the learner's
    steps on the batch, beyond which the gradient is 0. None for no clipping."""
    num_epochs: int = bounded(10, 1, 1_000)
    """Number of passes over a batch, 1 to 1,000."""
    num_minibatches: int = bounded(4, 1, 10_000)
    """Number of minibatches of equal size per epoch, with one optimizer step on each; 1
    to 10,000. If the network has an LSTM, minibatches consist of complete unrolls, so
    their number is at most ``learner.batch_size``."""
    uses_vtrace: bool = True
    """Whether V-trace corrects advantages and returns for policy lag. If not, they
    estimate the value of the acting policy, not of the newest policy."""
    max_lag: int | None = bounded(None, 0, None, "use 1000")
    """Maximum policy lag of an unroll in optimizer steps, at least 0. The learner skips
    unrolls of older policies. None: the number of optimizer steps on 25 batches."""

    @property
    def lag_bound(self) -> int:
        """See ``PolicyAgent.lag_bound``."""
        if self.max_lag is not None:
            return self.max_lag
        return _LAG_BATCHES * self.num_epochs * self.num_minibatches

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns a copy of the agent with the paper's settings if it acts on screens.

        Differs from the paper: 16 copies and unrolls of 64 steps, not 8 and 128.
        """
        agent = super().for_environment(spec)
        if not shows_screens(spec):
            return agent
        return dataclasses.replace(agent, num_epochs=4, clip_ratio=0.1)

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """Returns settings for batches with one turn's unrolls."""
        return plain_learner(
            batch_size=16,
            learning_rate=2.5e-4 if shows_screens(spec) else 1e-3,
            max_grad_norm=0.5,
            epsilon=1e-5,
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
        """See ``Agent.check_task``; with an LSTM, checks ``num_minibatches`` too."""
        super().check_task(task, net, store, learner)
        batch_size = learner.batch_size
        state = net.signature(self.signature(task)).state
        check(
            self.num_minibatches <= batch_size
            or all(name.startswith(FRAMES) for name in state),
            "agent.num_minibatches",
            self.num_minibatches,
            f"must be at most the {batch_size} unrolls of a batch if the network is "
            "recurrent; lower it",
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> PpoUpdate:
        """See ``Agent.make_update``."""
        return PpoUpdate(self, envs.env_spec(task).actions)


def check_minibatches(num_minibatches: int, num_rows: int) -> None:
    """Raises UsageError if a batch has fewer transitions than minibatches."""
    check(
        num_minibatches <= num_rows,
        "agent.num_minibatches",
        num_minibatches,
        f"must be at most the {num_rows} transitions of a batch; lower it",
    )


def shuffled_parts(
    rows: Tensor, num_epochs: int, num_minibatches: int
) -> Iterator[Tensor]:
    """Yields the row numbers of each minibatch of a batch, which may have fewer rows.

    The rows are shuffled for each epoch.
    """
    import torch

    num_parts = min(num_minibatches, len(rows))
    for _ in range(num_epochs):
        # Sample on the CPU, because checkpoints save the CPU generator's state.
        yield from torch.randperm(len(rows)).to(rows.device).tensor_split(num_parts)


class PpoUpdate(PolicyUpdate[Ppo]):
    """PPO's update, with epochs of minibatches and clipped losses.

    A batch has B unrolls of T transitions, with the columns of ``tengen.actors.block``
    in shape ``[B, T + 1, ...]``. The last step is only for bootstrapping. A recurrent
    network trains on complete unrolls, and other networks on shuffled transitions.
    """

    is_recordable = True
    normalises: ClassVar[bool] = True
    """Whether advantages are normalised over each minibatch."""

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """See ``Update.minibatches``."""
        from tengen import losses

        group = self.group
        rows = self._with_targets(net, self.scaled(columns))
        if all(name.startswith(FRAMES) for name in net.signature.state):
            rows = transitions(net, rows, group)
        # Gather all learners' rows on every learner, because a minibatch mixes rows of
        # all learners, as with a single learner, and each learner computes part of it.
        rows = {name: group.gather_rows(column) for name, column in rows.items()}
        is_live = rows["is_reset"] == 0
        explained = losses.explained_variance(
            rows["behaviour_value"][is_live], rows["returns"][is_live]
        )
        rows["explained_variance"] = explained.expand_as(rows["returns"])
        agent = self._agent
        for part in shuffled_parts(
            rows["action"], agent.num_epochs, agent.num_minibatches
        ):
            own = group.own(len(part))
            advantage = rows["advantage"][part]
            if self.normalises:
                advantage = losses.normalise(advantage, is_live[part])
            chosen = {name: column[part[own]] for name, column in rows.items()}
            yield {**chosen, "advantage": advantage[own]}

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``.

        Args:
            net: A copy of the network in training mode.
            columns: Columns of transitions, ``[rows, T, ...]``; T = 1 without an LSTM.
        """
        from tengen import losses
        from tengen.nets.modules.standard import uncounted

        agent, steps = self._agent, time_major(columns)
        inputs, state = network_inputs(net, columns)
        with uncounted(net):  # ``minibatches`` has added these rows to the statistics
            is_first = first_steps(steps["is_reset"])
            outputs, _ = unroll_legally(net, inputs, state, is_first)
        outputs = {**outputs, "value": self.values(columns, outputs)}
        is_live = 1.0 - steps["is_reset"].float()
        before = steps["behaviour_log_prob"]
        policy = outputs[self.policy_output]
        log_prob = self.distribution.log_prob(policy, steps["action"])
        policy_loss = losses.clipped_surrogate_loss(
            log_prob, before, steps["advantage"], agent.clip_ratio
        )
        value_loss = self.value_loss(outputs, steps)
        entropy = self.distribution.entropy(policy)
        clipped = losses.is_clipped(log_prob, before, agent.clip_ratio).float()
        metrics = {
            "policy_loss": (policy_loss * is_live).mean(),
            "baseline_loss": (value_loss * is_live).mean(),
            "entropy": (entropy * is_live).mean(),
            "approximate_kl": (
                losses.approximate_kl(log_prob, before) * is_live
            ).mean(),
            "clip_fraction": (clipped * is_live).mean(),
        }
        if "explained_variance" in steps:  # computed before the steps on the batch
            metrics["explained_variance"] = steps["explained_variance"].mean()
        return self.weighted(metrics)

    def value_loss(
        self, outputs: dict[str, Tensor], steps: dict[str, Tensor]
    ) -> Tensor:
        """Returns the loss of the baseline, ``[T, B]``.

        Args:
            outputs: The network's outputs ``[T, B, ...]``, by name.
            steps: Columns ``[T, B, ...]`` of transitions, with those of ``targets``.
        """
        from tengen import losses

        return losses.clipped_value_loss(
            outputs["value"],
            steps["behaviour_value"],
            steps["returns"],
            self._agent.clip_value,
        )

    def targets(self, rows: Unrolled, ratio: Tensor | None) -> dict[str, Tensor]:
        """Returns the columns ``[T, B]`` from which the losses are computed.

        They are ``advantage``, ``returns`` and ``behaviour_value``.

        Args:
            rows: The outputs and columns of unrolls, with scaled rewards.
            ratio: See ``tengen.losses.gae_targets``.
        """
        from tengen import losses

        values = rows.outputs["value"]
        targets = losses.gae_targets(
            v=values,
            reward=rows.columns["reward"],
            terminated=rows.columns["terminated"],
            is_reset=rows.columns["is_reset"],
            discount=self._agent.discount,
            trace_lambda=self._agent.trace_lambda,
            ratio=ratio,
        )
        return {
            "advantage": targets.advantages,
            "returns": targets.returns,
            "behaviour_value": values[:-1],
        }

    def values(self, columns: dict[str, Tensor], outputs: dict[str, Tensor]) -> Tensor:
        """Returns the values ``[T, B]`` of steps; an agent may have its own critic.

        Args:
            columns: The columns of the steps ``[B, T, ...]``.
            outputs: The network's outputs for them, ``[T, B, ...]``.
        """
        return outputs["value"]

    def values_before(
        self, columns: dict[str, Tensor], outputs: dict[str, Tensor]
    ) -> Tensor:
        """Does ``values`` before the learner's steps on a batch, in one thread.

        A critic adds the steps to the statistics of its inputs.
        """
        return self.values(columns, outputs)

    def _with_targets(self, net: Net, columns: dict[str, Tensor]) -> dict[str, Tensor]:
        """Returns the columns of a batch's transitions, with targets added.

        The columns are ``[B, T, ...]``, and the stored states ``[B, ...]``.
        """
        import torch

        with torch.no_grad():
            rows, ratio = unroll_of_all(net, columns, self.group), None
            values = self.values_before(columns, rows.outputs)
            rows = rows._replace(outputs={**rows.outputs, "value": values})
            if self._agent.uses_vtrace:
                log_prob = self.distribution.log_prob(
                    rows.outputs[self.policy_output][:-1], rows.columns["action"]
                )
                ratio = (log_prob - rows.columns["behaviour_log_prob"]).exp()
            own = self.targets(rows, ratio)
        states = {name: c for name, c in columns.items() if name.startswith(STATE)}
        transitions = {**rows.columns, **own}
        return {
            **{name: column.transpose(0, 1) for name, column in transitions.items()},
            **states,
        }
