"""The weights of AlphaZero's losses."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields

__all__ = ["AlphaZeroLossConfig"]


@dataclass(frozen=True, kw_only=True)
class AlphaZeroLossConfig:
    """What the losses of a row are, and what they weigh."""

    masks_illegal: bool = True
    """Whether the policy is learned among the legal actions alone. If not, that illegal
    ones are improbable is learned too."""
    value_loss: Literal["cross_entropy", "squared"] = "cross_entropy"
    """How the value is learned: by the cross-entropy of win, draw and loss, or by the
    squared error of p(win) - p(loss) (Silver et al. 2018)."""
    value_cost: float = bounded(1.0, 0, None, "use 0 for none")
    """Weight of the value loss beside the policy loss, at least 0."""
    search_value_share: float = bounded(
        0.3, 0, 1, rule="must be in [0, 1]; use 0 for the outcome alone"
    )
    """Share of the search's value in the value target, in [0, 1]; the rest is the
    game's outcome. The outcome is unbiased, the search's value has less noise."""
    reply_cost: float = bounded(0.15, 0, None, "use 0 for none")
    """Weight of the opponent's reply, at least 0; this and the next ones where the
    network has auxiliary heads (KataGo's 0.15)."""
    horizons_cost: float = bounded(0.6, 0, None, "use 0 for none")
    """Weight of the values some plies on, all three together, at least 0 (KataGo's 0.72
    each)."""
    ownership_cost: float = bounded(1.5, 0, None, "use 0 for none")
    """Weight of who owns each cell at the end, at least 0 (KataGo's 1.5)."""
    score_cost: float = bounded(0.02, 0, None, "use 0 for none")
    """Weight of the distribution of the score and of its sums, at least 0 (KataGo's
    0.02 each)."""
    mean_score_cost: float = bounded(0.0015, 0, None, "use 0 for none")
    """Weight of the squared error of the mean score in points, at least 0 (KataGo's
    0.0015)."""
    lead_cost: float = bounded(0.006, 0, None, "use 0 for none")
    """Weight of the squared error of the lead in points, in the rows that have one, at
    least 0; where the network has a head for it, ``net.lead`` (KataGo's 0.006)."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
