"""Computes the config of a new run from a recipe and the settings of a call."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tengen.agents import History
from tengen.agents.bases.stages import num_begun
from tengen.errors import UsageError
from tengen.overrides import override
from tengen.recipes.registry import USUAL_THREADS, make_config
from tengen.roles import RunConfig
from tengen.roles.config.run_file import stages_schema
from tengen.run import RunDirectory

# The first schema version whose run.json contains the stages for all budgets.
_STAGES_SCHEMA = 3


def fresh_config(
    task: str,
    agent: str | None,
    recipe: str | None,
    settings: Sequence[str],
    *,
    seconds: float | None,
    games: int | None,
    frames: int | None,
    num_threads: int = USUAL_THREADS,
) -> RunConfig:
    """Returns a recipe's config for a new run, with the network settings of ``--set``.

    Args:
        task: A game or an environment.
        agent: The agent; None for the task's default.
        recipe: The recipe; None for the task's default.
        settings: The call's ``--set`` settings; only network and budget are used.
        seconds: The wall time that the call's budget takes if it keeps all cores busy.
        games: The call's budget in games, which makes the config independent of the
            machine. With 0, the run starts with the network that a run of ``seconds``
            (by default the config's minutes) would end with.
        frames: The call's budget in environment steps; 0 acts like ``games`` of 0.
        num_threads: Number of cores to use.

    Raises:
        UsageError: An argument or a setting is invalid.
    """
    fresh = make_config(task, agent, recipe)
    asked = override(_with_own_net(fresh, settings), settings).minutes
    if not games:
        fresh = make_config(task, agent, recipe, num_threads)
    if games == 0 or frames == 0:
        # Standalone roles have no budget, so no stage can begin at a share of it.
        given = asked if seconds is None else seconds / 60
        if not sets(settings, "net", "agent.stages"):
            fresh = _made_for(fresh, given * num_threads)
    return _with_own_net(fresh, settings)


def _with_own_net(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a recipe's config with the network settings, and stages that fit it.

    Removes stages whose networks are not larger than the first network, and all stages
    if the first network cannot grow.

    Args:
        config: The recipe's config.
        settings: The call's ``--set`` settings; only network settings are used.
    """
    own = [setting for setting in settings if sets([setting], "net")]
    if config.games is None:
        return override(config, own)
    first = override(_with_agent(config, stages=()), own).net
    agent = config.games.growing_from(first)
    return dataclasses.replace(config, net=first, agent=agent)


def _with_agent(config: RunConfig, **changes: Any) -> RunConfig:
    assert config.games is not None
    agent = dataclasses.replace(config.games, **changes)
    return dataclasses.replace(config, agent=agent)


def _made_for(config: RunConfig, core_minutes: float) -> RunConfig:
    """Returns the config with the last network of a budget as its initial network.

    Args:
        config: The config of a new run.
        core_minutes: The budget in core-minutes.
    """
    if config.games is None:
        return config
    end = History(core_minutes=core_minutes, in_all=core_minutes)
    net = config.nets[num_begun(config.stages, end)]
    return dataclasses.replace(config, net=net, agent=config.games.growing_from(net))


def grows_by_recipe(run: RunDirectory, known: RunConfig, fresh: RunConfig) -> RunConfig:
    """Returns a config, with the recipe's stages added if an old version wrote it.

    Old versions wrote only the stages for the first call's budget, usually none. The
    recipe's stages are used only if the run's stages are a prefix of them.

    Args:
        run: The run.
        known: The run's config.
        fresh: The config of the run's recipe.
    """
    if fresh.games is None or stages_schema(run.read_run()) >= _STAGES_SCHEMA:
        return known
    theirs = fresh.games.growing_from(known.net).stages
    own = [stage.net for stage in known.stages]
    if own != [stage.net for stage in theirs[: len(own)]]:
        return known
    return _with_agent(known, stages=theirs)


def resolved(fresh: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a new run's config with all settings of its call applied.

    Raises:
        UsageError: A setting is invalid.
    """
    config = override(fresh, settings)
    given, kept = identity(config), identity(fresh)
    for name, wanted in given.items():
        if wanted != kept[name]:
            raise UsageError(
                f"{name} ({wanted}) must not be in settings; give it as an argument"
            )
    return config


def identity(config: RunConfig) -> dict[str, str]:
    """Returns the fields that never change in a run: task, agent and recipe."""
    return {"task": config.task, "agent": config.agent.kind, "recipe": config.recipe}


def sets(settings: Sequence[str], *fields: str) -> bool:
    """Returns whether a ``--set`` setting changes one of the fields or a subfield."""
    paths = [setting.partition("=")[0].strip() for setting in settings]
    return any(f"{path}.".startswith(f"{field}.") for path in paths for field in fields)
