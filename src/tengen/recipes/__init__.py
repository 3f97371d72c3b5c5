"""Recipes, which return the complete config of a run, and ``tengen train``."""

from __future__ import annotations

from tengen.recipes.registry import Recipe, make_config, recipes
from tengen.recipes.run import train_task, warn_unlearned

__all__ = ["Recipe", "make_config", "recipes", "train_task", "warn_unlearned"]
