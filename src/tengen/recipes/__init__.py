"""Recipes, which return the complete config of a run, and ``tengen train``."""

from __future__ import annotations

from tengen.recipes.registry import Recipe, make_config, recipes

__all__ = ["Recipe", "make_config", "recipes"]
