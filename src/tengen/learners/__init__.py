"""Learners: one loop for all agents, each of which defines its own update.

Importing this package does not import torch, because processes that only read configs
do not need it. The first use of a learner's name does.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tengen.learners.config import (
    AdamWConfig,
    LearnerConfig,
    OptimizerConfig,
    SgdConfig,
)
from tengen.learners.update import LossParts, Update

if TYPE_CHECKING:
    from tengen.learners.checkpoint import load_checkpoint, save_checkpoint
    from tengen.learners.loop import Learner, LearnerState

__all__ = [
    "AdamWConfig",
    "Learner",
    "LearnerConfig",
    "LearnerState",
    "LossParts",
    "OptimizerConfig",
    "SgdConfig",
    "Update",
    "load_checkpoint",
    "save_checkpoint",
]

_TORCH_NAMES = {
    "Learner": "loop",
    "LearnerState": "loop",
    "load_checkpoint": "checkpoint",
    "save_checkpoint": "checkpoint",
}


def __getattr__(name: str) -> Any:
    if name not in _TORCH_NAMES:
        raise AttributeError(f"module 'tengen.learners' has no attribute {name!r}")
    module = importlib.import_module(f"tengen.learners.{_TORCH_NAMES[name]}")
    return getattr(module, name)
