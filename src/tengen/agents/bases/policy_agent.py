"""``PolicyAgent``, the base class of agents that learn a policy and sample from it."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from tengen.actors import ActionDraws, Slots, make_action_draws
from tengen.agents.bases.defaults import net_for, shows_screens
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.bounds import bounded
from tengen.envs import ActionSpec, Arrays, EnvSpec, Scale
from tengen.evaluation import Acting
from tengen.experience import ItemLayout, ReplayConfig
from tengen.nets import NetConfig
from tengen.tensors import FRAMES, SCALED_POLICY, Signature, TensorSpec

# Bounds of a scaled action are -_BOUND and _BOUND.
_BOUND = 2.0
# Action ranges with a half width between _LEAST and _MOST are not scaled.
_LEAST, _MOST = 0.5, 4.0
_UNROLL = 20
_MEMORY_UNROLL = 64
# Sample Factory's maximum lag. Actors in other processes usually lag a hundredth of it.
_MAX_LAG = 1_000


@dataclass(frozen=True, kw_only=True)
class PolicyAgent(EnvironmentAgent):
    """Base class of agents with a policy and a baseline, which learn from unrolls.

    The network outputs ``policy_output``, the flat parameters of a distribution
    (``tengen.losses.distributions``), and ``value`` ``[]``, the expected return. Each
    step stores the log-probability of the action under the acting policy. An item is an
    unroll of T transitions and a closing step, which is only for bootstrapping.
    """

    fixed: ClassVar[tuple[str, ...]] = ("sees_last_step", "scales_actions")

    unroll_length: int | None = bounded(None, 1, 100_000, "use 20")
    """Number T of transitions in an unroll, 1 to 100,000. None: 20, or 64 for a network
    with an LSTM. Backpropagation through time is truncated at the start of an unroll,
    so the network rarely learns longer dependencies."""

    trace_lambda: float = bounded(1.0, 0, 1)
    """Parameter lambda of V-trace or GAE, in [0, 1]. With 0 a target uses one reward,
    with 1 all rewards to the end of the unroll. A larger lambda reduces the bias of
    targets and increases their variance."""

    baseline_cost: float = bounded(0.5, 0, None, "use 0 for none")
    """Weight of the baseline loss relative to the policy loss, at least 0."""

    entropy_cost: float = bounded(0.01, 0, None, "use 0 for none")
    """Weight of the entropy bonus, at least 0. Raising it increases exploration."""

    max_lag: int | None = bounded(None, 0, None, "use 1000")
    """Maximum policy lag of an unroll in optimizer steps, at least 0. The learner skips
    unrolls of older policies. None: 1,000."""

    scales_actions: bool = False
    """Whether continuous actions with bounds far from -1 and 1 are sampled on a scale
    from -2 to 2, not in the environment's units. True in new runs with these bounds."""

    @property
    def lag_bound(self) -> int:
        """Maximum policy lag of an unroll: ``max_lag``, or 1,000 if it is None."""
        return _MAX_LAG if self.max_lag is None else self.max_lag

    def for_environment(self, spec: EnvSpec) -> Self:
        """See ``EnvironmentAgent.for_environment``; sets longer unrolls for screens.

        With 20 steps, as in the IMPALA paper, a return is mostly the network's value of
        the closing step, which is arbitrary at the start of training. In vizdoom/Basic,
        V-trace's policies became deterministic before the network learned this value.
        """
        agent = dataclasses.replace(
            self,
            sees_last_step=self.sees_last_step or spec.is_partial,
            scales_actions=any(_is_scaled(spec.actions)),
        )
        if not shows_screens(spec):
            return agent
        return dataclasses.replace(
            agent,
            unroll_length=64,
            trace_lambda=0.95,
            actor=dataclasses.replace(self.actor, turn_steps=64),
        )

    def default_net(self, spec: EnvSpec) -> NetConfig:
        """Returns a network with an LSTM if observations are partial; see ``net_for``.

        For continuous actions, the network always standardizes vectors, because the
        entries of a vector have different units.

        Source: Espeholt et al. 2018, "IMPALA" (arXiv:1802.01561), figure 3, for the 256
        LSTM units for screens.
        """
        net = net_for(spec, standardizes=not spec.actions.is_discrete)
        if not spec.is_partial:
            return net
        num_units = 256 if shows_screens(spec) else 64
        return dataclasses.replace(net, lstm_units=num_units)

    def default_store(self, spec: EnvSpec) -> ReplayConfig:
        """Returns a queue for two batches; see ``EnvironmentAgent.default_store``.

        The learner trains on one batch while actors produce the next. A longer queue
        would increase the policy lag.
        """
        return ReplayConfig(sampler="fifo", max_items=32)

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``."""
        # Continuous actions need a mean and a standard deviation per dimension.
        length = sum(actions.num_choices) or 2 * len(actions.low)
        return {self.policy_output: TensorSpec(shape=(length,)), "value": TensorSpec()}

    @property
    def policy_output(self) -> str:
        """Name of the network output with the parameters of the policy."""
        return SCALED_POLICY if self.scales_actions else "policy"

    def scale_of(self, actions: ActionSpec) -> Scale | None:
        """Returns the scale of actions; None if they are in the environment's units.

        Bounds far from -1 and 1 are scaled to -2 and 2. So the standard deviation of
        the initial policy, 1, is half the distance from the centre to a bound. Other
        bounds are not scaled, because scaling slowed down the learning of Hopper and
        InvertedPendulum (benchmarks/results/environments.md).

        Source: Andrychowicz et al. 2020, "What Matters In On-Policy Reinforcement
        Learning?" (arXiv:2006.05990), section 3.2, for the standard deviation.
        """
        return _scale(actions) if self.scales_actions else None

    @classmethod
    def acting_settings(cls, signature: Signature) -> dict[str, Any]:
        """See ``EnvironmentAgent.acting_settings``."""
        return {
            **super().acting_settings(signature),
            "scales_actions": SCALED_POLICY in signature.outputs,
        }

    def num_uniforms(self, actions: ActionSpec) -> int:
        """See ``Policy.num_uniforms``."""
        return self._draws(actions).num_uniforms

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """Samples actions from the policy; see ``Policy.act``."""
        draws = self._draws(actions)
        action, log_prob = draws.draw(outputs[self.policy_output], uniforms)
        return {"action": action, "behaviour_log_prob": log_prob}

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns the most probable actions; see ``Policy.act_greedily``."""
        greedy = self._draws(actions).greedy(outputs[self.policy_output])
        return {"action": greedy}

    def _draws(self, actions: ActionSpec) -> ActionDraws:
        scale = self.scale_of(actions)
        return make_action_draws(actions.num_choices, actions.shape, scale)

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """Returns greedy acting, or sampling if the environment has a protocol."""
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


def _is_scaled(actions: ActionSpec) -> list[bool]:
    """Returns whether the bounds of each action dimension are far from -1 and 1."""
    middle, half = actions.scale
    return [
        is_bounded and not (_LEAST <= reach <= _MOST and abs(at) <= reach / 2)
        for is_bounded, at, reach in zip(actions.is_bounded, middle, half, strict=True)
    ]


# Cached, because actors need the scale at every step.
@functools.cache
def _scale(actions: ActionSpec) -> Scale:
    is_scaled = np.array(_is_scaled(actions))
    middle, half = map(np.array, actions.scale)
    return Scale(
        tuple(np.where(is_scaled, middle, 0.0).tolist()),
        tuple(np.where(is_scaled, half / _BOUND, 1.0).tolist()),
    )
