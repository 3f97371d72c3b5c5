"""Learners: one loop for every agent, and the losses that tell agents apart.

Importing this package imports no torch before a learner's name is used, because
processes that only read configs live without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tengen.learners.config import (
    AdamWConfig,
    AlphaZeroConfig,
    LearnerConfig,
    LossConfig,
    OptimizerConfig,
    SgdConfig,
    VtraceConfig,
)

if TYPE_CHECKING:
    from tengen.learners.alphazero import AlphaZeroLoss
    from tengen.learners.checkpoint import load_checkpoint, save_checkpoint
    from tengen.learners.loop import Learner, LearnerState
    from tengen.learners.loss import Loss
    from tengen.learners.make import make_loss
    from tengen.learners.vtrace import VtraceLoss

__all__ = [
    "AdamWConfig",
    "AlphaZeroConfig",
    "AlphaZeroLoss",
    "Learner",
    "LearnerConfig",
    "LearnerState",
    "Loss",
    "LossConfig",
    "OptimizerConfig",
    "SgdConfig",
    "VtraceConfig",
    "VtraceLoss",
    "load_checkpoint",
    "make_loss",
    "save_checkpoint",
]

_TORCH_NAMES = {
    "AlphaZeroLoss": "alphazero",
    "Learner": "loop",
    "LearnerState": "loop",
    "Loss": "loss",
    "VtraceLoss": "vtrace",
    "load_checkpoint": "checkpoint",
    "make_loss": "make",
    "save_checkpoint": "checkpoint",
}


def __getattr__(name: str) -> Any:
    if name not in _TORCH_NAMES:
        raise AttributeError(f"module 'tengen.learners' has no attribute {name!r}")
    module = importlib.import_module(f"tengen.learners.{_TORCH_NAMES[name]}")
    return getattr(module, name)
