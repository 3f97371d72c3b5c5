"""The worker threads of self-play, with inference on the CPU or on GPUs.

On the CPU, each thread alternates between descending the trees of its games and
evaluating their leaves, so that no thread waits. On GPUs, each thread has several
groups of games: a device evaluates the leaves of one group while the thread searches
another. Driver threads merge the leaves of all threads into batches for the devices.
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

_BATCHES_AT_ONCE = 3
"""Number of batches per device that the concurrent games must fill: one is evaluated,
one waits for the device, and one is being filled. Each thread has at most this many
groups of games."""


@dataclass(frozen=True)
class CrewTimes:
    """How self-play workers spent their time, in seconds summed over threads."""

    inference_s: float
    """Time spent in the inference backend."""
    tree_s: float
    """Time spent on games, search trees and the encoding of positions."""
    wait_s: float
    """Time that threads spent waiting for devices."""
    num_batches: int
    """Number of batches sent to the network."""


class Crew(Protocol):
    """Self-play workers, and the jobs (loops) that run them, each on its own thread."""

    @property
    def workers(self) -> Sequence[_core.SelfplayPort]:
        """The self-play workers, whose ``stats`` report their progress."""

    @property
    def jobs(self) -> Sequence[Callable[[], object]]:
        """Functions that must run concurrently, each on its own thread."""

    @property
    def batch_capacity(self) -> int:
        """The maximum number of rows in an inference batch."""

    @property
    def notes(self) -> Sequence[str]:
        """Messages for the user about the creation of the workers, one line each."""

    def stop(self) -> None:
        """Wakes jobs that wait for other jobs. Thread-safe."""

    def times(self, seconds: float) -> CrewTimes:
        """Returns the time breakdown of the workers. Call it after all jobs have ended.

        Args:
            seconds: Wall time from the start to the end of the jobs.
        """


def crew_of_threads(
    config: SelfplayConfig,
    rules: CoreGame,
    backend: Backend,
    queue: _core.GameQueue,
    sink: _core.GameSink,
    num_threads: int,
) -> Crew:
    """Returns a crew whose threads evaluate the leaves of their own searches.

    Raises:
        UsageError: The search needs scores, and the network has no score output.
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
    """Returns a crew whose threads fill shared batches for the devices.

    Raises:
        UsageError: The search needs scores, and the network has no score output.
        RunError: A device has too little memory for the smallest batch.
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
        # Packing supports one nonzero value per plane; planes of Python games may have
        # more.
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
        """Does nothing, because no job waits for another job."""

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
