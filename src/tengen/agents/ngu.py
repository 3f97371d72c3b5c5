"""NGU: R2D2 with a family of policies, from exploring to exploiting.

Source: Badia et al. 2020, "Never Give Up: Learning Directed Exploration Strategies"
(arXiv:2002.06038). Policy j of P maximises the environment's rewards plus beta_j times
the intrinsic rewards, with discount gamma_j. Intrinsic rewards are large for states
that are new in the episode, as a memory of the actor finds, and in the run, as a
network's prediction error finds. The policies share one network, whose input is the
policy's number.

Differs from the paper: n-step double Q-learning as in R2D2, not Retrace; the copies of
the environment take the policies in turn, one for each episode; part of the sequences
are learned for another policy than the one that acted; the network does not see the
last intrinsic reward; new sequences have the maximum recent priority; the novelty in an
episode is at most 1, see ``tengen.actors.EpisodicMemory``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, cast

import numpy as np
from numpy.typing import NDArray

from tengen import envs
from tengen.actors import INTRINSIC, Behaviour, EpisodicMemory, InTurn, Selector, Slots
from tengen.agents.bases.unrolls import network_inputs, random_weights, time_major
from tengen.agents.r2d2 import R2d2, R2d2Update
from tengen.bounds import bounded
from tengen.config import check
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LossParts
from tengen.tensors import EMBEDDING, NOVELTY, POLICY, Signature, TensorSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from tengen.nets import Net
    from tengen.nets.modules.novelty import CuriousNet

_NUM_FEATURES = 32
_NUM_INVERSE_UNITS = 128
_INVERSE = "inverse."
_PREDICTED = "predictor_weight"
# Maximum number of remembered steps of all copies: 1.3 GB.
_MOST_REMEMBERED = 10_000_000


@dataclass(frozen=True, kw_only=True)
class Ngu(R2d2):
    """Settings of NGU; the module docstring gives the source and the differences."""

    kind: Literal["ngu"] = "ngu"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    fixed: ClassVar[tuple[str, ...]] = (*R2d2.fixed, "num_policies")
    also_called: ClassVar[tuple[str, ...]] = ("never-give-up",)
    is_single: ClassVar[bool] = True

    unroll_length: int = 20
    """Number of steps with a loss in a sequence, 1 to 100,000 (80 in the paper). With
    20, the learner makes twice as many optimizer steps per frame as with R2D2's 40."""
    burn_in: int = 10
    """Number of burn-in steps at the start of a sequence, 0 to 100,000."""
    period: int = 10
    """Number of steps between the starts of successive sequences, 1 to
    ``unroll_length``."""
    num_policies: int = bounded(8, 2, 256)
    """Number P of policies, 2 to 256 (32 in the paper)."""
    beta: float = bounded(0.3, 0, None, "use 0.3")
    """Weight of intrinsic rewards for the policy that explores most, at least 0. Policy
    0 has weight 0."""
    least_discount: float = bounded(0.99, 0, 1)
    """Discount factor per step of the policy that explores most, 0 to ``discount``.
    Policy 0 has ``discount``."""
    num_neighbours: int = bounded(10, 1, 1_000)
    """Number of nearest neighbours in the episode from which novelty is computed, 1 to
    1,000."""
    memory_steps: int = bounded(5_000, 1, 1_000_000)
    """Number of steps of an episode that the actor remembers, 1 to 1,000,000 (30,000 in
    the paper), for all copies together at most 10,000,000. Comparing with them takes
    time at every step, and each takes 132 bytes of memory."""
    predicted_share: float = bounded(0.1, 0, 1, above=True)
    """Probability that a sequence trains the predictor of novelty when it is sampled;
    above 0, at most 1. With a smaller share, observations stay novel for longer."""
    relabelled_share: float = bounded(0.5, 0, 1)
    """Probability that a sequence is learned for a random policy instead of the one
    that acted, in [0, 1]. With more, policies learn more from each other."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        check(
            self.least_discount <= self.discount,
            "least_discount",
            self.least_discount,
            f"must be at most discount ({self.discount}); lower it",
        )
        self._check_copies("memory_steps", _MOST_REMEMBERED)

    def _check_copies(self, name: str, most: int) -> None:
        """Raises UsageError if all copies together have more than ``most``."""
        num_envs = self.actor.num_envs
        check(
            num_envs * getattr(self, name) <= most,
            name,
            getattr(self, name),
            f"must be at most {most // num_envs} with {num_envs} copies of the "
            f"environment; lower it, or lower agent.actor.num_envs",
        )

    def for_environment(self, spec: EnvSpec) -> Self:
        """Returns R2D2's agent for the environment, with this agent's discount.

        R2D2's discount for screens would be that of the policy that explores most.
        """
        agent = super().for_environment(spec)
        return dataclasses.replace(agent, discount=self.discount)

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns R2D2's outputs, ``EMBEDDING`` and ``NOVELTY``."""
        embedding = TensorSpec(shape=(_NUM_FEATURES,))
        own = {EMBEDDING: embedding, NOVELTY: TensorSpec()}
        return {**super().outputs_of(actions), **own}

    def inputs_of(self, spec: EnvSpec) -> dict[str, TensorSpec]:
        """Returns R2D2's inputs and ``POLICY``; see ``EnvironmentAgent``."""
        policy = TensorSpec(shape=(self.num_policies,))
        return {**super().inputs_of(spec), POLICY: policy}

    @classmethod
    def acting_settings(cls, signature: Signature) -> dict[str, Any]:
        """See ``EnvironmentAgent.acting_settings``."""
        (num_policies,) = signature.inputs[POLICY].shape
        return {**super().acting_settings(signature), "num_policies": num_policies}

    def behaviour(self, slots: Slots, seed: int) -> Behaviour:
        """See ``EnvironmentAgent.behaviour``."""
        memory = EpisodicMemory(slots.count, self.memory_steps, self.num_neighbours)
        selector = self.selector(slots, seed)
        return Behaviour(selector, memory, slots.count, self.num_policies)

    def selector(self, slots: Slots, seed: int) -> Selector:
        """Returns the object that chooses the policies of the copies' episodes.

        Args:
            slots: The range of the copies among all copies of the run.
            seed: Seed of random choices, 0 to 2^64 - 1.
        """
        return InTurn(slots, self.num_policies)

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """See ``Policy.act``; without a behaviour, ``INTRINSIC`` is 0."""
        novelty = outputs.get(INTRINSIC, np.zeros(len(uniforms), np.float32))
        return {**super().act(outputs, actions, uniforms, slots), INTRINSIC: novelty}

    def told(self, values: NDArray[np.float32], action: NDArray[np.int64]) -> Arrays:
        """Returns no columns; new items have the maximum recent priority."""
        return {}

    def own_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.own_tensors``."""
        return {INTRINSIC: TensorSpec()}

    def priority_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns no columns; see ``told``."""
        return {}

    def betas(self) -> NDArray[np.float64]:
        """Returns the weight of intrinsic rewards of each policy, ``[P]``."""
        last = self.num_policies - 1
        betas = np.zeros(self.num_policies)
        betas[last] = self.beta
        for j in range(1, last):
            place = 10.0 * (2 * j - (last - 1)) / (last - 1)
            betas[j] = self.beta / (1.0 + math.exp(-place))
        return betas

    def discounts(self) -> NDArray[np.float64]:
        """Returns the discount of each policy, ``[P]``, evenly in log(1 - discount)."""
        shares = np.linspace(0.0, 1.0, self.num_policies)
        ends = np.maximum(1.0 - np.array([self.discount, self.least_discount]), 1e-12)
        first, last = np.log(ends)
        return np.asarray(1.0 - np.exp(first + shares * (last - first)))

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> NguUpdate:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return NguUpdate(self, net, store, envs.env_spec(task).actions)


class NguUpdate(R2d2Update):
    """R2D2's update with the rewards and discount of each sequence's policy.

    The loss also trains the embedding, to predict the action between two observations,
    and the predictor of novelty. A batch has the columns of ``R2d2Update``, and
    ``POLICY`` and ``INTRINSIC``.
    """

    def __init__(
        self, agent: Ngu, net: Net, store: ReplayConfig, actions: ActionSpec
    ) -> None:
        """Creates the target network and the layers that predict actions."""
        import torch
        from torch import nn

        super().__init__(agent, net, store)
        self._settings = agent
        self._betas = torch.tensor(agent.betas(), dtype=torch.float32)
        self._discounts = torch.tensor(agent.discounts(), dtype=torch.float32)
        (num_choices,) = actions.num_choices
        self.inverse = nn.Sequential(
            nn.Linear(2 * _NUM_FEATURES, _NUM_INVERSE_UNITS),
            nn.ReLU(),
            nn.Linear(_NUM_INVERSE_UNITS, num_choices),
        )
        self.parts[_INVERSE] = self.inverse

    def parameters(self) -> list[Tensor]:
        """See ``Update.parameters``."""
        return list(self.inverse.parameters())

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``."""
        super().place(device, dtype)
        self._betas = self._betas.to(device)
        self._discounts = self._discounts.to(device)

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Changes the policy of some sequences, and chooses those of the predictor."""
        import torch

        policy = columns[POLICY]
        num_rows, num_policies = len(policy), policy.shape[-1]
        # Sample on the CPU, because checkpoints save the CPU generator's state.
        place = self.group.place(num_rows)
        numbers = torch.rand(place.total, 2)[place.first :][:num_rows]
        other = (numbers[:, 1] * num_policies).long().clamp(max=num_policies - 1)
        other = torch.nn.functional.one_hot(other, num_policies).to(policy)
        is_other = numbers[:, 0] < self._settings.relabelled_share
        is_other = is_other.to(policy.device)[:, None, None]
        yield {
            **columns,
            POLICY: torch.where(is_other, other[:, None], policy),
            _PREDICTED: random_weights(
                self.group, num_rows, self._settings.predicted_share, policy.device
            ),
        }

    def goals(self, learned: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Returns the rewards and discounts of each step's policy; see ``R2d2Update``.

        An action's intrinsic reward is the novelty of the observation after it.
        """
        policy = learned[POLICY][:-1]
        intrinsic = (policy @ self._betas) * learned[INTRINSIC][1:]
        return learned["reward"][:-1] + intrinsic, policy @ self._discounts

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """Adds the losses of embedding and predictor; see ``R2d2Update.loss``."""
        import torch
        from torch.nn import functional

        from tengen.nets.modules.net import unflat

        found = self.q_loss(net, columns)
        burn_in = self._settings.burn_in
        steps = {n: c[burn_in:] for n, c in time_major(columns).items()}
        inputs, _ = network_inputs(net, columns)
        rows = {n: c[burn_in:].flatten(0, 1) for n, c in inputs.items()}
        judged = cast("CuriousNet", net).judge(rows)
        embedding = unflat(judged.embedding, steps["is_reset"].shape)
        pairs = torch.cat([embedding[:-1], embedding[1:]], -1)
        is_live = (steps["is_reset"][:-1] == 0).float()
        action = steps["action"][:-1].flatten()
        logits = self.inverse(pairs).flatten(0, 1)
        inverse = functional.cross_entropy(logits, action, reduction="none")
        metrics = {
            **found.metrics,
            "inverse_loss": (inverse * is_live.flatten()).mean(),
            "novelty": judged.errors.mean(),
            "intrinsic_reward": steps[INTRINSIC].mean(),
        }
        errors = unflat(judged.errors, embedding.shape[:2])
        predictor = (errors * columns[_PREDICTED]).mean()
        loss = found.loss + metrics["inverse_loss"] + predictor
        return found._replace(loss=loss, metrics=metrics)
