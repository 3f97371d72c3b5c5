"""Agent57: NGU with two values, and a bandit that chooses the policy of an episode.

Source: Badia et al. 2020, "Agent57: Outperforming the Atari Human Benchmark"
(arXiv:2003.13350). The network has one set of Q values for the environment's rewards
and one for intrinsic rewards; policy j prefers actions by their sum with weights 1 and
beta_j. Each copy of the environment has a bandit that finds the policies with the
highest returns. Kapturowski et al. 2022, "Human-level Atari 200x faster"
(arXiv:2209.07550), for dividing the TD errors of each value by their running root mean
square, and for one torso of both values.

Differs from the papers: as NGU does; both values are heads of one network with one
recurrent state; all policies share the discounts of NGU; the bandit's bonus is in units
of the range of returns; evaluation uses policy 0, which ignores intrinsic rewards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tengen import envs
from tengen.actors import INTRINSIC, Bandit, Slots, is_legal
from tengen.agents.bases.policy_update import RunningSquare
from tengen.agents.bases.q_agent import (
    LEAST_PRIORITY,
    q_values,
    signed_hyperbolic,
    signed_parabolic,
)
from tengen.agents.bases.unrolls import learned_outputs, time_major
from tengen.agents.ngu import Ngu, NguUpdate
from tengen.bounds import bounded
from tengen.config import check
from tengen.envs import ActionSpec, Arrays
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LossParts
from tengen.tensors import ILLEGAL, POLICY, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net

# Prefixes of the outputs of the two values, and of their metrics.
_HEADS = ("", "intrinsic_")
_LEAST_SCALE = 0.01
_SCALES = "td_scales"
# Maximum number of returns in the windows of all copies: a file of about 10 MB.
_MOST_RETURNS = 400_000


@dataclass(frozen=True, kw_only=True)
class Agent57(Ngu):
    """Settings of Agent57; the module docstring gives sources and differences."""

    kind: Literal["agent57"] = "agent57"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    also_called: ClassVar[tuple[str, ...]] = ()

    bandit_window: int = bounded(90, 1, 100_000)
    """Number of a copy's last episodes from which its bandit chooses policies, 1 to
    100,000, for all copies together at most 400,000. A shorter window adapts faster to
    changes, but its means are noisier."""
    bandit_epsilon: float = bounded(0.5, 0, 1)
    """Probability with which the bandit takes a random policy, in [0, 1]."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        check(
            self.bandit_window >= self.num_policies,
            "bandit_window",
            self.bandit_window,
            f"must be at least num_policies ({self.num_policies}); raise it",
        )
        self._check_copies("bandit_window", _MOST_RETURNS)

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns NGU's outputs, and those of the intrinsic Q values."""
        outputs = super().outputs_of(actions)
        own = {_HEADS[1] + n: outputs[n] for n in self._value_names}
        return {**outputs, **own}

    @property
    def _value_names(self) -> tuple[str, ...]:
        return ("value", "advantage") if self.is_duelling else ("q",)

    def selector(self, slots: Slots, seed: int) -> Bandit:
        """Returns the copies' bandits; see ``Ngu.selector``."""
        return Bandit(
            slots,
            self.num_policies,
            window=self.bandit_window,
            epsilon=self.bandit_epsilon,
            seed=seed,
        )

    def values_of(self, outputs: Arrays) -> NDArray[np.float32]:
        """Returns the mixed Q values; without ``POLICY``, those of policy 0."""
        extrinsic = super().values_of(outputs)
        if POLICY not in outputs:
            return extrinsic
        own = {n: outputs[_HEADS[1] + n] for n in self._value_names}
        beta = (outputs[POLICY] @ self.betas())[:, None]
        epsilon = self.rescaling_epsilon
        mixed = signed_parabolic(extrinsic.astype(np.float64), epsilon)
        intrinsic = super().values_of(own).astype(np.float64)
        mixed += beta * signed_parabolic(intrinsic, epsilon)
        mixed = signed_hyperbolic(mixed, epsilon)
        return np.where(is_legal(extrinsic), mixed, ILLEGAL).astype(np.float32)

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """See ``Policy.act_greedily``."""
        return {"action": self.values_of(outputs).argmax(axis=1).astype(np.int64)}

    def make_update(
        self, task: str, net: Net, store: ExperienceConfig
    ) -> Agent57Update:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return Agent57Update(self, net, store, envs.env_spec(task).actions)


class Agent57Update(NguUpdate):
    """NGU's update with a loss for each of the two values.

    Both bootstrap from the action that their sum prefers. Priorities are those of the
    sum of both absolute TD errors, each divided by its scale, with the weights 1 and
    beta of the sequence's policy.
    """

    def __init__(
        self, agent: Agent57, net: Net, store: ReplayConfig, actions: ActionSpec
    ) -> None:
        """Creates the target network, and the scales of the two TD errors."""
        super().__init__(agent, net, store, actions)
        self._squares = {head: RunningSquare(_LEAST_SCALE) for head in _HEADS}

    def q_loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Returns the sum of the losses of both values; see ``R2d2Update``."""
        import torch

        from tengen import losses

        agent, steps = self._settings, time_major(columns)
        outputs, inputs = learned_outputs(net, columns, agent.burn_in)
        online = {head: q_values(_of(head, outputs), inputs) for head in _HEADS}
        with torch.no_grad():
            outputs, _ = learned_outputs(self.target, columns, agent.burn_in)
            target = {head: q_values(_of(head, outputs), inputs) for head in _HEADS}
        learned = {n: c[agent.burn_in :] for n, c in steps.items()}
        policy = learned[POLICY]
        beta = policy @ self._betas
        mixed = losses.mixed_values(
            online[_HEADS[0]],
            online[_HEADS[1]],
            beta=beta[..., None],
            rescaling_epsilon=agent.rescaling_epsilon,
        )
        rewards = (learned["reward"][:-1], learned[INTRINSIC][1:])
        is_live = learned["is_reset"][:-1] == 0
        weights = columns.get("importance_weight", 1.0)
        parts, sizes = [], []
        metrics: dict[str, Tensor] = {}
        for head, reward in zip(_HEADS, rewards, strict=True):
            targets = losses.n_step_targets(
                reward=reward,
                terminated=learned["terminated"][:-1],
                is_reset=learned["is_reset"],
                bootstrap=losses.double_q_values(mixed, target[head]),
                num_steps=agent.num_steps,
                discount=policy[:-1] @ self._discounts,
                rescaling_epsilon=agent.rescaling_epsilon,
            )
            q = online[head]
            errors = is_live * losses.td_errors(q[:-1], learned["action"][:-1], targets)
            scaled = errors / self._squares[head].root
            parts.append((losses.td_loss(scaled).mean(0) * weights).mean())
            sizes.append(scaled.abs())
            metrics[head + "td_error"] = errors.abs().mean()
            metrics[head + "td_square"] = errors.detach().square().mean()
            metrics[head + "q"] = q.max(-1).values.mean()
        priorities = losses.sequence_priorities(
            sizes[0] + beta[:-1] * sizes[1], is_live, agent.eta
        )
        return LossParts(parts[0] + parts[1], metrics, priorities + LEAST_PRIORITY)

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """See ``Update.stepped``."""
        super().stepped(net, num_steps, metrics)
        for head, square in self._squares.items():
            square.observe(metrics[head + "td_square"])

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        import torch

        numbers = [square.numbers() for square in self._squares.values()]
        scales = torch.tensor(numbers, dtype=torch.float64)
        return {**super().state(), _SCALES: scales}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        super().load_state(tensors)
        for square, numbers in zip(
            self._squares.values(), tensors[_SCALES].tolist(), strict=True
        ):
            square.load(numbers)


def _of(head: str, outputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """Returns the outputs of one of the two values, under the names of the first."""
    names = [name for name in ("q", "value", "advantage") if name in outputs]
    return {name: outputs[head + name] for name in names}
