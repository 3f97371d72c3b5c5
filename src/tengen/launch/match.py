"""The match of a run's models against its target after training has ended.

Processes with role ``eval`` on all hosts of the launcher share the games. If a process
fails or finds no more games to play, all these processes end.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tengen.launch.launcher import Placed, TrainingCall
from tengen.launch.process import Processes, close_all
from tengen.launch.reports.journal import RunJournal
from tengen.launch.taking import Waiting
from tengen.launch.workers import EVAL, Worker
from tengen.roles.config.run_config import Schedule


def meet_target(
    processes: Processes, places: Sequence[Placed], call: TrainingCall
) -> None:
    """Plays the run's models against its target in order. Blocks.

    Processes of ``tengen eval`` on hosts that share the run directory may play some of
    the games. A later call resumes a stopped match.

    Args:
        processes: Starts the processes.
        places: The placements of the processes.
        call: The call. Its config has a target that this call has checked.

    Raises:
        UsageError: The target is missing, or differs from that of earlier games.
        RunError: A model is damaged, the target fails, or the cluster has no space.
    """
    config, journal = call.config, call.journal
    handles = [processes.start_at(one) for one in places]
    workers = [one.worker for one in places]
    waiting = Waiting(Schedule(acting=EVAL, learning=()), config.launch)
    lock = threading.Lock()

    def end() -> None:
        for handle in handles:
            handle.stop()

    def on_death(role: str, how: str) -> None:
        with lock:
            journal.death(role, how)

    def serve(number: int) -> None:
        def on_progress(report: dict[str, Any]) -> None:
            with lock:
                if "starting" not in report:  # sent while the process may still wait
                    _check_room(waiting, workers, workers[number], report, journal)
                journal.progress(report)

        details = {"opponent": config.schedule.opponent}
        report: dict[str, Any] | None = {}
        try:
            while report is not None and not report.get("stopped"):
                start_s = time.monotonic()
                report = handles[number].turn(EVAL, on_progress, on_death, details)
                if report is not None and not report.get("stopped"):
                    report.pop("cpu_s", None)  # a match does not count
                    with lock:
                        journal.report(EVAL, report, time.monotonic() - start_s)
        finally:
            end()

    call.stop.tell(end)
    try:
        with ThreadPoolExecutor(len(places), thread_name_prefix=EVAL) as pool:
            served = [pool.submit(serve, number) for number in range(len(places))]
        for one in served:
            one.result()
    finally:
        end()
        close_all(handles)


def _check_room(
    waiting: Waiting,
    workers: Sequence[Worker],
    worker: Worker,
    report: dict[str, Any],
    journal: RunJournal,
) -> None:
    """Shows which processes of the match wait for cluster resources.

    Raises:
        RunError: All processes have waited too long.
    """
    waiting.note(worker, report.get("waiting_s"))
    if (names := waiting.news()) is not None:
        journal.waiting(names)
    waiting.check(workers)
