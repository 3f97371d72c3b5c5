"""IQN: DQN that learns quantiles of the return distribution at random fractions.

Source: Dabney et al. 2018, "Implicit Quantile Networks for Distributional Reinforcement
Learning" (arXiv:1806.06923), algorithm 1.

Replay, exploration, n-step targets and double Q-learning are those of ``dqn``, with the
differences from the papers that its module lists.

Further differences from the paper: the loss uses 8 sampled fractions, not 64, which the
paper found nearly as good (figure 2); the fractions are a stratified sample of (0, 1),
so that priorities depend more on errors than on the fractions; actions are chosen with
quantiles at 32 fixed fractions, the midpoints of equal intervals, not at 32 sampled
fractions, so that equal inputs give equal actions; the means of these quantiles also
give the priorities of new items. ``tengen.nets.modules.layers`` lists the differences
of the head.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.agents.bases.q_agent import LEAST_PRIORITY
from tengen.agents.bases.unrolls import answer_legally
from tengen.agents.dqn import Dqn, DqnUpdate
from tengen.bounds import bounded
from tengen.envs import ActionSpec, Arrays
from tengen.experience import ExperienceConfig, ReplayConfig
from tengen.learners import LossParts
from tengen.tensors import FRACTIONS, QUANTILES, TensorSpec

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Net


@dataclass(frozen=True, kw_only=True)
class Iqn(Dqn):
    """Settings of IQN: those of DQN, without duelling heads, plus the quantiles."""

    kind: Literal["iqn"] = "iqn"  # type: ignore[assignment]
    """The agent's name, as in ``--agent``."""
    fixed: ClassVar[tuple[str, ...]] = (*Dqn.fixed, "num_quantiles")
    also_called: ClassVar[tuple[str, ...]] = ()

    num_quantiles: int = bounded(32, 1, 1_000)
    """Number K of quantiles whose mean is an action's value when acting, 1 to 1,000."""
    num_fractions: int = bounded(8, 1, 1_000)
    """Number of fractions per transition for the predicted quantiles, and as many for
    the targets, 1 to 1,000: stratified samples of (0, 1). With more fractions learning
    is more stable, but a step takes longer."""

    def outputs_of(self, actions: ActionSpec) -> dict[str, TensorSpec]:
        """See ``EnvironmentAgent.outputs_of``."""
        return {QUANTILES: TensorSpec(shape=(self.num_quantiles, *actions.num_choices))}

    def values_of(self, outputs: Arrays) -> NDArray[np.float32]:
        """Returns the mean of each action's quantiles; see ``QAgent.values_of``."""
        values: NDArray[np.float32] = outputs[QUANTILES].mean(axis=1)
        return values

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns the actions with the highest ``values_of``; see ``Policy``."""
        return {"action": self.values_of(outputs).argmax(axis=1)}

    def make_update(self, task: str, net: Net, store: ExperienceConfig) -> IqnUpdate:
        """See ``Agent.make_update``."""
        assert isinstance(store, ReplayConfig)
        return IqnUpdate(self, net, store)


class IqnUpdate(DqnUpdate):
    """IQN's update, with the quantile Huber loss of n-step targets.

    The columns of a batch are those of ``DqnUpdate``.
    """

    def __init__(self, agent: Iqn, net: Net, store: ReplayConfig) -> None:
        """Creates the update, with a target network equal to ``net``."""
        super().__init__(agent, net, store)
        self._num_fractions = agent.num_fractions

    def minibatches(
        self, net: Net, columns: dict[str, Tensor]
    ) -> Iterator[dict[str, Tensor]]:
        """Yields the batch with sampled fractions added; see ``Update.minibatches``."""
        import torch

        action = columns["action"]
        # Sample on the CPU, because checkpoints save the state of the CPU's generator.
        place = self.group.place(len(action))
        places = torch.rand(place.total, 2, self._num_fractions)
        places = places[place.first :][: len(action)]
        parts = torch.arange(self._num_fractions)
        drawn = (parts + places) / self._num_fractions
        yield {**columns, FRACTIONS: drawn.to(action.device)}

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``."""
        import torch

        from tengen import losses
        from tengen.nets.modules.standard import uncounted

        fractions = columns[FRACTIONS]
        rows = self.ends(net, columns)
        first, state = rows.first
        at = {**first, FRACTIONS: fractions[:, 0]}
        answers = answer_legally(net, at, state)[0][QUANTILES]
        chosen = rows.action[:, None, None].expand(-1, answers.shape[1], 1)
        quantiles = answers.gather(-1, chosen).squeeze(-1)
        with torch.no_grad(), uncounted(net):
            last, before = rows.last
            online = answer_legally(net, last, before)[0][QUANTILES]
            best = online.mean(1).argmax(-1)
            at = {**last, FRACTIONS: fractions[:, 1]}
            reached = answer_legally(self.target, at, before)[0][QUANTILES]
            taken = best[:, None, None].expand(-1, reached.shape[1], 1)
            values = reached.gather(-1, taken).squeeze(-1)
            targets = losses.product_or_zero(rows.discount[:, None], values)
            targets = targets + rows.reward[:, None]
        weights = columns.get("importance_weight", 1.0)
        loss = losses.quantile_huber_loss(quantiles, fractions[:, 0], targets)
        errors = (targets.mean(1) - quantiles.detach().mean(1)).abs()
        metrics = {
            "td_error": errors.mean(),
            "q": answers.mean(1).max(-1).values.mean(),
        }
        return LossParts((loss * weights).mean(), metrics, errors + LEAST_PRIORITY)
