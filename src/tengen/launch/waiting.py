"""Which processes of a call wait for room in a cluster, and for how long they may.

A cluster begins a process once it has room for it. That may be never, if the run is too
large for the cluster or a host was lost. A role that the run cannot do without is
waited for only for a limited time. The same holds for acting processes if none of them
has room.
"""

from __future__ import annotations

from collections.abc import Sequence

from tengen.errors import RunError
from tengen.launch.workers import Worker
from tengen.roles import LaunchConfig, Schedule

__all__ = ["Waiting"]


class Waiting:
    """Used by one thread at a time.

    Args:
        schedule: The run's.
        launch: The run's launch config, which says how long a needed role may wait.
    """

    def __init__(self, schedule: Schedule, launch: LaunchConfig) -> None:
        self._needed = {*schedule.learning, schedule.serving}
        # One of these processes suffices while the others wait.
        self._acting = (schedule.acting,)
        self._most_minutes = launch.wait_minutes
        # By process the seconds that it had waited at its last report.
        self._seconds: dict[str, float] = {}
        self._had_room: set[str] = set()
        self._told: list[str] = []

    def note(self, worker: Worker, seconds: float | None) -> None:
        """Notes that a process waits, or has room.

        Args:
            worker: The process.
            seconds: How long it has waited; None: it has room.
        """
        if seconds is not None:
            self._seconds[worker.name] = seconds
            return
        self._seconds.pop(worker.name, None)
        self._had_room.add(worker.name)

    def forget(self, worker: Worker) -> None:
        """Notes that a process has left."""
        self._seconds.pop(worker.name, None)

    def news(self) -> list[str] | None:
        """Returns the names of waiting processes; None if they are as before."""
        names = list(self._seconds)
        if names == self._told:
            return None
        self._told = names
        return names

    def check(self, workers: Sequence[Worker]) -> None:
        """Makes sure that the run can go on.

        Args:
            workers: All processes that are to work.

        Raises:
            RunError: A role that the run needs has waited for too long.
        """
        needed = self._needed_of(workers)
        spans = [self._seconds[one.name] for one in needed if one.roles != self._acting]
        acting = [
            self._seconds[one.name] for one in needed if one.roles == self._acting
        ]
        if acting:
            # The time since none of them works: before, some may have waited for long.
            spans.append(min(acting))
        if max(spans, default=0.0) >= 60 * self._most_minutes:
            raise RunError(
                f"role ({_names(needed)}) has had no room in the cluster for "
                f"{self._most_minutes:g} minutes; see ray status, free some, add hosts "
                "or raise launch.wait_minutes, then run the same command to go on"
            )

    def check_end(self, workers: Sequence[Worker]) -> None:
        """Makes sure at the end of the budget that nothing was missing.

        Args:
            workers: As for ``check``.

        Raises:
            RunError: A role that the run needs waits, perhaps since the start.
        """
        needed = self._needed_of(workers)
        if needed:
            had_room = any(one.name in self._had_room for one in needed)
            raise RunError(
                f"role ({_names(needed)}) {'had no' if had_room else 'never had'} room "
                "in the cluster when the budget was spent; see ray status, ask for "
                "less or add hosts, then run the same command to go on"
            )

    def _needed_of(self, workers: Sequence[Worker]) -> list[Worker]:
        """Returns the waiting processes that the run cannot do without."""
        waiting = [one for one in workers if one.name in self._seconds]
        needed = [one for one in waiting if self._needed & {*one.roles}]
        acting = [one for one in workers if one.roles == self._acting]
        # While one of them works, the others may wait.
        if all(one in waiting for one in acting):
            needed += acting
        return needed


def _names(workers: Sequence[Worker]) -> str:
    return ", ".join(one.name for one in workers)
