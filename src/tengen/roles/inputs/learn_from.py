"""Runs that learn from the games of another run, or from imported games."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tengen.agents.alphazero import AlphaZero
from tengen.config import check
from tengen.errors import UsageError
from tengen.games import open_game
from tengen.roles.config import RunConfig, read_config
from tengen.run import RunDirectory

__all__ = ["checked_imported", "checked_source", "with_games"]


def checked_imported(config: RunConfig) -> RunConfig:
    """Returns the config with ``store.imported`` as the full path of its folder.

    Raises:
        UsageError: The games are missing, too few, of another board, or in a damaged
            file.
    """
    return dataclasses.replace(config, store=config.store.checked(config.task))


def checked_source(config: RunConfig) -> RunConfig:
    """Returns the config with ``learn_from`` as the full path of a run that fits.

    Raises:
        UsageError: The folder is not a run, or its run has another task, learns from
            another run itself, or plays on boards that the network would not know.
    """
    if not config.agent.learn_from:
        return config
    agent = AlphaZero.of(config, "learn")
    source = RunDirectory.open(Path(agent.learn_from).resolve())
    _check(config, source)
    agent = dataclasses.replace(agent, learn_from=str(source.path))
    return dataclasses.replace(config, agent=agent)


def _check(config: RunConfig, source: RunDirectory) -> None:
    name, theirs = str(source.path), read_config(source)
    check(
        theirs.task == config.task,
        "agent.learn_from",
        name,
        f"must be a run of {config.task}, not of {theirs.task}; choose another one",
    )
    check(
        not theirs.agent.learn_from,
        "agent.learn_from",
        name,
        f"must have games of its own; use {theirs.agent.learn_from}, whose games it "
        "learns from",
    )
    variety = AlphaZero.of(theirs, "selfplay").actor.variety
    AlphaZero.check_boards(config.net, theirs.task, open_game(theirs.task), variety)


def with_games(config: RunConfig, run: RunDirectory) -> RunDirectory:
    """Returns the run whose experience a run's roles read.

    Raises:
        UsageError: The run of ``learn_from`` is gone, or ``checked_source`` would no
            longer accept it.
    """
    if not config.agent.learn_from:
        return run
    source = RunDirectory(config.agent.learn_from)
    if source.is_new:
        raise UsageError(
            f"agent.learn_from ({config.agent.learn_from}) is not a run directory; put "
            f"it back"
        )
    _check(config, source)
    view = RunDirectory(run.path)
    view.experience = source.experience
    return view
