"""The weights of AlphaZero's losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields

__all__ = ["AlphaZeroLossConfig"]


@dataclass(frozen=True, kw_only=True)
class AlphaZeroLossConfig:
    """Which losses a row has, and their weights.

    Every weight is relative to the policy loss, whose weight is 1.
    """

    masks_illegal: bool = True
    """Whether the policy loss covers the legal actions alone. If not, it covers all
    actions, and the network also learns to give illegal ones little probability."""
    value_loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    """How the value is learned: by the cross-entropy of win, draw and loss, or by the
    squared error of p(win) - p(loss) (Silver et al. 2018)."""
    value_cost: float = bounded(1.0, 0, None, "use 0 for none")
    """Weight of the value loss relative to the policy loss, at least 0."""
    search_value_share: float = bounded(
        0.3, 0, 1, rule="must be in [0, 1]; use 0 for the outcome alone"
    )
    """Share of the search's value in the value target, in [0, 1]; the rest is the
    game's outcome. A larger share means less noise and more bias."""
    reply_cost: float = bounded(0.15, 0, None, "use 0 for none")
    """Weight of the loss of the opponent's reply, at least 0 (KataGo: 0.15). This
    weight and those below count only where the network has auxiliary heads,
    ``net.auxiliary``."""
    horizons_cost: float = bounded(0.6, 0, None, "use 0 for none")
    """Weight of the losses of the three values some plies ahead, together; at least 0
    (KataGo: 0.72 each)."""
    ownership_cost: float = bounded(1.5, 0, None, "use 0 for none")
    """Weight of the loss of who owns each cell at the end of the game, at least 0
    (KataGo: 1.5)."""
    score_cost: float = bounded(0.02, 0, None, "use 0 for none")
    """Weight of the losses of the score's distribution and cumulative distribution, at
    least 0 (KataGo: 0.02 each)."""
    mean_score_cost: float = bounded(0.0015, 0, None, "use 0 for none")
    """Weight of the Huber loss of the mean score in points, at least 0 (KataGo:
    0.0015)."""
    lead_cost: float = bounded(0.006, 0, None, "use 0 for none")
    """Weight of the Huber loss of the lead in points, at least 0 (KataGo: 0.006). It
    counts in rows that have a lead, where the network has a head for it,
    ``net.lead``."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
