"""Launchers, which decide where processes run, and the entry point of training.

With ``inline``, roles take turns in processes on this machine. With the other
launchers all roles work concurrently. ``local`` starts processes on this machine,
``ray`` on the hosts of a Ray cluster, and ``mpi`` on the hosts of ``mpirun``.
"""

from __future__ import annotations

import dataclasses
import importlib

from tengen.distribution import pip_install_extra
from tengen.errors import UsageError, did_you_mean
from tengen.launch.budget import Budget
from tengen.launch.launcher import Launcher, TrainingCall
from tengen.launch.match import meet_target
from tengen.launch.process import Processes
from tengen.launch.reports.journal import RunJournal
from tengen.launch.schedule import run_schedule

__all__ = [
    "LAUNCHERS",
    "Budget",
    "Launcher",
    "RunJournal",
    "TrainingCall",
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


def train_by(name: str, call: TrainingCall) -> None:
    """Trains a run, and plays the target match if training is complete. Blocks.

    Args:
        name: The launcher's name.
        call: The call.

    Raises:
        UsageError: A role rejected its config or files, or a host is unsuitable.
        RunError: A role failed or died repeatedly.
    """
    launcher = launcher_of(name)
    with launcher.open(call) as (opened, hub):
        at_once = not launcher.takes_turns
        processes = Processes(opened, hub, call.run, call.config.task, at_once=at_once)
        num_threads = opened.num_cores or call.num_threads
        run_schedule(
            processes,
            dataclasses.replace(call, num_threads=num_threads),
            takes_turns=launcher.takes_turns,
        )
        schedule = call.config.schedule
        has_target = bool(schedule.num_models and schedule.opponent)
        is_trained = (call.run.models.latest() or 0) >= schedule.num_models
        if has_target and is_trained and not call.stop.event.is_set():
            places = opened.for_match(call.config, call.num_threads)
            meet_target(processes, places, call)
