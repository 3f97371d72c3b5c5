"""Which processes exist, and where; ``train`` is the whole product in one call."""

from __future__ import annotations

from tengen.launch.command import train_task as train

__all__ = ["train"]
