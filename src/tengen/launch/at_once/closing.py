"""The closing role, after training has ended, where all roles worked at once.

Its processes work at once, each in turns, until each finds nothing left to do.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from tengen.launch.at_once.workers import Worker
from tengen.roles import RunConfig

__all__ = ["Closing", "closing_name", "closing_workers", "is_replaced"]


def closing_name(role: str, index: int, count: int) -> str:
    """Returns the name of one of several processes of a role."""
    return f"{role}-{index}" if count > 1 else role


def is_replaced(config: RunConfig, worker: Worker) -> bool:
    """Returns whether the closing role takes the cores of an earlier process.

    It takes the cores of processes that play and learn, not of those that work now and
    then.
    """
    acting = (config.schedule.acting,)
    return worker.roles in (acting, ("learn",), ("follow",))


def closing_workers(
    config: RunConfig, workers: Sequence[Worker], num_cores: int
) -> list[Worker]:
    """Returns the processes of the closing role of one machine.

    There are as many as acted, at least one, and they divide the cores of acting
    processes and learners.

    Args:
        config: The run's.
        workers: The processes that worked before.
        num_cores: Cores of the machine.
    """
    schedule = config.schedule
    role = schedule.closing
    count = max(1, sum(one.roles == (schedule.acting,) for one in workers))
    cores = sum(one.num_threads for one in workers if is_replaced(config, one))
    return [
        Worker(
            name=closing_name(role, index, count),
            roles=(role,),
            index=index,
            num_threads=max(1, min(cores, num_cores) // count),
        )
        for index in range(count)
    ]


class Closing:
    """The turns of the closing role. ``run`` is for one thread, the others for any.

    Args:
        role: The role.
        turn: Makes a process take a turn of a role; returns its report, None if nothing
            was left to do.
    """

    def __init__(
        self, role: str, turn: Callable[[Worker, str], dict[str, Any] | None]
    ) -> None:
        self._role = role
        self._turn = turn
        self._is_over = threading.Event()
        self._has_nothing_left = threading.Event()

    @property
    def is_over(self) -> bool:
        """Whether no process takes another turn."""
        return self._is_over.is_set()

    def run(self, workers: Sequence[Worker]) -> None:
        """Makes all processes take turns until each finds nothing left to do.

        Args:
            workers: The processes of the role.

        Raises:
            UsageError: The role refused its config or files.
            RunError: It failed.
        """
        with ThreadPoolExecutor(len(workers), thread_name_prefix=self._role) as pool:
            futures = [pool.submit(self._serve, one) for one in workers]
            ended, _ = wait(futures, return_when=FIRST_EXCEPTION)
            if any(future.exception() is not None for future in ended):
                self._is_over.set()
        for future in futures:
            future.result()

    def end(self) -> None:
        """Makes no process take another turn. Does not block."""
        self._is_over.set()

    def leaves(self, worker: Worker) -> bool:
        """Returns whether a process that waits for room is no longer needed."""
        has_ended = self._is_over.is_set() or self._has_nothing_left.is_set()
        return worker.roles == (self._role,) and has_ended

    def _serve(self, worker: Worker) -> None:
        while not self._is_over.is_set():
            report = self._turn(worker, self._role)
            if report is None:
                self._has_nothing_left.set()
            if report is None or report.get("stopped"):
                return
