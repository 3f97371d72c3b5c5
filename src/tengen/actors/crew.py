"""Who drives the workers of self-play: each thread its own, or devices all of them.

On processors a thread descends its trees and evaluates their leaves by turns, so that
nobody waits. On devices it has several groups of games: while the leaves of one are
away it descends the trees of another, and drivers hand full batches to the devices.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from tengen import _core
from tengen.actors.selfplay_config import SelfplayConfig
from tengen.games import CoreGame
from tengen.inference import (
    Backend,
    DriveStats,
    LaneBackend,
    RowLayout,
    bind_port,
    drive,
)

__all__ = ["Crew", "CrewTimes", "crew_of_threads", "crew_on_devices"]

_BATCHES_AT_ONCE = 3
"""Batches of rows per device that the games at once are for: one is computed, one
waits for it, and one is with the trees. A thread has as many groups of games."""


@dataclass(frozen=True)
class CrewTimes:
    """Where a crew's time went, in seconds summed over its worker threads."""

    inference_s: float
    """Inside the backend."""
    tree_s: float
    """Inside games, trees and encoding."""
    wait_s: float
    """Waiting for devices."""
    num_batches: int
    """Batches sent to the network."""


class Crew(Protocol):
    """Workers, and jobs that drive them to their end, each in a thread of its own."""

    @property
    def workers(self) -> Sequence[_core.SelfplayPort]:
        """Whose counters tell how far it is."""

    @property
    def jobs(self) -> Sequence[Callable[[], object]]:
        """To be run at once."""

    @property
    def batch_capacity(self) -> int:
        """The most rows of a batch."""

    @property
    def notes(self) -> Sequence[str]:
        """What making it brought up that the user should know, a line each."""

    def stop(self) -> None:
        """Frees jobs that wait for others. From any thread."""

    def times(self, seconds: float) -> CrewTimes:
        """Returns where the time went, when all jobs are over.

        Args:
            seconds: What they took.
        """


def crew_of_threads(
    config: SelfplayConfig,
    rules: CoreGame,
    backend: Backend,
    queue: _core.GameQueue,
    sink: _core.GameSink,
    num_threads: int,
) -> Crew:
    """Returns threads that each own a worker and a runner, and nothing else.

    Raises:
        UsageError: The search needs scores, and the backend has none.
    """
    config.search.check_scores("score" in backend.signature.outputs)
    settings = config.to_native()
    workers = [
        _core.make_selfplay_worker(rules, settings, queue, sink)
        for _ in range(num_threads)
    ]
    capacity = config.num_slots * config.search.leaves_at_once
    return _ThreadsCrew(workers, backend, capacity)


def crew_on_devices(
    config: SelfplayConfig,
    rules: CoreGame,
    backend: LaneBackend,
    queue: _core.GameQueue,
    sink: _core.GameSink,
    num_threads: int,
) -> Crew:
    """Returns threads whose workers share the lanes of devices.

    Raises:
        UsageError: The search needs scores, and the backend has none.
        RunError: A device has no memory for the smallest batch.
    """
    config.search.check_scores("score" in backend.signature.outputs)
    leaves = config.search.leaves_at_once
    wanted = -(-_BATCHES_AT_ONCE * backend.max_rows * backend.num_devices // leaves)
    games_at_once = min(
        max(config.num_slots * num_threads, wanted), max(1, queue.num_wanted)
    )
    num_groups = min(_BATCHES_AT_ONCE, -(-games_at_once // num_threads))
    group_slots = -(-games_at_once // (num_threads * num_groups))
    settings = dataclasses.replace(config, num_slots=group_slots).to_native()
    settings.cache_bytes //= num_groups
    groups = [
        [
            _core.make_selfplay_worker(rules, settings, queue, sink)
            for _ in range(num_groups)
        ]
        for _ in range(num_threads)
    ]
    first = groups[0][0]
    layout = RowLayout(
        tuple(first.planes.shape[1:]),
        # The planes of a game in Python may hold any numbers.
        is_packed=isinstance(rules, str),
    )
    num_lanes = _BATCHES_AT_ONCE * backend.num_devices
    num_rows = -(-games_at_once * leaves // num_lanes)
    return _DevicesCrew(groups, backend, layout, num_rows)


class _ThreadsCrew:
    notes = ()

    def __init__(
        self,
        workers: Sequence[_core.SelfplayPort],
        backend: Backend,
        batch_capacity: int,
    ) -> None:
        self.workers = workers
        self.batch_capacity = batch_capacity
        self.jobs = [self._job(worker, backend) for worker in workers]
        self._stats: list[DriveStats] = []

    def stop(self) -> None:
        """Nobody waits for another."""

    def times(self, seconds: float) -> CrewTimes:
        return CrewTimes(
            inference_s=sum(stat.inference_s for stat in self._stats),
            tree_s=sum(stat.port_s for stat in self._stats),
            wait_s=0.0,
            num_batches=sum(stat.num_batches for stat in self._stats),
        )

    def _job(self, port: _core.SelfplayPort, backend: Backend) -> Callable[[], None]:
        def job() -> None:
            runner = bind_port(backend, port)
            stats = DriveStats()
            self._stats.append(stats)
            drive(port, runner, stats)

        return job


class _DevicesCrew:
    def __init__(
        self,
        groups: Sequence[Sequence[_core.SelfplayPort]],
        backend: LaneBackend,
        layout: RowLayout,
        num_rows: int,
    ) -> None:
        num_told = len(backend.notes)
        lanes = backend.open_lanes(layout, num_rows)
        self.notes = tuple(backend.notes[num_told:])
        self.workers = [worker for group in groups for worker in group]
        self.batch_capacity = len(lanes[0].rows)
        self._num_threads = len(groups)
        self._num_devices = backend.num_devices
        self._shared = _core.SharedPort(
            _core.RowLayout(layout.planes_shape, layout.is_packed),
            [
                (
                    lane.rows,
                    lane.outputs["policy"],
                    lane.outputs["value"],
                    lane.outputs.get("score"),
                    lane.device,
                )
                for lane in lanes
            ],
            num_workers=len(groups),
        )
        self.jobs: list[Callable[[], object]] = [
            partial(self._shared.work, group) for group in groups
        ]
        self.jobs += [
            partial(drive, self._shared.lane(place), lane)
            for place, lane in enumerate(lanes)
        ]

    def stop(self) -> None:
        self._shared.stop()

    def times(self, seconds: float) -> CrewTimes:
        stats = self._shared.stats
        return CrewTimes(
            inference_s=stats.device_s * self._num_threads / self._num_devices,
            tree_s=max(0.0, seconds * self._num_threads - stats.wait_s),
            wait_s=stats.wait_s,
            num_batches=stats.num_batches,
        )
