"""The loss of search-guided self-play on rows of the game store."""

from __future__ import annotations

from torch import Tensor, nn

from tengen.learners.config import AlphaZeroConfig
from tengen.learners.losses.alphazero import policy_cross_entropy, value_cross_entropy

__all__ = ["AlphaZeroLoss"]


class AlphaZeroLoss:
    """Policy cross-entropy plus weighted value cross-entropy.

    Columns, B rows: planes ``[B, C, H, W]`` float32; legal ``[B, A]`` uint8; policy
    ``[B, A]`` float32; policy_weight ``[B]`` float32; outcome ``[B, 3]`` float32, win
    draw loss to play; search_value ``[B]`` float32 to play; value_weight ``[B]``
    float32.
    """

    def __init__(self, config: AlphaZeroConfig) -> None:
        """Makes the loss."""
        self._config = config

    def __call__(
        self, net: nn.Module, columns: dict[str, Tensor]
    ) -> tuple[Tensor, dict[str, Tensor]]:
        """Returns the loss, and its parts as metrics.

        Args:
            net: A board network.
            columns: As in the class docstring.
        """
        policy_logits, value_logits = net(columns["planes"])
        policy_loss = policy_cross_entropy(
            policy_logits, columns["legal"], columns["policy"]
        )
        policy_loss = (columns["policy_weight"] * policy_loss).mean()
        value_loss = value_cross_entropy(
            value_logits,
            columns["outcome"],
            columns["search_value"],
            self._config.search_value_share,
        )
        value_loss = (columns["value_weight"] * value_loss).mean()
        loss = policy_loss + self._config.value_cost * value_loss
        return loss, {"policy_loss": policy_loss, "value_loss": value_loss}
