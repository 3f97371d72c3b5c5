"""Opening the run's table: a window of games, what was drawn from it, or unrolls."""

from __future__ import annotations

from collections.abc import Mapping
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
    ShuffledRows,
    UnrollQueue,
    WindowConfig,
    check_window_memory,
)

__all__ = ["lack", "open_table", "open_unrolls", "open_window"]

_UNROLLS = "unrolls"


def open_table(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: dict[str, Any] | None,
) -> ExperienceTable:
    """Opens the learner's table, restored to ``state``.

    Raises:
        UsageError: The table belongs to another process.
        RunError: A segment is missing or damaged, or the memory does not suffice.
    """
    if not isinstance(config.store, WindowConfig):
        return open_unrolls(config, run, context, state)
    if config.store.drawn_by == "shuffle":
        return ShuffledRows(config.task, run.shuffled, state)
    return open_window(config, run, state)


def open_window(
    config: RunConfig, run: RunDirectory, state: Mapping[str, Any] | None
) -> GameWindow:
    """Opens the window of games, restored to ``state``.

    Raises:
        UsageError: The run has none.
        RunError: A segment is missing or damaged, or the memory does not suffice.
    """
    if not isinstance(config.store, WindowConfig):
        raise UsageError(f"store ({config.store.kind}) must be a window of games")
    check_window_memory(config.task, run.experience, config.store, state)
    return GameWindow(
        config.task,
        run.experience,
        config.store,
        config.seed,
        state,
        auxiliary=config.net.kind == "resnet" and config.net.auxiliary,
    )


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


def lack(config: RunConfig, table: ExperienceTable) -> str:
    """Returns what a table lacks that does not allow a batch, and what to do."""
    available, batch = table.samples_available(), config.learner.batch_size
    rule = f"must be at least learner.batch_size ({batch})"
    if isinstance(table, ShuffledRows):
        return f"shuffled samples ({available}) {rule}; run tengen shuffle"
    if not isinstance(table, GameWindow):
        return f"unrolls ({available}) {rule}; play more, by tengen train"
    least = table.config.min_rows
    if table.num_rows < least:
        return (
            f"rows ({table.num_rows}) must be at least store.min_rows ({least}); "
            f"play more"
        )
    return (
        f"samples ({available}) that store.limiter allows {rule}; play more, or raise "
        f"store.limiter.samples_per_row"
    )
