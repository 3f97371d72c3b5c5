"""V-trace, IMPALA's actor-critic, whose importance weights correct for policy lag.

Source: Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with
Importance Weighted Actor-Learner Architectures" (arXiv:1802.01561), section 4.

Differs from the paper: losses are averages over the transitions of a batch, not sums,
so that learning rates do not depend on the batch size; rewards are divided by the scale
of returns (``tengen.agents.bases.policy_update``) and advantages by their own scale
(``PolicyUpdate.advantage_scale``); termination and truncation are distinguished; the
importance weights use stored log-probabilities, so all kinds of actions are supported;
the optimizer is AdamW without weight decay, not RMSProp.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.agents.bases.defaults import plain_learner, shows_screens
from tengen.agents.bases.policy_agent import PolicyAgent
from tengen.agents.bases.policy_update import ADVANTAGE_SQUARE, PolicyUpdate
from tengen.agents.bases.unrolls import Unrolled, unroll
from tengen.bounds import bounded
from tengen.config import check
from tengen.envs import EnvSpec
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LearnerConfig, LossParts

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class Vtrace(PolicyAgent):
    """Settings of V-trace; the module docstring names the source and differences."""

    kind: Literal["vtrace"] = "vtrace"
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ("impala",)
    clip_rho: float = bounded(1.0, 0, above=True, rule="must be positive; use 1")
    """Upper bound of the importance weights in the value targets, positive. With a
    larger bound, the learned value is closer to that of the newest policy."""
    clip_c: float = bounded(1.0, 0, above=True, rule="must be positive; use 1")
    """Upper bound of the trace coefficients, above 0, at most ``clip_rho``. With a
    larger bound, targets look further ahead and have more variance."""
    clip_pg_rho: float = bounded(1.0, 0, above=True, rule="must be positive; use 1")
    """Upper bound of the importance weights in the policy gradient, positive."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        # The paper's proof of contraction needs this (section 4.1, below equation 1).
        check(
            self.clip_c <= self.clip_rho,
            "clip_c",
            self.clip_c,
            f"must be at most clip_rho ({self.clip_rho}); lower it",
        )

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a queue of at most 64 unrolls; see ``EnvironmentAgent``."""
        return ReplayConfig(sampler="fifo", max_items=64)

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``."""
        is_large = shows_screens(spec)
        return plain_learner(
            batch_size=4 if is_large else 16,
            # With a rate of 4e-3, CartPole takes 200,000 frames if actor and learner
            # work in turns. But with actors in other processes (a policy lag of eight
            # steps), the policy collapsed to one action.
            learning_rate=2.5e-4 if is_large else 1e-3,
            max_grad_norm=0.5 if is_large else 40.0,
            epsilon=1e-5 if is_large else 1e-8,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> VtraceUpdate:
        """See ``Agent.make_update``."""
        return VtraceUpdate(self, envs.env_spec(task).actions)


class VtraceUpdate(PolicyUpdate[Vtrace]):
    """The update of V-trace: policy gradient, baseline and entropy losses.

    A batch has B unrolls of T transitions, with the columns of ``tengen.actors.block``
    in shape ``[B, T + 1, ...]``. The last step is only for bootstrapping. Reset steps
    have no loss and end the trace. A truncated episode bootstraps from its final
    observation, and a terminated episode does not bootstrap.
    """

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``; losses are averages over all B * T transitions."""
        import torch

        from tengen import losses

        agent = self._agent
        rows: Unrolled = unroll(net, columns)
        policy = rows.outputs[self.policy_output][:-1]
        values = rows.outputs["value"]
        log_prob = self.distribution.log_prob(policy, rows.columns["action"])
        log_rho = log_prob.detach() - rows.columns["behaviour_log_prob"]
        ended, is_live = rows.columns["terminated"].float(), rows.is_live > 0
        targets = losses.vtrace_targets(
            v_tm1=values[:-1].detach(),
            v_t=values[1:].detach(),
            r_t=rows.columns["reward"],
            discount_t=agent.discount * (1.0 - ended),
            # Set the ratio of reset steps to 0, so that their advantages are 0.
            rho_tm1=torch.where(is_live, log_rho.exp(), 0.0),
            trace_lambda=agent.trace_lambda,
            clip_rho=agent.clip_rho,
            clip_c=agent.clip_c,
            clip_pg_rho=agent.clip_pg_rho,
        )
        advantages = targets.pg_advantages / self.advantage_scale
        entropy = self.distribution.entropy(policy) * rows.is_live
        metrics = {
            "policy_loss": -(log_prob * advantages).mean(),
            "baseline_loss": losses.baseline_loss(values[:-1], targets.vs_tm1).mean(),
            "entropy": entropy.mean(),
            ADVANTAGE_SQUARE: targets.pg_advantages.square().mean(),
            "explained_variance": losses.explained_variance(
                values[:-1][is_live], targets.vs_tm1[is_live]
            ),
        }
        return self.weighted(metrics)
