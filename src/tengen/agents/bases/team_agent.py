"""``TeamAgent``, the base class of agents that learn a team's Q value, and its update.

An item has the steps of all agents of a copy, with the reward of their team. The
network computes an agent's Q values from its own observation and its index. The Q value
of the team is a function of the Q values of the actions that the agents took, and
increases with each of them. So the best actions of the agents are the best actions of
the team.

Differs from the papers of ``vdn`` and ``qmix``: items are sequences of a fixed length,
not episodes, and a recurrent network begins with the stored state and a burn-in, as in
R2D2; exploration is constant and differs between the copies (``EpsilonAgent``); the
reward of the team is the mean over its agents that acted; an agent that is not in the
episode adds a Q value of 0; a truncated episode bootstraps; the optimizer is AdamW
without weight decay, not RMSprop.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self

from tengen import envs
from tengen.actors import (
    IS_PRESENT,
    EnvironmentActorConfig,
    StepBlock,
    TeamBlock,
    team_tensors,
)
from tengen.agents.bases.defaults import net_for, plain_learner
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.agents.bases.q_agent import (
    LEAST_PRIORITY,
    SequenceAgent,
    TargetUpdate,
    q_values,
)
from tengen.agents.bases.unrolls import learned_outputs, time_major
from tengen.envs import EnvSpec
from tengen.errors import UsageError
from tengen.experience import STATE, ExperienceConfig, ItemLayout, ReplayConfig
from tengen.learners import LearnerConfig, LossParts
from tengen.nets import MlpConfig, NetConfig
from tengen.tensors import AGENT_ID, FRAMES, GLOBAL_STATE, Signature, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

# Weight of the largest TD error in the priority of a sequence, as in R2D2.
_ETA = 0.9
# Minimum number of entries of the vectors that an agent observes for them to count as
# large. SMAX's smallest scenario has 75, simple spread has 18.
_LARGE = 64


@dataclass(frozen=True, kw_only=True)
class TeamItems(EnvironmentAgent):
    """Base class of agents whose items have the steps of all agents of a copy."""

    needs_agents: ClassVar[bool] = True

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``; all agents must be of one team."""
        reason = super().refusal(task)
        if not reason and len(set(envs.env_spec(task).teams)) > 1:
            return "it needs a single team"
        return reason

    def num_slots(self, spec: EnvSpec) -> int:
        """Returns 1, because an item has the steps of all agents of a copy."""
        return 1

    def layout_of(self, signature: Signature) -> ItemLayout:
        """Returns a layout whose items have the states of all agents."""
        state, each = signature.state, signature.inputs[AGENT_ID].shape
        frames = [name for name in state if name.startswith(FRAMES)]
        if frames:
            raise UsageError(
                f"net.num_frames ({1 + state[frames[0]].shape[0]}) must be 1 with "
                f"agent {self.kind}; set it, or use --agent ppo"
            )
        states = {
            name: TensorSpec(dtype=spec.dtype, shape=(*each, *spec.shape))
            for name, spec in state.items()
        }
        return self.layout(states)

    def make_block(
        self, spec: EnvSpec, layout: ItemLayout, num_copies: int
    ) -> StepBlock:
        """See ``EnvironmentAgent.make_block``."""
        num_steps = layout.block_steps(self.actor.turn_steps)
        return TeamBlock(self.columns(spec), num_copies, num_steps, spec)

    def _step_tensors(
        self, spec: EnvSpec, own: Mapping[str, TensorSpec]
    ) -> dict[str, TensorSpec]:
        return team_tensors(super()._step_tensors(spec, own), spec.num_agents)


@dataclass(frozen=True, kw_only=True)
class TeamAgent(TeamItems, SequenceAgent):
    """Base class of agents whose team learns one Q value; see the module docstring."""

    is_duelling: bool = False
    """Whether the network has duelling heads; the papers have none."""
    num_steps: int = 1
    """Number n of rewards in an n-step target before it bootstraps, 1 to 1,000."""
    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=40)
    )
    """Settings of the actors."""

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with five-step targets for large observations.

        The settings for large observations were chosen together, on SMAX's 3s5z, where
        values diverged with smaller batches. On simple spread, with small observations,
        five-step targets are worse (benchmarks/results/environments.md).
        """
        agent = super().for_environment(spec)
        return dataclasses.replace(agent, num_steps=5) if _is_large(spec) else agent

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns a network without memory; see ``EnvironmentAgent.default_net``."""
        net = net_for(spec, MlpConfig(activation="relu"))
        # ``layout`` rejects stacked images.
        return dataclasses.replace(net, num_frames=1)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a uniform replay; see ``EnvironmentAgent.default_store``."""
        is_large = _is_large(spec)
        return ReplayConfig(
            sampler="uniform",
            max_items=20_000 if is_large else 5_000,
            min_items=100,
            samples_per_item=8.0 if is_large else 16.0,
        )

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``."""
        is_large = _is_large(spec)
        return plain_learner(
            batch_size=128 if is_large else 32,
            learning_rate=3e-4 if is_large else 1e-3,
            max_grad_norm=10.0,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> TeamUpdate:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return TeamUpdate(self, net, store)


def _is_large(spec: EnvSpec) -> bool:
    """Returns whether an agent observes large vectors; images do not count."""
    specs = (s for name, s in spec.observations.items() if name != AGENT_ID)
    return sum(s.num_entries for s in specs if len(s.shape) != 3) >= _LARGE


class TeamUpdate(TargetUpdate[TeamAgent]):
    """The update of a team's Q value, the sum of its agents', with squared TD errors.

    A batch has B sequences of T steps with the columns of ``TeamBlock``, ``[B, T,
    ...]``, and the states of the agents before the first step, ``[B, n, ...]``. The
    last step is only for bootstrapping. Legend: n agents, A actions.
    """

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen import losses

        agent = self._agent
        rows = agent_rows(columns)
        steps = time_major(columns)
        learned = {name: column[agent.burn_in :] for name, column in steps.items()}
        is_present = learned[IS_PRESENT] != 0
        q = self._values(net, rows, is_present)
        with torch.no_grad():
            q_target = self._values(self.target, rows, is_present)
        action = learned["action"][..., None]
        taken = torch.where(is_present, q.gather(-1, action).squeeze(-1), 0.0)
        total = self.mixed(taken, learned)
        with torch.no_grad():
            best = losses.double_q_values(q, q_target)
            best = torch.where(is_present, best, 0.0)
            value = self.mixed(best, learned, is_target=True)
        targets = losses.n_step_targets(
            reward=learned["reward"][:-1],
            terminated=learned["terminated"][:-1],
            is_reset=learned["is_reset"],
            bootstrap=value,
            num_steps=agent.num_steps,
            discount=agent.discount,
        )
        is_live = learned["is_reset"][:-1] == 0
        errors = torch.where(is_live, targets - total[:-1], 0.0)
        weights = columns.get("importance_weight", 1.0)
        loss = (losses.td_loss(errors).mean(0) * weights).mean()
        metrics = {"td_error": errors.abs().mean(), "q": total.mean()}
        priorities = losses.sequence_priorities(errors, is_live, _ETA)
        return LossParts(loss, metrics, priorities + LEAST_PRIORITY)

    def mixed(
        self, q: Tensor, steps: dict[str, Tensor], *, is_target: bool = False
    ) -> Tensor:
        """Returns the team's Q values ``[T, B]``.

        Args:
            q: ``[T, B, n]`` float32, the Q values of the agents' actions; 0 for agents
                that are not in the episode.
            steps: The columns of the steps, ``[T, B, ...]``.
            is_target: Whether the weights are those of the target network.
        """
        return q.sum(-1)

    def _values(self, net: Net, rows: dict[str, Tensor], is_present: Tensor) -> Tensor:
        """Returns the agents' Q values ``[T, B, n, A]`` after the burn-in."""
        q = q_values(*learned_outputs(net, rows, self._agent.burn_in))
        return q.reshape(*is_present.shape, -1)


def agent_rows(columns: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the columns of each agent in B items: ``[B * n, T, ...]``.

    Includes the inputs of the network, the mask, and the states ``[B * n, ...]``. An
    agent has reset steps while it is not in the episode.

    Args:
        columns: The columns of a batch, ``[B, T, n, ...]`` or ``[B, T]``.
    """
    is_present = columns[IS_PRESENT]
    of_copy = {GLOBAL_STATE, IS_PRESENT}
    rows = {
        name: column.transpose(1, 2).flatten(0, 1)
        for name, column in columns.items()
        if column.dim() > 2 and name not in of_copy and not name.startswith(STATE)
    }
    is_reset = (columns["is_reset"] != 0)[..., None] | (is_present == 0)
    rows["is_reset"] = is_reset.transpose(1, 2).flatten(0, 1)
    states = {n: c.flatten(0, 1) for n, c in columns.items() if n.startswith(STATE)}
    return {**rows, **states}
