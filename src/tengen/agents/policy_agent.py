"""What the agents that learn a policy share: actions are drawn from it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tengen.actors import Slots, make_action_draws
from tengen.agents.default_nets import net_for, shows_screens
from tengen.agents.environment_agent import EnvironmentAgent
from tengen.bounds import bounded
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.evaluation import Acting
from tengen.experience import ItemLayout
from tengen.nets import MlpConfig, NetConfig
from tengen.tensors import FRAMES, TensorSpec

__all__ = ["PolicyAgent"]

_UNROLL = 20
_MEMORY_UNROLL = 64
# Of Sample Factory: a hundred times what actors in processes are behind.
_MAX_LAG = 1_000


@dataclass(frozen=True, kw_only=True)
class PolicyAgent(EnvironmentAgent):
    """Base of the agents with a policy and a baseline, which learn from unrolls.

    The network answers ``policy``, the flat outputs of a distribution
    (``tengen.losses.distributions``), and ``value`` ``[]``, the expected return. A step
    stores the log-probability of its action under the policy that drew it. An item is
    an unroll of T transitions and one closing step, which only bootstraps.
    """

    fixed: ClassVar[tuple[str, ...]] = ("sees_last_step",)

    unroll_length: int | None = bounded(None, 1, 100_000, "use 20")
    """Transitions T of an unroll, 1 to 100,000. None: 20, and 64 of a network with
    memory, whose gradient does not reach beyond an unroll: what is to be remembered
    longer is learned by chance alone."""

    trace_lambda: float = bounded(1.0, 0, 1)
    """Mixing of the traces or advantages, in [0, 1]; 0: of one step, 1: to the end of
    the unroll."""

    max_lag: int | None = bounded(None, 0, None, "use 1000")
    """Optimizer steps that the policy may be older which acted in an unroll, at least
    0; older ones are not learned from. None: 1,000."""

    @property
    def lag_bound(self) -> int:
        """``max_lag``, or what None stands for."""
        return _MAX_LAG if self.max_lag is None else self.max_lag

    def for_environment(self, spec: EnvSpec) -> Self:
        """See ``EnvironmentAgent.for_environment``: of screens, longer unrolls.

        With 20 steps, as in IMPALA's paper, a return is mostly what the network makes
        of the last of them, and nothing yet is known of that: V-trace's policies of
        vizdoom/Basic became certain of one action first.
        """
        told = self.sees_last_step or spec.is_partial
        if not shows_screens(spec):
            return dataclasses.replace(self, sees_last_step=told)
        return dataclasses.replace(
            self,
            sees_last_step=told,
            unroll_length=64,
            trace_lambda=0.95,
            actor=dataclasses.replace(self.actor, turn_steps=64),
        )

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """See ``EnvironmentAgent.default_net``: with memory where the task is partial.

        Where actions are real numbers, so are the vectors that are observed: these are
        in units of their own.

        Source: Espeholt et al. 2018, "IMPALA" (arXiv:1802.01561), figure 3, of pictures
        256 units.
        """
        standardizes = not spec.actions.is_discrete
        net = net_for(spec, MlpConfig(standardizes=standardizes))
        if not spec.is_partial:
            return net
        num_units = 256 if shows_screens(spec) else 64
        return dataclasses.replace(net, lstm_units=num_units)

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``."""
        # A mean and a standard deviation for each real number.
        length = sum(actions.num_choices) or 2 * len(actions.low)
        return {"policy": TensorSpec(shape=(length,)), "value": TensorSpec()}

    def num_uniforms(self, actions: ActionSpec) -> int:
        """See ``Policy.num_uniforms``."""
        return make_action_draws(actions.num_choices, actions.shape).num_uniforms

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """See ``Policy.act``: draws from the policy."""
        draws = make_action_draws(actions.num_choices, actions.shape)
        action, log_prob = draws.draw(outputs["policy"], uniforms)
        return {"action": action, "behaviour_log_prob": log_prob}

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """See ``Policy.act_greedily``: the likeliest action."""
        draws = make_action_draws(actions.num_choices, actions.shape)
        return {"action": draws.greedy(outputs["policy"])}

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """See ``EnvironmentAgent.acting_to_score``: drawn, as in training."""
        return Acting(mode="sampled" if spec.protocol else "greedy")

    def own_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.own_tensors``."""
        return {"behaviour_log_prob": TensorSpec()}

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """See ``EnvironmentAgent.layout``."""
        has_memory = any(not name.startswith(FRAMES) for name in state)
        length = self.unroll_length or (_MEMORY_UNROLL if has_memory else _UNROLL)
        return ItemLayout(
            num_steps=length + 1,
            period=length,
            is_closed=True,
            state=dict(state),
        )
