"""MASAC: SAC for a team, with critics that see the global state and all actions.

Source: Iqbal and Sha 2019, "Actor-Attention-Critic for Multi-Agent Reinforcement
Learning" (arXiv:1810.02912), section 3, without attention; for the losses ``sac``.

The policy, which all agents share by default, sees only an agent's own observation and
its index. The critics, which are only part of the learner, estimate the value of all
agents' actions. They see the global state, an agent's own observation and index, and
the actions of the others. As in the paper, they have an output for each discrete action
of the agent, so the expectation over its own actions is exact, and the other agents'
actions are sampled from the policy.

Differs from the paper: no attention; the agents of a team share a reward, the mean over
the agents that acted, so there is one Q value, and targets have the mean of its
estimates for all agents and the sum of all agents' entropies; the minimum of two
critics, the learned temperature and the other differences of ``sac``; absent agents
have no part in losses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal

from tengen import envs
from tengen.actors import IS_PRESENT, EnvironmentActorConfig, encoded_length
from tengen.agents.bases.defaults import net_for
from tengen.agents.bases.team_agent import TeamItems, agent_rows
from tengen.agents.bases.unrolls import (
    answer_legally,
    network_inputs,
    standardized_state,
    time_major,
)
from tengen.agents.sac import Drawn, Sac, SacUpdate
from tengen.bounds import bounded
from tengen.envs import EnvSpec
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LearnerConfig, LossParts
from tengen.nets import MlpConfig, NetConfig
from tengen.tensors import ACTION_MASK, AGENT_ID, GLOBAL_STATE, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

_OTHERS, _NOISE = "other_actions", "noise"


@dataclass(frozen=True, kw_only=True)
class Masac(TeamItems, Sac):
    """Settings of MASAC; the module docstring gives the source and the differences."""

    kind: Literal["masac"] = "masac"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    learns_from_state: ClassVar[bool] = True
    # With the share of ``sac``, one of two actions is wrong in a ninth of an agent's
    # steps, and an agent's wrong action costs the whole team.
    entropy_share: ClassVar[float] = 0.25

    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(turn_steps=16)
    )
    """Settings of the actors; a new model acts after a turn."""
    first_temperature: float = bounded(0.1, 0, above=True, rule="use 0.1")
    """See ``Sac``. Lower than there, because few optimizer steps adapt it."""

    def is_small(self, spec: EnvSpec) -> bool:
        """Returns false: the central critics see all agents."""
        return False

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns a network without memory; see ``EnvironmentAgent.default_net``."""
        net = net_for(spec, MlpConfig(num_units=128, activation="relu"))
        return dataclasses.replace(net, num_frames=1)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a uniform replay; see ``EnvironmentAgent.default_store``."""
        store = super().default_store(spec)
        return dataclasses.replace(store, max_items=100_000, samples_per_item=16.0)

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """Returns the settings of ``sac`` with smaller batches."""
        return dataclasses.replace(super().default_learner(spec), batch_size=128)

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> MasacUpdate:
        """See ``Agent.make_update``."""
        return MasacUpdate(self, net, envs.env_spec(task))


class MasacUpdate(SacUpdate):
    """MASAC's update; see ``SacUpdate``.

    A batch has B transitions of a team, with the columns of ``TeamBlock`` in shape
    ``[B, 2, ...]``. Legend: n agents, R = B * n rows of one agent, C critics, A
    discrete actions, K numbers of a continuous action, E = A or K.

    Attributes:
        standard: The statistics of the global state, which has any unit.
    """

    is_recordable = True

    def __init__(self, agent: Masac, net: Net, spec: EnvSpec) -> None:
        """Creates the critics, and target critics with equal weights.

        Args:
            agent: The agent's settings.
            net: The policy's network; the critics have the same kind and size.
            spec: The environment's spec, with a global state.
        """
        from tengen.nets.modules.standard import Standard, has_statistics

        assert spec.global_state is not None  # ``refusal`` has checked it
        others = TensorSpec(shape=(spec.num_agents * encoded_length(spec.actions),))
        more = {GLOBAL_STATE: spec.global_state, _OTHERS: others}
        super().__init__(agent, net, spec.actions, more)
        self._has_statistics = has_statistics(net)
        self.standard = Standard(spec.global_state.num_entries)
        # A part of the critics, so that checkpoints contain it.
        self.critics.add_module("state_standard", self.standard)

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Standardizes the global state, and adds the noise for sampling actions."""
        import torch

        # A state counts once, as the first one of its transition.
        first = columns[GLOBAL_STATE][:, 0]
        columns = standardized_state(self.standard, columns, first, self.group)
        action = columns["action"]
        # Sample on the CPU, because checkpoints save the CPU generator's state.
        num_rows, *shape = action.shape
        place = self.group.place(num_rows)
        noise = torch.empty(place.total, *shape, *self._actions.num_choices)
        if self._actions.is_discrete:
            # The largest sum of a logit and Gumbel noise is at a sample of the policy.
            noise.exponential_().clamp_(min=1e-30).log_().neg_()
        else:
            noise.normal_()
        noise = noise[place.first :][:num_rows].to(action.device)
        yield {**columns, _NOISE: noise}

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen.losses import soft_actor_critic as losses
        from tengen.nets.modules.standard import uncounted

        rows, steps = agent_rows(columns), time_major(columns)
        is_present, is_present_t = steps[IS_PRESENT] != 0
        state, state_t = steps[GLOBAL_STATE]
        inputs, _ = network_inputs(net, rows)
        now, reached = ({name: x[i] for name, x in inputs.items()} for i in (0, 1))
        if self._has_statistics:
            with torch.no_grad():  # Absent agents must not count.
                seen = {name: x[is_present.flatten()] for name, x in now.items()}
                answer_legally(net, seen, {})
        with uncounted(net):
            policy = self._drawn(net, (now, {}), rows, 0)
            with torch.no_grad():
                policy_t = self._drawn(net, (reached, {}), rows, 1)
        temperature = self.log_temperature.exp().detach()

        drawn = self._encoded(policy, rows[_NOISE][:, 0])
        with torch.no_grad():
            drawn_t = self._encoded(policy_t, rows[_NOISE][:, 1])
            seen_t = _seen(reached, state_t, drawn_t, is_present_t)
            q_t = self.target(seen_t, {}, policy_t.action)
            value_t = losses.soft_values(q_t, policy_t.log_policy, 0.0)
            targets = losses.soft_targets(
                reward=steps["reward"][0],
                terminated=steps["terminated"][0],
                value_t=losses.team_soft_values(
                    value_t.view(is_present.shape),
                    policy_t.entropy.view(is_present.shape),
                    is_present_t,
                    temperature,
                ),
                discount=self._agent.discount,
            )
        taken = self.critics.encoded(steps["action"][0])
        seen = _seen(now, state, taken, is_present)
        q = self.critics.of_taken(seen, {}, rows["action"][:, 0])
        each_q = q.view(-1, *is_present.shape)
        seen = _seen(now, state, drawn, is_present)
        value = losses.soft_values(
            self.critics.frozen(seen, {}, policy.action), policy.log_policy, temperature
        )
        warmth = losses.temperature_loss(
            self.log_temperature, policy.entropy, self._target_entropy(now)
        )

        def mean(each: Tensor) -> Tensor:
            """Returns the mean over items of the mean over agents; ``each``: [R]."""
            agents = each.view(is_present.shape)
            return losses.mean_of_present(agents, is_present).mean()

        metrics = {
            "critic_loss": mean(losses.critic_loss(each_q, targets[:, None])),
            "policy_loss": -mean(value),
            "entropy": mean(policy.entropy),
            "temperature": temperature,
            "q": mean(q.mean(0)),
        }
        loss = metrics["critic_loss"] + metrics["policy_loss"] + mean(warmth)
        return LossParts(loss, metrics)

    def _encoded(self, policy: Drawn, noise: Tensor) -> Tensor:
        """Returns sampled actions ``[R, E]`` as inputs of critics, without gradient."""
        if policy.action is not None:
            return policy.action.detach()
        return self.critics.encoded((policy.log_policy + noise).argmax(-1))


def _seen(
    inputs: dict[str, Tensor], state: Tensor, actions: Tensor, is_present: Tensor
) -> dict[str, Tensor]:
    """Returns the critics' inputs for the rows of all agents, ``[R, ...]``.

    Args:
        inputs: The policy's inputs ``[R, ...]``.
        state: ``[B, S]``, the global state.
        actions: ``[R, E]`` or ``[B, n, E]``, the actions as ``Critics.encoded`` does.
        is_present: ``[B, n]`` bool, the agents in the episode; others count as 0.
    """
    num_items, num_agents = is_present.shape
    every = actions.reshape(num_items, 1, num_agents, -1)
    is_other = inputs[AGENT_ID].view(num_items, num_agents, num_agents) == 0
    counts = is_other & is_present[:, None]
    others = (every * counts[..., None]).flatten(0, 1).flatten(1)
    each = state[:, None].expand(-1, num_agents, -1).flatten(0, 1)
    own = {name: tensor for name, tensor in inputs.items() if name != ACTION_MASK}
    return {**own, GLOBAL_STATE: each, _OTHERS: others}
