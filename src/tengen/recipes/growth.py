"""Which network a run begins with, and the stages in which it grows."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tengen.agents import History
from tengen.overrides import override
from tengen.roles import RunConfig, stages_schema
from tengen.run import RunDirectory

__all__ = ["grows_by_recipe", "made_for", "with_own_net"]

# Since this schema run.json has the stages for every budget.
_STAGES_SCHEMA = 3


def with_own_net(config: RunConfig, settings: Sequence[str]) -> RunConfig:
    """Returns a recipe's config with the network of ``--set``, and fitting stages.

    Stages of the recipe that are no larger than that network are left out; all stages
    are left out if the network cannot grow.

    Args:
        config: The recipe's.
        settings: The call's ``--set`` settings; only those of the network count.
    """
    paths = [setting.partition("=")[0].strip() for setting in settings]
    own = [
        setting
        for path, setting in zip(paths, settings, strict=True)
        if path == "net" or path.startswith("net.")
    ]
    first = override(
        dataclasses.replace(config, agent=config.agent.without_stages()), own
    ).net
    return dataclasses.replace(
        config, net=first, agent=config.agent.growing_from(first)
    )


def made_for(config: RunConfig, core_minutes: float) -> RunConfig:
    """Returns the config changed to begin with the last network of a budget.

    Args:
        config: The config of a new run.
        core_minutes: The budget.
    """
    end = History(core_minutes=core_minutes, in_all=core_minutes)
    net = config.nets[config.agent.num_stages_begun(end)]
    return dataclasses.replace(config, net=net, agent=config.agent.growing_from(net))


def grows_by_recipe(run: RunDirectory, known: RunConfig, fresh: RunConfig) -> RunConfig:
    """Returns a config, with its recipe's stages if an earlier version wrote it.

    Earlier versions wrote only the stages of the first call's budget, mostly none.

    Args:
        run: The run.
        known: Its config.
        fresh: Its recipe's.
    """
    if stages_schema(run.read_run()) >= _STAGES_SCHEMA:
        return known
    agent = known.agent.growing_as(fresh.agent, known.net)
    return dataclasses.replace(known, agent=agent)
