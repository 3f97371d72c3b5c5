"""Checks of the target that a run's models meet."""

from __future__ import annotations

import dataclasses
from pathlib import Path

from tengen.agents.alphazero import AlphaZero
from tengen.config import check
from tengen.evaluation.targets.opponent import (
    check_typed_opponent,
    checked_opponent,
)
from tengen.evaluation.targets.records import TargetFiles
from tengen.evaluation.targets.terms import check_terms
from tengen.roles.config import RunConfig
from tengen.run import RunDirectory

__all__ = ["checked_target"]


def checked_target(
    config: RunConfig, run: RunDirectory, known: RunConfig | None, *, is_typed: bool
) -> RunConfig:
    """Returns the config with ``agent.target.opponent`` as the full path of a model.

    A RUN becomes its newest model at the first call that names the RUN: later calls
    with the same command keep this model.

    Args:
        config: The config of this call.
        run: The run.
        known: The run's config before this call; None for a new run.
        is_typed: Whether the user typed the opponent in this call.

    Raises:
        UsageError: There is no such opponent, none where one is needed, it cannot play
            the task, it is a program that was not typed, or models have already met it
            by other settings.
    """
    target = config.agent.target
    if not target.opponent:
        check(
            not target.needs_opponent,
            "agent.target.opponent",
            "empty",
            "must name whom the models meet, so that the run has a result; set it, or "
            "agent.target.needs_opponent=false to train without",
        )
        return config
    if known is not None and not is_typed:
        option = "--set agent.target.opponent="
        check_typed_opponent(target.opponent, None, run.path, option)
    agent = AlphaZero.of(config, "eval")
    kept = "" if known is None else known.agent.target.opponent
    if _is_model_of(kept, target.opponent):
        target = dataclasses.replace(target, opponent=kept)
    target = checked_opponent(target, config.task)
    agent = dataclasses.replace(agent, target=target)
    check_terms(TargetFiles(run), target, agent.play_against_target())
    return dataclasses.replace(config, agent=agent)


def _is_model_of(path: str, word: str) -> bool:
    """Returns whether a path is a model of the run that a word names."""
    return bool(path) and Path(path).parent == RunDirectory(word).models.path.resolve()
