"""The base classes of epsilon-greedy agents that learn Q values."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen.actors import Slots, is_legal, random_choices
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.bounds import bounded
from tengen.config import check_range
from tengen.envs import ActionSpec, Arrays, EnvSpec
from tengen.evaluation import Acting
from tengen.experience import ItemLayout, ReplayConfig
from tengen.learners import Update
from tengen.learners.update import load_module, module_state
from tengen.tensors import ACTION_MASK, Signature, TensorSpec

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

    from tengen.nets import Net

_MANY_COPIES = 256

LEAST_PRIORITY = 1e-6
"""Number added to every priority, so that no item has probability 0."""


@dataclass(frozen=True, kw_only=True)
class EpsilonAgent(EnvironmentAgent):
    """Base class of epsilon-greedy agents, whose network outputs Q values.

    Each copy of the environment explores with its own constant probability: copy i of
    N, counted from 0, takes a random action with probability ``epsilon ** (1 +
    epsilon_power * i / (N - 1))``. A single copy uses the mean of the probabilities of
    many copies. Each agent of a copy draws its own random numbers with the copy's
    probability.

    Source: for the probabilities Horgan et al. 2018, "Distributed Prioritized
    Experience Replay" (arXiv:1803.00933), section 4; for duelling heads Wang et al.
    2016, "Dueling Network Architectures" (arXiv:1511.06581), equation 9.
    """

    fixed: ClassVar[tuple[str, ...]] = ("sees_last_step", "is_duelling")
    draws_actions: ClassVar[bool] = False

    is_duelling: bool = True
    """Whether the network has duelling heads, ``value`` and ``advantage``, instead of
    one head ``q``."""
    epsilon: float = bounded(0.4, 0, 1)
    """Probability of a random action in the copy that explores most, in [0, 1]."""
    epsilon_power: float = bounded(7.0, 0, None, "raise it")
    """Spread of exploration over the copies, at least 0: the copy that explores least
    has probability ``epsilon ** (1 + epsilon_power)``. 0: the same in all copies."""

    @classmethod
    def refusal_of(cls, actions: ActionSpec) -> str:
        """See ``EnvironmentAgent.refusal_of``."""
        if actions.is_discrete and actions.shape == ():
            return ""
        return "it needs a single discrete action"

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``."""
        each = TensorSpec(shape=actions.num_choices)
        if self.is_duelling:
            return {"value": TensorSpec(), "advantage": each}
        return {"q": each}

    def num_uniforms(self, actions: ActionSpec) -> int:
        """Returns 2: one number decides whether to explore, one selects the action."""
        return 2

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """See ``Policy.act``."""
        greedy = self.act_greedily(outputs, actions)["action"]
        values = self.values_of(outputs)
        others = random_choices(uniforms[:, 1:], actions, is_legal(values))[:, 0]
        explores = uniforms[:, 0] < self.epsilons(slots)
        action = np.where(explores, others, greedy)
        return {"action": action, **self.told(values, action)}

    def told(self, values: NDArray[np.float32], action: NDArray[np.int64]) -> Arrays:
        """Returns the columns that ``act`` adds, ``[N]`` each; by default none.

        Args:
            values: ``[N, A]``, the Q values of all actions.
            action: ``[N]``, the actions taken.
        """
        return {}

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """See ``Policy.act_greedily``."""
        # The state value is equal for all actions, so it does not change the argmax.
        values = outputs["advantage" if self.is_duelling else "q"]
        return {"action": values.argmax(axis=1).astype(np.int64)}

    def acting_to_score(self, spec: EnvSpec) -> Acting:
        """See ``EnvironmentAgent.acting_to_score``.

        If the environment has an evaluation protocol, 1 in 1,000 actions is random.
        Otherwise all actions are greedy.
        """
        return Acting(mode="epsilon" if spec.protocol else "greedy")

    def values_of(self, outputs: Arrays) -> NDArray[np.float32]:
        """Returns the Q values ``[N, A]`` of N rows of network outputs."""
        if not self.is_duelling:
            return outputs["q"]
        advantage = outputs["advantage"]
        mean = advantage.mean(axis=1, keepdims=True, where=is_legal(advantage))
        values: NDArray[np.float32] = outputs["value"][:, None] + advantage - mean
        return values

    @classmethod
    def acting_settings(cls, signature: Signature) -> dict[str, Any]:
        """See ``EnvironmentAgent.acting_settings``."""
        return {
            **super().acting_settings(signature),
            "is_duelling": "advantage" in signature.outputs,
        }

    def epsilons(self, slots: Slots) -> NDArray[np.float64]:
        """Returns the probability of a random action in each row, ``[N]``."""
        num_copies = slots.total // slots.num_agents
        if num_copies == 1:
            shares = np.linspace(0.0, 1.0, _MANY_COPIES)
            probabilities = self.epsilon ** (1.0 + self.epsilon_power * shares)
            return np.full(slots.count, probabilities.mean())
        rows = np.arange(slots.first, slots.first + slots.count)
        share = rows // slots.num_agents / (num_copies - 1)
        return np.asarray(self.epsilon ** (1.0 + self.epsilon_power * share))


@dataclass(frozen=True, kw_only=True)
class TargetAgent(EpsilonAgent):
    """Base class of epsilon-greedy agents that learn n-step targets from a replay."""

    num_steps: int = bounded(3, 1, 1_000)
    """Number n of rewards in an n-step target before it bootstraps, 1 to 1,000. A
    larger n propagates rewards faster, but depends more on old policies."""
    target_period: int = bounded(100, 1, None, "raise it")
    """Number of optimizer steps between updates of the target network, at least 1. A
    larger period makes targets more stable and learning slower."""


@dataclass(frozen=True, kw_only=True)
class SequenceAgent(TargetAgent):
    """Base class of agents whose items are sequences of steps, as in R2D2."""

    fixed: ClassVar[tuple[str, ...]] = (
        *TargetAgent.fixed,
        "unroll_length",
        "burn_in",
        "period",
    )
    unroll_length: int = bounded(20, 1, 100_000, "use 20")
    """Number of steps with a loss in a sequence, 1 to 100,000."""
    burn_in: int = bounded(0, 0, 100_000, "use 0 without an LSTM")
    """Number of burn-in steps at the start of a sequence, 0 to 100,000; see ``r2d2``.
    Only a recurrent network needs them."""
    period: int = 20
    """Number of steps between the starts of successive sequences, 1 to
    ``unroll_length``. With half of it, each step is in two sequences."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        super().__post_init__()
        check_range("period", self.period, 1, self.unroll_length, "use half of it")

    def layout(self, state: Mapping[str, TensorSpec]) -> ItemLayout:
        """Returns items of burn-in steps, steps with a loss, and a bootstrap step."""
        return ItemLayout(
            num_steps=self.burn_in + self.unroll_length + 1,
            period=self.period,
            state=dict(state),
        )


@dataclass(frozen=True, kw_only=True)
class QAgent(TargetAgent):
    """Base class of agents whose actors compute the priorities of new items.

    The writer of steps computes them from two Q values that the actor adds to each
    step: those of the taken action and of the best action.
    """

    def told(self, values: NDArray[np.float32], action: NDArray[np.int64]) -> Arrays:
        """Returns the columns ``Q_TAKEN`` and ``Q_BEST``; see ``EpsilonAgent``."""
        taken = np.take_along_axis(values, action[:, None], axis=1)[:, 0]
        return {Q_TAKEN: taken, Q_BEST: values.max(axis=1)}

    def priority_tensors(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """Returns the columns ``Q_TAKEN`` and ``Q_BEST``; see ``EnvironmentAgent``."""
        return {Q_TAKEN: TensorSpec(), Q_BEST: TensorSpec()}


_Settings = TypeVar("_Settings", bound=TargetAgent)


class TargetUpdate(Update, Generic[_Settings]):
    """Base class of updates with a target network, a periodic copy of the network.

    ``parts`` has all modules of the update, by the prefix of their names in ``state``.
    """

    def __init__(self, agent: _Settings, net: Net, store: ReplayConfig) -> None:
        """Creates a target network equal to ``net``.

        Args:
            agent: The agent's settings.
            net: The network in training.
            store: The config of the table.
        """
        self._agent = agent
        self.importance_exponent = store.importance_exponent_of_draws
        self.target = copy.deepcopy(net).eval().requires_grad_(False)
        self.parts: dict[str, nn.Module] = {"target.": self.target}

    def place(self, device: torch.device, dtype: torch.dtype) -> None:
        """See ``Update.place``."""
        for module in self.parts.values():
            module.to(device)
        self.target.compute_dtype = dtype

    def stepped(self, net: Net, num_steps: int, metrics: Mapping[str, float]) -> None:
        """See ``Update.stepped``."""
        if num_steps % self._agent.target_period == 0:
            self.copy_to_target(net)

    def copy_to_target(self, net: Net) -> None:
        """Copies the weights of the networks in training to the target networks."""
        self.target.load_state_dict(net.state_dict())

    def state(self) -> dict[str, Tensor]:
        """See ``Update.state``."""
        states = (module_state(*part) for part in self.parts.items())
        return {name: tensor for state in states for name, tensor in state.items()}

    def load_state(self, tensors: Mapping[str, Tensor]) -> None:
        """See ``Update.load_state``."""
        for prefix, module in self.parts.items():
            load_module(prefix, module, tensors)


def q_values(outputs: dict[str, Tensor], inputs: dict[str, Tensor]) -> Tensor:
    """Returns the Q values ``[..., A]`` of an ``EpsilonAgent``'s network.

    Args:
        outputs: The outputs ``[..., A]``, ``ILLEGAL`` for illegal actions.
        inputs: The inputs for which they were computed, with the action mask.
    """
    from tengen import losses

    if "q" in outputs:
        return outputs["q"]
    mask = inputs.get(ACTION_MASK)
    return losses.dueling(outputs["value"], outputs["advantage"], mask)


Q_TAKEN = "q_taken"
"""Name of the column with the actor's Q value of the taken action."""
Q_BEST = "q_best"
"""Name of the column with the actor's maximum Q value over actions."""


def acting_errors(
    steps: Arrays,
    *,
    num_steps: int,
    discount: float,
    rescaling_epsilon: float | None = None,
) -> NDArray[np.float64]:
    """Returns the TD errors of the actor's Q values, ``[B, T - 1]``; 0 at reset steps.

    The formulas must match those of the learner (``tengen.losses.n_step_targets`` and
    ``td_errors``). The acting network serves as both the online and the target network.

    Source: Horgan et al. 2018, "Distributed Prioritized Experience Replay"
    (arXiv:1803.00933), section 3; Espeholt et al. 2020, "SEED RL" (arXiv:1910.06591),
    for using the Q values from inference without another forward pass.

    Legend: B items of T steps.

    Args:
        steps: Columns ``[B, T]``, including ``q_taken`` and ``q_best``.
        num_steps: Number n of rewards in a target, at least 1.
        discount: Discount per step, in [0, 1].
        rescaling_epsilon: Epsilon of ``signed_hyperbolic`` if the Q values are
            rescaled; otherwise None.
    """
    reached: NDArray[Any] = steps[Q_BEST][:, 1:].astype(np.float64)
    if rescaling_epsilon is not None:
        reached = signed_parabolic(reached, rescaling_epsilon)
    is_live = steps["is_reset"][:, :-1] == 0
    goes_on = steps["terminated"][:, :-1] == 0
    # Before a reset step, and at the item's end, bootstrap from the next Q value.
    is_cut = np.ones_like(is_live)
    is_cut[:, :-1] = ~is_live[:, 1:]
    follows = reached
    for _ in range(num_steps):
        following = np.where(goes_on, discount * follows, 0.0)
        returns = steps["reward"][:, :-1] + following
        follows = np.where(is_cut, reached, np.roll(returns, -1, axis=1))
    if rescaling_epsilon is not None:
        returns = signed_hyperbolic(returns, rescaling_epsilon)
    return np.where(is_live, returns - steps[Q_TAKEN][:, :-1], 0.0)


def signed_hyperbolic(x: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Does ``tengen.losses.signed_hyperbolic``."""
    rescaled: NDArray[np.float64] = (
        np.sign(x) * (np.sqrt(np.abs(x) + 1.0) - 1.0) + epsilon * x
    )
    return rescaled


def signed_parabolic(y: NDArray[np.float64], epsilon: float) -> NDArray[np.float64]:
    """Does ``tengen.losses.signed_parabolic``."""
    root = np.sqrt(1.0 + 4.0 * epsilon * (np.abs(y) + 1.0 + epsilon))
    back: NDArray[np.float64] = np.sign(y) * (
        np.square((root - 1.0) / (2.0 * epsilon)) - 1.0
    )
    return back
