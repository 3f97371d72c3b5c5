"""AlphaZero's update, which computes the losses of game rows, and its settings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from tengen.bounds import bounded, check_fields
from tengen.learners.update import LossParts, Update

if TYPE_CHECKING:
    from torch import Tensor

    from tengen.nets import Auxiliary, BoardNet, Net


@dataclass(frozen=True, kw_only=True)
class AlphaZeroLossConfig:
    """Settings of AlphaZero's losses, with weights relative to the policy loss."""

    masks_illegal: bool = True
    """Whether the policy loss covers only the legal actions. If not, it covers all
    actions, and the network learns to give illegal actions a low probability."""
    value_loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    """The loss of the value: the cross-entropy of win, draw and loss, or the squared
    error of p(win) - p(loss) (Silver et al. 2018)."""
    value_cost: float = bounded(1.0, 0, None, "use 0 for none")
    """Weight of the value loss relative to the policy loss, at least 0."""
    search_value_share: float = bounded(
        0.3, 0, 1, rule="must be in [0, 1]; use 0 for the outcome alone"
    )
    """Weight of the search's value in the value target, in [0, 1]; the outcome has the
    remaining weight. A larger weight reduces the target's noise, but adds bias."""
    reply_cost: float = bounded(0.15, 0, None, "use 0 for none")
    """Weight of the loss of the opponent's reply, at least 0 (0.15 in KataGo). The
    weights of auxiliary losses, such as this one, apply only if the network has
    auxiliary heads (``net.auxiliary``)."""
    horizons_cost: float = bounded(0.6, 0, None, "use 0 for none")
    """Weight of the sum of the losses of the values at three horizons, at least 0
    (0.72 for each in KataGo)."""
    ownership_cost: float = bounded(1.5, 0, None, "use 0 for none")
    """Weight of the loss of the cells' owners at the end of the game, at least 0
    (1.5 in KataGo)."""
    score_cost: float = bounded(0.02, 0, None, "use 0 for none")
    """Weight of the losses of the score's distribution and cumulative distribution, at
    least 0 (0.02 for both in KataGo)."""
    mean_score_cost: float = bounded(0.0015, 0, None, "use 0 for none")
    """Weight of the Huber loss of the mean score in points, at least 0 (0.0015 in
    KataGo)."""
    lead_cost: float = bounded(0.006, 0, None, "use 0 for none")
    """Weight of the Huber loss of the lead in points, at least 0 (0.006 in KataGo). The
    loss applies to rows that have a lead, if the network predicts it (``net.lead``)."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)


class AlphaZeroUpdate(Update):
    """The policy's cross-entropy plus weighted losses of value and auxiliary targets.

    Columns for B rows: planes ``[B, C, H, W]`` float32; legal ``[B, A]`` uint8; policy
    ``[B, A]`` float32; policy_weight ``[B]`` float32; outcome ``[B, 3]`` float32, win,
    draw and loss for the side to move; search_value ``[B]`` float32, for the side to
    move; value_weight ``[B]`` float32.

    Columns of auxiliary targets, for a network with auxiliary heads, all float32: reply
    ``[B, A]``, reply_weight ``[B]`` and horizons ``[B, N]``; in games with a score also
    ownership ``[B, H, W]``, score ``[B]``, final_weight ``[B]``, lead ``[B]`` and
    lead_weight ``[B]`` (core/records/game_rows.h).
    """

    def __init__(self, config: AlphaZeroLossConfig) -> None:
        """Creates an update with the losses and weights of ``config``."""
        self._config = config

    def loss(self, net: Net, columns: dict[str, Tensor]) -> LossParts:
        """See ``Update.loss``; ``net`` must be a ``BoardNet``."""
        from tengen import losses

        board_net = cast("BoardNet", net)
        auxiliary: Auxiliary | None = None
        if "reply" in columns:
            learning = board_net.learn(columns["planes"])
            policy_logits, value_logits, auxiliary = learning
        else:
            policy_logits, value_logits = board_net(columns["planes"])
        legal = columns["legal"] if self._config.masks_illegal else None
        policy_loss = losses.policy_cross_entropy(
            policy_logits, legal, columns["policy"]
        )
        policy_loss = (columns["policy_weight"] * policy_loss).mean()
        is_squared = self._config.value_loss == "squared"
        loss_of_values = (
            losses.value_squared_error if is_squared else losses.value_cross_entropy
        )
        value_loss = loss_of_values(
            value_logits,
            columns["outcome"],
            columns["search_value"],
            self._config.search_value_share,
        )
        value_loss = (columns["value_weight"] * value_loss).mean()
        loss = policy_loss + self._config.value_cost * value_loss
        metrics = {
            "policy_loss": policy_loss,
            "value_loss": value_loss,
            "policy_accuracy": losses.policy_accuracy(
                policy_logits,
                columns["legal"],
                columns["policy"],
                columns["policy_weight"],
            ),
            "value_accuracy": losses.value_accuracy(
                value_logits, columns["outcome"], columns["value_weight"]
            ),
        }
        if auxiliary is not None:
            for name, (cost, rows) in self._auxiliary(auxiliary, columns).items():
                metrics[name] = rows.mean()
                loss = loss + cost * metrics[name]
        return LossParts(loss, metrics)

    def _auxiliary(
        self, auxiliary: Auxiliary, columns: dict[str, Tensor]
    ) -> dict[str, tuple[float, Tensor]]:
        """Returns the weight and the values ``[B]`` of each auxiliary loss, by name."""
        from tengen import losses

        config = self._config
        board = columns["planes"][:, 0]
        reply = losses.reply_cross_entropy(auxiliary.reply, board, columns["reply"])
        horizons = losses.horizon_cross_entropy(auxiliary.horizons, columns["horizons"])
        weighed = {
            "reply_loss": (config.reply_cost, columns["reply_weight"] * reply),
            "horizons_loss": (
                config.horizons_cost,
                columns["value_weight"] * horizons,
            ),
        }
        if auxiliary.ownership is None:
            return weighed
        assert auxiliary.score is not None
        assert auxiliary.mean_score is not None
        weight, score = columns["final_weight"], columns["score"]
        ownership = losses.ownership_cross_entropy(
            auxiliary.ownership, board, columns["ownership"]
        )
        exact, sums = losses.score_losses(auxiliary.score, score)
        mean = losses.mean_score_huber(auxiliary.mean_score, score)
        weighed |= {
            "ownership_loss": (config.ownership_cost, weight * ownership),
            "score_loss": (config.score_cost, weight * (exact + sums)),
            "mean_score_loss": (config.mean_score_cost, weight * mean),
        }
        if auxiliary.lead is not None:
            lead = losses.lead_huber(auxiliary.lead, columns["lead"])
            weighed["lead_loss"] = (config.lead_cost, columns["lead_weight"] * lead)
        return weighed
