"""A2C, the advantage actor-critic, and A3C, its asynchronous form.

In one process (``--launch inline``) the learner trains on actions of the newest policy,
as in A2C. With actors in other processes (``--actors N``) it trains on actions of
policies that lag some optimizer steps behind, without a correction, as in A3C. The
agent ``vtrace`` corrects for the policy lag.

Source: Mnih et al. 2016, "Asynchronous Methods for Deep Reinforcement Learning"
(arXiv:1602.01783), section 4 and algorithm S3.

Differs from the paper: one learner trains on unrolls of many actors, whereas A3C has a
learner in each actor; the optimizer is AdamW without weight decay, not RMSProp;
advantages use ``trace_lambda``, whose default 1 is the paper's; losses are averages
over the transitions of a batch, not sums; targets bootstrap at a truncation; rewards
are divided by the scale of returns (``tengen.agents.bases.policy_update``) and
advantages by their own scale (``PolicyUpdate.advantage_scale``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.actors import EnvironmentActorConfig
from tengen.agents.bases.defaults import plain_learner, shows_screens
from tengen.agents.bases.policy_agent import PolicyAgent
from tengen.agents.bases.policy_update import ADVANTAGE_SQUARE, PolicyUpdate
from tengen.agents.bases.unrolls import unroll
from tengen.envs import EnvSpec
from tengen.experience import ExperienceConfig
from tengen.learners import LearnerConfig, LossParts

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class A2c(PolicyAgent):
    """Settings of A2C; the module docstring gives the source and the differences."""

    kind: Literal["a2c"] = "a2c"
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ("a3c",)
    unroll_length: int = 5
    """Number T of transitions in an unroll, 1 to 100,000."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=5)
    )
    """Settings of the actors; by default an actor produces one batch per turn, or four
    batches per turn for screens."""

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """Returns settings for batches with one turn's unrolls.

        For screens, with their long unrolls, a batch holds a quarter of a turn's.
        """
        is_large = shows_screens(spec)
        return plain_learner(
            batch_size=4 if is_large else 16,
            learning_rate=2.5e-4 if is_large else 1e-3,
            max_grad_norm=0.5,
            epsilon=1e-5,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> A2cUpdate:
        """See ``Agent.make_update``."""
        return A2cUpdate(self, envs.env_spec(task).actions)


class A2cUpdate(PolicyUpdate[A2c]):
    """A2C's update, with policy gradient, baseline and entropy losses.

    A batch has B unrolls of T transitions, with the columns of ``tengen.actors.block``
    in shape ``[B, T + 1, ...]``. The last step is only for bootstrapping. Reset steps
    have no loss.
    """

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``; losses are averages over all B * T transitions."""
        from tengen import losses

        agent = self._agent
        rows = unroll(net, columns)
        policy = rows.outputs[self.policy_output][:-1]
        values = rows.outputs["value"]
        targets = losses.gae_targets(
            v=values.detach(),
            reward=rows.columns["reward"],
            terminated=rows.columns["terminated"],
            is_reset=rows.columns["is_reset"],
            discount=agent.discount,
            trace_lambda=agent.trace_lambda,
        )
        log_prob = self.distribution.log_prob(policy, rows.columns["action"])
        errors = losses.baseline_loss(values[:-1], targets.returns)
        entropy = self.distribution.entropy(policy) * rows.is_live
        # Advantages need no mask, because they are 0 in reset steps.
        advantages, is_live = targets.advantages, rows.is_live > 0
        metrics = {
            "policy_loss": -(log_prob * advantages).mean() / self.advantage_scale,
            "baseline_loss": (errors * rows.is_live).mean(),
            "entropy": entropy.mean(),
            ADVANTAGE_SQUARE: advantages.square().mean(),
            "explained_variance": losses.explained_variance(
                values[:-1][is_live], targets.returns[is_live]
            ),
        }
        return self.weighted(metrics)
