"""Launchers, which say where processes are; and the schedule of their turns.

With ``inline`` roles take turns, in processes of this machine. With the others all
roles work at once: ``local`` in processes of this machine, ``ray`` beside actors of a
Ray cluster, ``mpi`` beside ranks of ``mpirun``.
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
"""The launchers by name, as ``module:class``; imported when used."""


def launcher_of(name: str) -> type[Launcher]:
    """Returns the class of a launcher.

    Raises:
        UsageError: There is no such launcher, or it needs a package that is missing.
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
    """Makes sure that ``launch.listen`` can be used, where the learner is on this host.

    On another host the learner checks it itself. Where roles take turns no other
    machine can join: a TengenWarning says so.

    Args:
        name: The launcher.
        config: The run's, as ``Launcher.fit`` returned it.

    Raises:
        UsageError: It cannot be used; the message says for which service and why.
    """
    launcher = launcher_of(name)
    if launcher.takes_turns:
        if config.launch.listen:
            text = (
                f"launch.listen ({config.launch.listen}) has no effect where roles "
                f"take turns; use --launch local to let others in"
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
    """Trains, and plays the models against a target once there are all. Blocks.

    Args:
        name: The launcher.
        config: The run's, as ``Launcher.fit`` returned it; its task is what the user
            typed.
        run: The run; the caller holds its ``train`` lock.
        budget: The call's budget.
        journal: Takes every report.
        stop: Ends the present turns, with everything saved.
        num_threads: Cores to use on this machine.

    Raises:
        UsageError: A role refused its config or its files, or a host lacks something.
        RunError: A role failed or died again and again.
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
