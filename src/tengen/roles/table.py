"""The learner's end of the store, whichever table the run has."""

from __future__ import annotations

from typing import Any, Protocol

from tengen.actors import EnvironmentActorConfig, unroll_schema
from tengen.envs import env_spec
from tengen.errors import RunError, UsageError
from tengen.roles.config import RunConfig
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory
from tengen.store import GameWindow, QueueConfig, Table, UnrollQueue, WindowConfig

__all__ = ["LearnerTable", "open_table", "open_unrolls"]

_UNROLLS = "unrolls"


class LearnerTable(Protocol):
    """A table as the role ``learn`` sees it."""

    @property
    def table(self) -> Table:
        """What batches are drawn from."""

    @property
    def generation(self) -> int:
        """The newest generation in it."""

    def refresh(self) -> int:
        """Takes in what arrived; returns how many rows or items."""

    def samples_available(self) -> int:
        """Samples that may be drawn now."""

    def state(self) -> dict[str, Any]:
        """JSON values that restore it."""

    def saved(self, state: dict[str, Any]) -> None:
        """Lets go of what a durable checkpoint of ``state`` makes unneeded."""

    def describe(self) -> dict[str, Any]:
        """What it holds, for the view."""

    def close(self) -> None:
        """Releases it."""


def open_table(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: dict[str, Any] | None,
) -> LearnerTable:
    """Opens the run's table, restored to ``state``.

    Raises:
        UsageError: The table belongs to another process.
        RunError: A segment is missing or damaged.
    """
    if isinstance(config.store, WindowConfig):
        return _Games(config, run, state)
    return _Unrolls(config, run, context, state)


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
            run.new_incarnation(_UNROLLS),
            unroll_schema(env_spec(config.task), config.actor.unroll_length),
            config.store,
            state,
        )
    queue = context.tables[_UNROLLS]
    assert isinstance(queue, UnrollQueue)
    return queue


class _Games:
    """Sealed games of every writer, in a window."""

    def __init__(
        self, config: RunConfig, run: RunDirectory, state: dict[str, Any] | None
    ) -> None:
        assert isinstance(config.store, WindowConfig)
        self._window = GameWindow(
            config.task, run.experience, config.store, config.seed, state
        )

    @property
    def table(self) -> Table:
        return self._window

    @property
    def generation(self) -> int:
        return self._window.generation

    def refresh(self) -> int:
        return self._window.refresh()

    def samples_available(self) -> int:
        return self._window.samples_available()

    def state(self) -> dict[str, Any]:
        return self._window.state()

    def saved(self, state: dict[str, Any]) -> None:
        """Nothing: games stay, for people and for later windows."""

    def describe(self) -> dict[str, Any]:
        return {
            "num_games": self._window.num_games,
            "num_rows": self._window.num_rows,
            "window_rows": self._window.window_rows,
        }

    def close(self) -> None:
        return None


class _Unrolls:
    """Unrolls in order, each learned from once; the actor shares the process."""

    def __init__(
        self,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
        state: dict[str, Any] | None,
    ) -> None:
        self._queue = open_unrolls(config, run, context, state)
        self._seen = 0
        self._turns = 0

    @property
    def table(self) -> Table:
        return self._queue

    @property
    def generation(self) -> int:
        return self._turns

    def refresh(self) -> int:
        arrived = self._queue.num_items
        self._turns += arrived > 0
        return arrived

    def samples_available(self) -> int:
        return self._queue.samples_available()

    def state(self) -> dict[str, Any]:
        return self._queue.state()

    def saved(self, state: dict[str, Any]) -> None:
        self._queue.trim(state)

    def describe(self) -> dict[str, Any]:
        return {"num_items": self._queue.num_items}

    def close(self) -> None:
        self._queue.close()
