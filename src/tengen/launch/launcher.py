"""The interface of a launcher, which starts role processes somewhere.

``inline`` and ``local`` start processes of this machine, ``ray`` actors of a Ray
cluster, ``mpi`` processes beside ranks. A launcher is one file, and only it knows its
cluster. When each role works is decided by a schedule.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from tengen.errors import TengenError
from tengen.roles import RoleResources

__all__ = [
    "Handle",
    "Launcher",
    "OnDeath",
    "OnProgress",
    "close_all",
]

OnProgress = Callable[[dict[str, Any]], None]
"""Called with a role's progress report during a turn."""
OnDeath = Callable[[str, str], None]
"""Called with a role, and how its process died, before it is started again."""


class Handle(Protocol):
    """A process with some roles, which is started again when it dies."""

    @property
    def roles(self) -> tuple[str, ...]:
        """The roles of the process."""

    def turn(
        self,
        role: str,
        on_progress: OnProgress,
        on_death: OnDeath,
        details: Mapping[str, Any],
    ) -> dict[str, Any] | None:
        """Runs one turn to its end and returns its report; None: nothing to do. Blocks.

        Used by one thread. A process that dies is started again with growing pauses and
        its turn is redone, which a role makes safe.

        Args:
            role: One of ``roles``.
            on_progress: Called with the role's progress.
            on_death: Called for each death of the process.
            details: As for ``RoleHost.turn``; the same when the turn is redone.

        Raises:
            RunError: The role failed, or died again and again.
            UsageError: The role refused its config or its files.
        """

    def stop(self) -> None:
        """Asks the process to end its turn and leave. Does not block; any thread.

        A turn that goes on, or that begins later, returns ``{"stopped": True}`` unless
        it has another report.
        """

    def kill(self) -> None:
        """Kills the process at once, if there is one. Does not block; any thread."""

    def close(self) -> None:
        """Stops the process, waits until it has saved, and kills it if it lingers.

        Raises:
            RunError: A role could not save, or its process ended before it had.
        """


def close_all(handles: Iterable[Handle]) -> None:
    """Closes every handle, whatever one of them raises.

    Raises:
        RunError: The first error, unless the caller is already raising one.
    """
    is_failing = sys.exc_info()[1] is not None
    errors = []
    for handle in handles:
        try:
            handle.close()
        except TengenError as error:
            errors.append(error)
    if errors and not is_failing:
        raise errors[0]


class Launcher(Protocol):
    """Starts processes of one run."""

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> Handle:
        """Returns the handle of a new process, which may begin with its first turn.

        Args:
            roles: The roles that it hosts.
            num_threads: Threads that each of its roles may use, at least 1.
            resources: What a cluster reserves for it.
            index: Which of several with these roles, from 0.

        Raises:
            TengenError: There is no room for another process.
        """
