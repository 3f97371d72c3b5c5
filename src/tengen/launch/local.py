"""The local launcher: every role at once, each in a process of this machine.

It is for machines where roles do not compete for the same hardware: a GPU evaluates for
self-play while CPU cores learn, or the other way round. On CPU cores alone ``inline``
also keeps all cores busy, and gives the same run for a seed.
"""

from __future__ import annotations

import contextlib

from tengen.launch.at_once import run_at_once
from tengen.launch.budget import Budget
from tengen.launch.forked import ForkingLauncher, can_fork
from tengen.launch.process import ProcessLauncher
from tengen.launch.reports.journal import RunJournal
from tengen.roles import RunConfig, StopListener
from tengen.run import RunDirectory

__all__ = ["run_local"]


def run_local(
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains by processes of this machine; see ``run_at_once``."""

    def train(launcher: ProcessLauncher) -> None:
        run_at_once(
            launcher, config, run, budget, journal, stop, num_threads=num_threads
        )

    has_actors = bool(config.schedule.serving)
    if can_fork() and has_actors and config.launch.of("actor").count > 1:
        with contextlib.closing(ForkingLauncher(run, config.task)) as launcher:
            train(launcher)
    else:
        train(ProcessLauncher(run, config.task, at_once=True))
