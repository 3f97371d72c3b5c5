"""Runs that learn from the games of another run."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tengen.actors import SelfplayConfig
from tengen.config import check
from tengen.errors import UsageError
from tengen.games import make
from tengen.roles.config import RunConfig, read_config
from tengen.run import RunDirectory

__all__ = ["checked_source", "with_games"]


def checked_source(config: RunConfig) -> RunConfig:
    """Returns the config with ``learn_from`` as a full path, of a run that fits.

    Raises:
        UsageError: It is no run, or one of another task, or learns from another itself,
            or plays on boards that the network would not know.
    """
    if not config.learn_from:
        return config
    source = RunDirectory.open(Path(config.learn_from).resolve())
    _check(config, source)
    return dataclasses.replace(config, learn_from=str(source.path))


def _check(config: RunConfig, source: RunDirectory) -> None:
    name, theirs = str(source.path), read_config(source)
    check(
        theirs.task == config.task,
        "learn_from",
        name,
        f"must be a run of {config.task}, not of {theirs.task}; choose another one",
    )
    check(
        not theirs.learn_from,
        "learn_from",
        name,
        f"must have games of its own; use {theirs.learn_from}, from which it learns",
    )
    if isinstance(theirs.actor, SelfplayConfig):
        config.check_boards(make(theirs.task), theirs.actor.variety)


def with_games(config: RunConfig, run: RunDirectory) -> RunDirectory:
    """Returns the run with the experience that its roles read.

    Raises:
        UsageError: ``learn_from`` is not there any more, or has come to be another run
            than ``checked_source`` lets pass.
    """
    if not config.learn_from:
        return run
    source = RunDirectory(config.learn_from)
    if source.is_new:
        raise UsageError(
            f"learn_from ({config.learn_from}) is not a run directory; put it back"
        )
    _check(config, source)
    view = RunDirectory(run.path)
    view.experience = source.experience
    return view
