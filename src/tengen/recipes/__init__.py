"""Recipes: functions that return the config of a whole run."""

from __future__ import annotations

from tengen.recipes.registry import RECIPES, Recipe, default_agent, make_config

__all__ = ["RECIPES", "Recipe", "default_agent", "make_config"]
