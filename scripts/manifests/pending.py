"""What manifests name and this version of tengen does not have yet.

A recipe stands for another one until it is there, and so do the settings that come with
it; a command is not looked at. Once tengen has them nothing here has an effect.
"""

from __future__ import annotations

from collections.abc import Sequence

from tengen.cli import COMMANDS
from tengen.recipes import recipes

__all__ = ["is_pending", "stand_in"]

_RECIPES = {"mlperf_minigo": "go", "mlperf_minigo_small": "go"}
_SETTINGS = ("agent.target.",)
_COMMANDS = ("data",)


def is_pending(words: Sequence[str]) -> bool:
    """Returns whether a command line is of a command that is to come."""
    known = {one.name.split()[0] for one in COMMANDS}
    return bool(words) and words[0] in _COMMANDS and words[0] not in known


def stand_in(
    recipe: str | None, settings: Sequence[str]
) -> tuple[str | None, list[str]]:
    """Returns the recipe and the settings that stand for those of a command."""
    known = {one.name for one in recipes()}
    if recipe is None or recipe in known or recipe not in _RECIPES:
        return recipe, list(settings)
    kept = [one for one in settings if not one.startswith(_SETTINGS)]
    return _RECIPES[recipe], kept
