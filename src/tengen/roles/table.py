"""Opening the run's table, a window of games or a queue of unrolls."""

from __future__ import annotations

from typing import Any

from tengen.actors import EnvironmentActorConfig, unroll_columns, unroll_counts
from tengen.envs import env_spec
from tengen.errors import RunError, UsageError
from tengen.roles.config import RunConfig
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory
from tengen.store import (
    ExperienceTable,
    GameWindow,
    QueueConfig,
    UnrollQueue,
    WindowConfig,
)

__all__ = ["open_table", "open_unrolls"]

_UNROLLS = "unrolls"


def open_table(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: dict[str, Any] | None,
) -> ExperienceTable:
    """Opens the run's table, restored to ``state``.

    Raises:
        UsageError: The table belongs to another process.
        RunError: A segment is missing or damaged.
    """
    if isinstance(config.store, WindowConfig):
        return GameWindow(
            config.task,
            run.experience,
            config.store,
            config.seed,
            state,
            auxiliary=config.net.kind == "resnet" and config.net.auxiliary,
        )
    return open_unrolls(config, run, context, state)


def open_unrolls(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: dict[str, Any] | None = None,
) -> UnrollQueue:
    """Returns this process's queue of unrolls, opened by whoever asks first.

    Raises:
        UsageError: The run has none, or another process has it.
    """
    if not isinstance(config.store, QueueConfig):
        raise UsageError(f"store ({config.store.kind}) must be a queue of unrolls")
    if _UNROLLS not in context.tables:
        if state is None and run.checkpoints.latest() is not None:
            # Without the learner's state, what was learned from would come again.
            raise RunError(
                "role (actor) must share a process with learn; start it there"
            )
        assert isinstance(config.actor, EnvironmentActorConfig)
        context.tables[_UNROLLS] = UnrollQueue(
            run.experience / _UNROLLS,
            unroll_columns(env_spec(config.task), config.actor.unroll_length),
            config.store,
            unroll_counts,
            state,
        )
    queue = context.tables[_UNROLLS]
    assert isinstance(queue, UnrollQueue)
    return queue
