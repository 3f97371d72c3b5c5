"""Recipes: functions that return the config of a whole run, and what runs one."""

from __future__ import annotations

from tengen.recipes.registry import RECIPES, Recipe, make_config
from tengen.recipes.resources import Resources
from tengen.recipes.run import train_task as train

__all__ = ["RECIPES", "Recipe", "Resources", "make_config", "train"]
