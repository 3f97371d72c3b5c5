"""SAC: an actor with an entropy bonus, and critics, trained with a uniform replay.

Source: Haarnoja et al. 2018, "Soft Actor-Critic Algorithms and Applications"
(arXiv:1812.05905), algorithm 1 with a learned temperature; for discrete actions
Christodoulou 2019, "Soft Actor-Critic for Discrete Action Settings" (arXiv:1910.07207).

Differs from the papers: one optimizer updates actor, critics and temperature together,
so the actor's gradient uses the critics from before the step; initial actions are
sampled from the initial policy, which is broad, not uniformly; actors use models that
lag some optimizer steps behind; targets bootstrap at a truncation. For discrete actions
the target entropy is half of the maximum entropy. The paper uses 0.98 of the maximum,
which keeps a policy over few actions almost uniform.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tengen import envs
from tengen.actors import (
    EnvironmentActorConfig,
    Slots,
    make_action_draws,
    make_squashed_draws,
)
from tengen.agents.bases.defaults import net_for, plain_learner
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.agents.bases.unrolls import (
    answer_legally,
    first_steps,
    network_inputs,
    time_major,
)
from tengen.bounds import bounded
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.errors import UsageError
from tengen.evaluation import Acting
from tengen.experience import ExperienceConfig, ItemLayout, ReplayConfig
from tengen.learners import LearnerConfig, LossParts, Update
from tengen.learners.update import load_module, module_state
from tengen.nets import MlpConfig, NetConfig
from tengen.tensors import ACTION_MASK, FRAMES, TensorSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.actors import ActionDraws
    from tengen.nets import Net

# Maximum number of numbers in an observation and an action for a small network.
_MOST_SMALL = 8


@dataclass(frozen=True, kw_only=True)
class Sac(EnvironmentAgent):
    """Settings of SAC; the module docstring gives the sources and the differences.

    The network outputs ``policy``. For continuous actions it contains the means before
    tanh, then the logarithms of the standard deviations; for discrete actions, logits.
    """

    kind: Literal["sac"] = "sac"
    """The agent's name, as in ``--agent``."""
    fixed: ClassVar[tuple[str, ...]] = ("sees_last_step",)

    actor: EnvironmentActorConfig = field(
        default_factory=lambda: EnvironmentActorConfig(num_envs=4, turn_steps=16)
    )
    """Settings of the actors. The defaults are few copies and short turns, because the
    learner performs one optimizer step per environment step of a copy."""
    num_critics: int = bounded(2, 1, 16)
    """Number of critics, 1 to 16. Targets use the minimum of the critics' Q values, so
    more critics give lower targets."""
    target_rate: float = bounded(0.005, 0, 1, above=True, rule="use 0.005")
    """Update rate of the target critics towards the critics (tau), per optimizer step;
    above 0, at most 1. A smaller rate makes targets more stable and learning slower."""
    first_temperature: float = bounded(1.0, 0, above=True, rule="use 1")
    """Initial temperature (alpha), the reward for a nat of entropy, above 0. Training
    adapts the temperature."""
    target_entropy: float | None = None
    """Target of the policy's entropy in nats; training adapts the temperature to reach
    it. None: -K for continuous actions of K numbers; ln(A) / 2 for A legal discrete
    actions (``masac``: ln(A) / 4)."""
    entropy_share: ClassVar[float] = 0.5
    """The default target entropy for discrete actions, as a share of the maximum."""

    def is_small(self, spec: EnvSpec) -> bool:
        """Returns whether observation and action have few numbers (Pendulum-v1)."""
        tensors = spec.observations.values()
        num_inputs = sum(tensor.num_entries for tensor in tensors)
        num_inputs += sum(spec.actions.num_choices) or len(spec.actions.low)
        return spec.num_agents == 1 and num_inputs <= _MOST_SMALL

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns the agent with faster target critics for a small network."""
        if not self.is_small(spec):
            return self
        return dataclasses.replace(self, target_rate=0.01)

    @classmethod
    def refusal_of(cls, actions: ActionSpec) -> str:
        """See ``EnvironmentAgent.refusal_of``."""
        if actions.is_discrete:
            return "" if actions.shape == () else "it needs a single action, or a Box"
        return "" if all(actions.is_bounded) else "it needs actions with finite bounds"

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``."""
        length = sum(actions.num_choices) or 2 * len(actions.low)
        return {"policy": TensorSpec(shape=(length,))}

    def num_uniforms(self, actions: ActionSpec) -> int:
        """See ``Policy.num_uniforms``."""
        return _draws(actions).num_uniforms

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """Samples actions from the policy; see ``Policy.act``."""
        chosen, _ = _draws(actions).draw(outputs["policy"], uniforms)
        return {"action": chosen}

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns tanh of the means, or the most likely actions; see ``Policy``."""
        return {"action": _draws(actions).greedy(outputs["policy"])}

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """Returns greedy acting, as in the paper; see ``EnvironmentAgent``."""
        return Acting()

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns items of a transition and one more step; see ``EnvironmentAgent``."""
        memory = [name for name in state if not name.startswith(FRAMES)]
        if memory:
            raise UsageError(
                f"net ({', '.join(memory)}) must not be recurrent with agent sac; set "
                "net.lstm_units=0, or use --agent ppo"
            )
        return ItemLayout(num_steps=2, period=1, state=dict(state))

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns the paper's network if observations are vectors; see ``net_for``.

        Layers have 256 units, or 64 if observation and action have few numbers.
        """
        num_units = 64 if self.is_small(spec) else 256
        return net_for(spec, MlpConfig(num_units=num_units, activation="relu"))

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a uniform replay that allows one optimizer step per item.

        With a small network two, because they take little time.
        """
        batch_size = self.default_learner(spec).batch_size
        return ReplayConfig(
            sampler="uniform",
            max_items=1_000_000,
            min_items=1_000,
            samples_per_item=float(batch_size * (2 if self.is_small(spec) else 1)),
        )

    def default_learner(self, spec: EnvSpec) -> LearnerConfig:
        """See ``EnvironmentAgent.default_learner``.

        As in the paper, the batch size is 256 and the learning rate is constant. Small
        networks have batches of 64, a higher rate, and an average of about 100 steps,
        without which a single evaluation may be far below those around it.
        """
        is_small = self.is_small(spec)
        return plain_learner(
            batch_size=64 if is_small else 256,
            learning_rate=2e-3 if is_small else 7e-4,
            # The papers do not clip gradients.
            max_grad_norm=1e9,
            cooldown=0.0,
            average_decay=0.99 if is_small else 0.0,
        )

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> SacUpdate:
        """See ``Agent.make_update``."""
        return SacUpdate(self, net, envs.env_spec(task).actions)


class SacUpdate(Update):
    """SAC's update, with the sum of the losses of critics, actor and temperature.

    A batch has B transitions, with the columns of ``tengen.actors.block`` in shape
    ``[B, 2, ...]``. Each loss has a gradient only for its own parameters.
    """

    is_recordable = True

    def __init__(
        self,
        agent: Sac,
        net: Net,
        actions: ActionSpec,
        more: Mapping[str, TensorSpec] | None = None,
    ) -> None:
        """Creates the critics, and target critics with equal weights.

        Args:
            agent: The agent's settings.
            net: The actor's network; the critics have the same kind and size.
            actions: The environment's action space.
            more: Inputs of the critics in addition to those of ``net``.
        """
        import copy

        import torch

        from tengen.nets.modules.critics import Critics
        from tengen.nets.modules.standard import has_statistics

        # Statistics of observations begin with other operations than they continue.
        self.is_recordable = not has_statistics(net)
        self._agent = agent
        self._actions = actions
        self.critics = Critics(net, agent.num_critics, actions, more or {})
        # In evaluation mode, observation statistics stay as copied from the actor.
        self.critics.eval()
        self.target = copy.deepcopy(self.critics).requires_grad_(False)
        # Cache the lists, because listing the weights takes as long as updating them.
        self._target_weights: list[torch.Tensor] = list(self.target.parameters())
        self._critic_weights: list[torch.Tensor] = list(self.critics.parameters())
        self.log_temperature = torch.nn.Parameter(
            torch.tensor(math.log(agent.first_temperature))
        )

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return [*self.critics.parameters(), self.log_temperature]

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``."""
        for critics in (self.critics, self.target):
            critics.to(device)
            critics.compute_in(dtype)
        self.log_temperature.data = self.log_temperature.data.to(device)

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Adds the noise for sampling actions; see ``Update.minibatches``."""
        import torch

        if not self._actions.is_discrete:
            # Sample on the CPU, because checkpoints save the CPU generator's state.
            action = columns["action"]
            num_rows, *shape = action.shape
            place = self.group.place(num_rows)
            noise = torch.randn(place.total, *shape)[place.first :][:num_rows]
            columns = {**columns, "noise": noise.to(action.device)}
        yield columns

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen import losses
        from tengen.nets.modules.standard import uncounted

        steps = time_major(columns)
        inputs, state = network_inputs(net, columns)
        states = net.states_of_inputs(inputs, state, first_steps(steps["is_reset"]))
        now, reached = (
            (
                {name: column[i] for name, column in inputs.items()},
                {name: column[i] for name, column in states.items()},
            )
            for i in (0, 1)
        )
        temperature = self.log_temperature.exp().detach()
        with torch.no_grad(), uncounted(net):
            policy_t = self._drawn(net, reached, columns, 1)
            q_t = self.target(*_unmasked(reached), policy_t.action)
            targets = losses.soft_targets(
                reward=steps["reward"][0],
                terminated=steps["terminated"][0],
                value_t=losses.soft_values(q_t, policy_t.log_policy, temperature),
                discount=self._agent.discount,
            )
        seen = _unmasked(now)
        q = self.critics.of_taken(*seen, steps["action"][0])
        critic = losses.critic_loss(q, targets)
        policy = self._drawn(net, now, columns, 0)
        q_drawn = self.critics.frozen(*seen, policy.action)
        value = losses.soft_values(q_drawn, policy.log_policy, temperature)
        entropy = policy.entropy
        warmth = losses.temperature_loss(
            self.log_temperature, entropy, self._target_entropy(now[0])
        )
        metrics = {
            "critic_loss": critic.mean(),
            "policy_loss": -value.mean(),
            "entropy": entropy.mean(),
            "temperature": temperature,
            "q": q.mean(),
        }
        loss = metrics["critic_loss"] + metrics["policy_loss"] + warmth.mean()
        return LossParts(loss, metrics)

    def move_targets(self, net: Net) -> None:
        """Updates target critics, and copies the actor's observation statistics."""
        import torch

        with torch.no_grad():
            torch._foreach_lerp_(
                self._target_weights, self._critic_weights, self._agent.target_rate
            )
        for critics in (self.critics, self.target):
            critics.see_as(net)

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        return {
            **module_state("critics.", self.critics),
            **module_state("target.", self.target),
            "log_temperature": self.log_temperature.detach(),
        }

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        load_module("critics.", self.critics, tensors)
        load_module("target.", self.target, tensors)
        self.log_temperature.data.copy_(tensors["log_temperature"])

    def _target_entropy(self, inputs: dict[str, Tensor]) -> float | Tensor:
        """Returns the target entropy in nats, ``[B]`` if some choices are illegal."""
        if self._agent.target_entropy is not None:
            return self._agent.target_entropy
        if not self._actions.is_discrete:
            return -float(len(self._actions.low))
        if ACTION_MASK in inputs:
            # The mask of an agent that is not in the episode has no choice.
            count = inputs[ACTION_MASK].float().sum(-1)
            return self._agent.entropy_share * count.clamp(min=1.0).log()
        return self._agent.entropy_share * math.log(self._actions.num_choices[0])

    def _drawn(
        self,
        net: Net,
        at: tuple[dict[str, Tensor], dict[str, Tensor]],
        columns: dict[str, Tensor],
        step: int,
    ) -> Drawn:
        from tengen import losses

        outputs = answer_legally(net, *at)[0]["policy"]
        if self._actions.is_discrete:
            log_policy = outputs.log_softmax(-1)
            entropy = -(log_policy.exp() * log_policy).sum(-1)
            return Drawn(None, log_policy, entropy)
        noise = columns["noise"][:, step]
        action, log_prob = losses.squashed_sample(outputs, noise)
        return Drawn(action, log_prob, -log_prob)


@dataclass(frozen=True)
class Drawn:
    """Actions of the policy for a batch of inputs, with their log-probabilities."""

    action: Tensor | None
    """Sampled actions ``[B, K]`` in [-1, 1]; None if discrete."""
    log_policy: Tensor
    """``[B]`` log-density of ``action``; if discrete, ``[B, A]`` log-probabilities."""
    entropy: Tensor
    """Entropy of the policy in nats, ``[B]``, estimated from ``action`` if given."""


def _unmasked(
    at: tuple[dict[str, Tensor], dict[str, Tensor]],
) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Returns inputs and state without the action mask, which critics do not need."""
    inputs, state = at
    return {n: tensor for n, tensor in inputs.items() if n != ACTION_MASK}, state


def _draws(actions: ActionSpec) -> ActionDraws:
    if actions.is_discrete:
        return make_action_draws(actions.num_choices, actions.shape)
    return make_squashed_draws(actions)
