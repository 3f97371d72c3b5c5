"""The config that a call of ``tengen train`` gives a new run, without the run."""

from __future__ import annotations

from collections.abc import Sequence

from tengen.recipes.resolve import (
    check_arguments,
    check_budget,
    fresh_config,
    resolved,
    with_arguments,
)
from tengen.roles import RunConfig


def new_config(
    task: str,
    *,
    agent: str | None = None,
    recipe: str | None = None,
    launch: str | None = None,
    actors: int | None = None,
    minutes: float | None = None,
    games: int | None = None,
    frames: int | None = None,
    seed: int | None = None,
    settings: Sequence[str] = (),
) -> RunConfig:
    """Returns the config that a call would give a new run; reads and writes no file.

    The arguments are those of ``train_task``, which makes the same config. Files that
    the config names are not looked for.

    Raises:
        UsageError: One of them is refused.
    """
    check_arguments(launch, actors, minutes, games, frames)
    settings = with_arguments(settings, actors, seed)
    fresh = fresh_config(
        task, agent, recipe, settings, minutes=minutes, games=games, frames=frames
    )
    config = resolved(fresh, settings)
    check_budget(config, games, frames)
    config.agent.check_task(config)
    return config
