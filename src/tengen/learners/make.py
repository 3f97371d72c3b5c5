"""From a config to its loss."""

from __future__ import annotations

from tengen.learners.alphazero import AlphaZeroLoss
from tengen.learners.config import LossConfig, VtraceConfig
from tengen.learners.loss import Loss
from tengen.learners.vtrace import VtraceLoss

__all__ = ["make_loss"]


def make_loss(config: LossConfig) -> Loss:
    """Returns the loss that ``config`` describes."""
    if isinstance(config, VtraceConfig):
        return VtraceLoss(config)
    return AlphaZeroLoss(config)
