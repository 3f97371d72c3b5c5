"""Launchers, which decide where processes run, and the entry point of training.

With ``inline``, roles take turns in processes on this machine. With the other
launchers all roles work concurrently. ``local`` starts processes on this machine,
``ray`` on the hosts of a Ray cluster, and ``mpi`` on the hosts of ``mpirun``.
"""

from __future__ import annotations

import importlib
import warnings

from tengen import roles
from tengen.distribution import pip_install_extra
from tengen.errors import TengenWarning, UsageError, did_you_mean
from tengen.launch.budget import Budget
from tengen.launch.launcher import Launcher
from tengen.launch.match import meet_target
from tengen.launch.process import Processes
from tengen.launch.reports.journal import RunJournal
from tengen.launch.schedule import run_schedule
from tengen.roles import RunConfig, StopListener
from tengen.run import RunDirectory

__all__ = [
    "LAUNCHERS",
    "Budget",
    "Launcher",
    "RunJournal",
    "check_doors",
    "launcher_of",
    "train_by",
]

_INLINE = "inline"

LAUNCHERS = {
    _INLINE: "tengen.launch.local:InlineLauncher",
    "local": "tengen.launch.local:LocalLauncher",
    "ray": "tengen.launch.ray:RayLauncher",
    "mpi": "tengen.launch.mpi:MpiLauncher",
}
"""Maps a launcher's name to ``module:class``, which is imported on first use."""


def launcher_of(name: str) -> type[Launcher]:
    """Returns the launcher class with the given name.

    Raises:
        UsageError: No launcher has this name, or a package that it needs is missing.
    """
    if name not in LAUNCHERS:
        raise UsageError(
            f"launch ({name}) is not known; {did_you_mean(name, LAUNCHERS)}"
        )
    module, _, attribute = LAUNCHERS[name].partition(":")
    try:
        launcher: type[Launcher] = getattr(importlib.import_module(module), attribute)
        if launcher.package:
            importlib.import_module(launcher.package)
    except ImportError as error:
        raise UsageError(
            f"launch ({name}) needs a package that cannot be imported, {error}; "
            f"{pip_install_extra(name)}"
        ) from None
    return launcher


def check_doors(name: str, config: RunConfig) -> None:
    """Checks that ``launch.listen`` is usable, if the learner is on this host.

    A learner on another host checks its own addresses. If roles take turns, no other
    machine can join the run, and ``launch.listen`` causes a TengenWarning.

    Args:
        name: The launcher's name.
        config: The run's config, as returned by ``Launcher.fit``.

    Raises:
        UsageError: A service cannot listen at its address.
    """
    launcher = launcher_of(name)
    if launcher.takes_turns:
        if config.launch.listen:
            text = (
                f"launch.listen ({config.launch.listen}) has no effect if roles take "
                "turns; use --launch local to accept connections"
            )
            warnings.warn(text, TengenWarning, stacklevel=2)
    elif launcher.has_learner_here(config):
        roles.check_doors(config)


def train_by(
    name: str,
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains a run, and plays the target match if training is complete. Blocks.

    Args:
        name: The launcher's name.
        config: The run's config, as returned by ``Launcher.fit``, with the task that
            the user typed.
        run: The run; the caller holds its ``train`` lock.
        budget: The call's budget.
        journal: Receives every report of a role.
        stop: Makes the roles end their turns and save their state.
        num_threads: Number of cores to use on this machine.

    Raises:
        UsageError: A role rejected its config or files, or a host is unsuitable.
        RunError: A role failed or died repeatedly.
    """
    launcher = launcher_of(name)

    def say(what: str) -> None:
        journal.progress({"starting": what})

    with launcher.open(config, run, stop, say) as (opened, hub):
        processes = Processes(
            opened, hub, run, config.task, at_once=not launcher.takes_turns
        )
        run_schedule(
            processes,
            config,
            run,
            budget,
            journal,
            stop,
            num_threads=opened.num_cores or num_threads,
            takes_turns=launcher.takes_turns,
        )
        schedule = config.schedule
        has_target = bool(schedule.num_models and schedule.opponent)
        is_trained = (run.models.latest() or 0) >= schedule.num_models
        if has_target and is_trained and not stop.event.is_set():
            places = opened.for_match(config, num_threads)
            meet_target(processes, places, config, journal, stop)
