"""Self-play: plays the games of one generation on several threads.

The games are state machines in the core (core/selfplay/workers/worker.h), driven by
threads with inference on the CPU or on GPUs; see tengen.actors.crew.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tengen import _core
from tengen.actors.crew import Crew, crew_of_threads, crew_on_devices
from tengen.actors.selfplay_config import SelfplayConfig
from tengen.games import Game, core_game
from tengen.inference import Backend, LaneBackend


@dataclass(frozen=True, kw_only=True)
class GenerationReport:
    """Totals over the threads that played a generation of games."""

    num_games: int = 0
    """Number of games that the threads finished."""
    num_gone_on_with: int = 0
    """Number of games that an earlier process began and the threads continued."""
    num_plies: int = 0
    """Number of plies at which a search was run."""
    num_rows: int = 0
    """Number of training rows from the finished games."""
    num_simulations: int = 0
    """Number of simulations, that is, descents of search trees."""
    num_evaluations: int = 0
    """Number of positions that the network evaluated."""
    num_cache_hits: int = 0
    """Number of positions found in the evaluation cache."""
    num_batches: int = 0
    """Number of batches sent to the network."""
    batch_capacity: int = 0
    """The maximum number of rows in an inference batch."""
    seconds: float = 0.0
    """Wall time of the generation in seconds."""
    inference_s: float = 0.0
    """Seconds spent in the backend, summed over threads; on devices, the mean busy time
    per device times the number of threads."""
    tree_s: float = 0.0
    """Seconds spent on games, search trees and encoding, summed over threads."""
    wait_s: float = 0.0
    """Seconds spent waiting for GPUs, summed over threads."""
    num_threads: int = 0
    """Number of threads that played."""
    notes: tuple[str, ...] = ()
    """Messages for the user, one line per message."""

    def plus(self, later: GenerationReport) -> GenerationReport:
        """Returns the sum of two reports; for threads and capacity, the maximum."""
        sums = {
            name: getattr(self, name) + getattr(later, name)
            for name in (field.name for field in dataclasses.fields(self))
        }
        sums["num_threads"] = max(self.num_threads, later.num_threads)
        sums["batch_capacity"] = max(self.batch_capacity, later.batch_capacity)
        return GenerationReport(**sums)

    @property
    def threads_s(self) -> float:
        """Wall time times the number of threads, above 0."""
        return max(1e-9, self.seconds * self.num_threads)

    @property
    def cores_busy(self) -> float:
        """Fraction of the threads' time spent on inference, games and trees, 0 to 1."""
        working_s = min(self.inference_s + self.tree_s, self.threads_s - self.wait_s)
        return max(0.0, working_s) / self.threads_s

    @property
    def batch_rows(self) -> float:
        """Mean number of rows in an inference batch."""
        return self.num_evaluations / max(1, self.num_batches)

    @property
    def cache_hit_share(self) -> float:
        """Fraction of the requested positions that were found in the cache, 0 to 1."""
        num_asked = self.num_cache_hits + self.num_evaluations
        return self.num_cache_hits / max(1, num_asked)


def play_generation(
    game: Game,
    config: SelfplayConfig,
    backend: Backend,
    queue: _core.GameQueue,
    sink: _core.GameSink,
    *,
    num_threads: int,
    on_progress: Callable[[int, int], None] | None = None,
    on_unfinished: Callable[[list[bytes]], None] | None = None,
    progress_interval_s: float = 0.25,
) -> GenerationReport:
    """Plays the games of ``queue`` and passes them to ``sink``. Blocks until the end.

    ``queue.stop()`` from any thread ends the generation early; ``on_unfinished`` then
    receives the unfinished games. ``queue.unfinished()`` also returns them, even if
    this function raises.

    Args:
        game: The rules of the game.
        config: Settings of self-play.
        backend: The backend that evaluates positions with the model.
        queue: The games of the generation.
        sink: Receives each finished game.
        num_threads: Number of worker threads, at least 1.
        on_progress: Called in this thread with the numbers of games and evaluations.
        on_unfinished: Called in this thread with the unfinished games, every
            ``config.snapshot_s`` seconds and after the queue is stopped.
        progress_interval_s: Seconds between calls of ``on_progress``.

    Raises:
        Exception: The first exception of a worker; the other workers are stopped.
    """
    rules = core_game(game)
    crew = (
        crew_on_devices(config, rules, backend, queue, sink, num_threads)
        if isinstance(backend, LaneBackend)
        else crew_of_threads(config, rules, backend, queue, sink, num_threads)
    )
    failures: list[BaseException] = []

    def work(job: Callable[[], object]) -> None:
        try:
            job()
        except BaseException as error:
            failures.append(error)
            queue.stop()
            crew.stop()

    start = time.monotonic()
    threads = [
        threading.Thread(target=work, args=(job,), name=f"selfplay-{i}")
        for i, job in enumerate(crew.jobs)
    ]
    for thread in threads:
        thread.start()
    try:
        snapshots = _Snapshots(queue, config.snapshot_s, on_unfinished)
        _watch(threads, crew.workers, snapshots, on_progress, progress_interval_s)
    except BaseException:
        queue.stop()
        raise
    finally:
        for thread in threads:
            thread.join()
        if queue.stopped:
            for worker in crew.workers:
                worker.keep_unfinished()
    if failures:
        raise failures[0]
    if queue.stopped and on_unfinished is not None:
        on_unfinished(queue.unfinished())
    return _report(crew, num_threads, time.monotonic() - start)


class _Snapshots:
    """Periodically requests and collects snapshots of the unfinished games."""

    def __init__(
        self,
        queue: _core.GameQueue,
        interval_s: float,
        take: Callable[[list[bytes]], None] | None,
    ) -> None:
        self._queue = queue
        self._interval_s = interval_s
        self._take = take
        self._next_s = time.monotonic() + interval_s
        self._is_asked = False

    def look(self) -> None:
        """Collects the requested snapshot, or requests one if it is due; call often."""
        if self._take is None:
            return
        if self._is_asked:
            self._take(self._queue.unfinished())
            self._is_asked = False
        elif time.monotonic() >= self._next_s:
            self._queue.request_snapshot()
            self._is_asked = True
            self._next_s = time.monotonic() + self._interval_s


def _watch(
    threads: Sequence[threading.Thread],
    workers: Sequence[_core.SelfplayPort],
    snapshots: _Snapshots,
    on_progress: Callable[[int, int], None] | None,
    interval_s: float,
) -> None:
    # List the threads only once per iteration, because a thread may end at any time.
    while threads_left := [thread for thread in threads if thread.is_alive()]:
        threads_left[0].join(interval_s)
        snapshots.look()
        if on_progress is not None:
            counts = [worker.stats for worker in workers]
            on_progress(
                sum(count.num_games for count in counts),
                sum(count.num_evaluations for count in counts),
            )


def _report(crew: Crew, num_threads: int, seconds: float) -> GenerationReport:
    counts = [worker.stats for worker in crew.workers]

    def total(name: str) -> int:
        return int(sum(getattr(count, name) for count in counts))

    times = crew.times(seconds)
    return GenerationReport(
        num_games=total("num_games"),
        num_plies=total("num_plies"),
        num_rows=total("num_rows"),
        num_simulations=total("num_simulations"),
        num_evaluations=total("num_evaluations"),
        num_cache_hits=total("num_cache_hits"),
        num_batches=times.num_batches,
        batch_capacity=crew.batch_capacity,
        seconds=seconds,
        inference_s=times.inference_s,
        tree_s=times.tree_s,
        wait_s=times.wait_s,
        num_threads=num_threads,
        notes=tuple(crew.notes),
    )
