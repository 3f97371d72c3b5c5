"""The learner loop for all agents; each agent defines its own ``Update``.

Importing this package does not import torch, because processes that only read configs
do not need torch. The first access to ``Learner`` imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tengen.learners.checkpoint import load_checkpoint, save_checkpoint
from tengen.learners.config import (
    AdamWConfig,
    LearnerConfig,
    OptimizerConfig,
    SgdConfig,
)
from tengen.learners.update import LossParts, Update

if TYPE_CHECKING:
    from tengen.learners.loop import Learner

__all__ = [
    "AdamWConfig",
    "Learner",
    "LearnerConfig",
    "LossParts",
    "OptimizerConfig",
    "SgdConfig",
    "Update",
    "load_checkpoint",
    "save_checkpoint",
]


def __getattr__(name: str) -> Any:
    if name != "Learner":
        raise AttributeError(f"module 'tengen.learners' has no attribute {name!r}")
    return importlib.import_module("tengen.learners.loop").Learner
