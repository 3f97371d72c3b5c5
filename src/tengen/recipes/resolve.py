"""The config of a new run, before there is one: a recipe's, with a call's settings."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from tengen.agents import History
from tengen.agents.stages import num_begun
from tengen.errors import UsageError
from tengen.overrides import override
from tengen.recipes.registry import USUAL_THREADS, make_config
from tengen.roles import RunConfig, stages_schema
from tengen.run import RunDirectory

__all__ = ["fresh_config", "grows_by_recipe", "identity", "resolved", "sets"]

# Since this schema run.json has the stages for every budget.
_STAGES_SCHEMA = 3


def fresh_config(
    task: str,
    agent: str | None,
    recipe: str | None,
    settings: Sequence[str],
    *,
    minutes: float | None,
    games: int | None,
    frames: int | None,
    num_threads: int = USUAL_THREADS,
) -> RunConfig:
    """Returns the recipe's config of a new run, with the network of ``--set``.

    Args:
        task: A game or an environment.
        agent: None for the task's own.
        recipe: None for the task's own.
        settings: The call's ``--set`` settings; only the network and the budget count.
        minutes: The call's budget.
        games: The call's budget in games; the config is then the same on any machine.
            With 0 the run begins with the last network of ``minutes``, or of the
            config's own minutes.
        frames: The call's budget in environment steps; 0 has the effect of 0 games.
        num_threads: Cores to use.

    Raises:
        UsageError: One of them is refused.
    """
    fresh = make_config(task, agent, recipe)
    asked = override(_with_own_net(fresh, settings), settings).minutes
    if not games:
        fresh = make_config(task, agent, recipe, num_threads)
    if games == 0 or frames == 0:
        # Roles that run alone have no budget, so stages cannot begin at a share of it.
        given = asked if minutes is None else minutes
        if not sets(settings, "net", "agent.stages"):
            fresh = _made_for(fresh, given * num_threads)
    return _with_own_net(fresh, settings)


def _with_own_net(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a recipe's config with the network of ``--set``, and fitting stages.

    Stages of the recipe that are no larger than that network are left out; all stages
    are left out if the network cannot grow.

    Args:
        config: The recipe's.
        settings: The call's ``--set`` settings; only those of the network count.
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
    """Returns the config changed to begin with the last network of a budget.

    Args:
        config: The config of a new run.
        core_minutes: The budget.
    """
    if config.games is None:
        return config
    end = History(core_minutes=core_minutes, in_all=core_minutes)
    net = config.nets[num_begun(config.stages, end)]
    return dataclasses.replace(config, net=net, agent=config.games.growing_from(net))


def grows_by_recipe(run: RunDirectory, known: RunConfig, fresh: RunConfig) -> RunConfig:
    """Returns a config, with its recipe's stages if an earlier version wrote it.

    Earlier versions wrote only the stages of the first call's budget, mostly none. The
    run's own stages stay: stages of the recipe are added only where the run's stages
    are the recipe's first ones.

    Args:
        run: The run.
        known: Its config.
        fresh: Its recipe's.
    """
    if fresh.games is None or stages_schema(run.read_run()) >= _STAGES_SCHEMA:
        return known
    theirs = fresh.games.growing_from(known.net).stages
    own = [stage.net for stage in known.stages]
    if own != [stage.net for stage in theirs[: len(own)]]:
        return known
    return _with_agent(known, stages=theirs)


def resolved(fresh: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a new run's config, with every setting of its call applied.

    Raises:
        UsageError: A setting is refused.
    """
    config = override(fresh, settings)
    given, kept = identity(config), identity(fresh)
    for name, wanted in given.items():
        if wanted != kept[name]:
            raise UsageError(
                f"{name} ({wanted}) must not be set; give it as an argument"
            )
    return config


def identity(config: RunConfig) -> dict[str, str]:
    """Returns the fields that are given as arguments and that a run never changes."""
    return {"task": config.task, "agent": config.agent.kind, "recipe": config.recipe}


def sets(settings: Sequence[str], *fields: str) -> bool:
    """Returns whether a ``--set`` setting names one of the fields, or a part of one."""
    paths = [setting.partition("=")[0].strip() for setting in settings]
    return any(f"{path}.".startswith(f"{field}.") for path in paths for field in fields)
