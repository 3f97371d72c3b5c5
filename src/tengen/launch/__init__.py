"""Launchers, which say where processes are; and schedules, which say when each works.

With ``inline`` roles take turns, in processes of this machine. With the others all
roles work at once: ``local`` in processes of this machine, ``ray`` beside actors of a
Ray cluster, ``mpi`` beside ranks of ``mpirun``.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable
from typing import Any

from tengen import roles
from tengen.distribution import pip_install_extra
from tengen.errors import TengenWarning, UsageError, did_you_mean
from tengen.launch.budget import Budget
from tengen.launch.reports.journal import RunJournal
from tengen.roles import RunConfig
from tengen.run import RunDirectory

__all__ = [
    "LAUNCHERS",
    "Budget",
    "RunJournal",
    "check_doors",
    "check_launch",
    "check_room",
    "fit",
    "is_on_cluster",
    "join",
    "run_by",
]

_INLINE = "inline"

LAUNCHERS = {
    _INLINE: "tengen.launch.inline:run_inline",
    "local": "tengen.launch.local:run_local",
    "ray": "tengen.launch.ray:run_ray",
    "mpi": "tengen.launch.mpi:run_mpi",
}
"""The launchers by name, as ``module:function``; imported when used."""

_PACKAGES = {"ray": "ray", "mpi": "mpi4py"}
"""The package that a launcher needs, which the extra of the launcher's name
installs."""


_JOIN = {"mpi": "tengen.launch.mpi:join_ranks"}
"""For launchers whose processes exist before the call: joins those processes."""
_FIT = {
    "ray": "tengen.launch.ray:fit_cluster",
    "mpi": "tengen.launch.mpi:fit_ranks",
}
"""For launchers on a cluster: fits the roles to the cluster, before anything starts."""
_HAS_LEARNER = {"mpi": "tengen.launch.mpi:has_learner_here"}
"""For launchers that know before the start whether the learner is on this host."""


def run_by(name: str) -> Callable[..., None]:
    """Returns the function of a launcher, as ``run_inline``.

    Raises:
        UsageError: There is no such launcher, or it needs a package that is missing.
    """
    if name not in LAUNCHERS:
        raise UsageError(
            f"launch ({name}) is not known; {did_you_mean(name, LAUNCHERS)}"
        )
    if name in _PACKAGES:
        try:
            importlib.import_module(_PACKAGES[name])
        except ImportError as error:
            raise UsageError(
                f"launch ({name}) needs a package that cannot be imported, {error}; "
                f"{pip_install_extra(name)}"
            ) from None
    run: Callable[..., None] = _named(LAUNCHERS[name])
    return run


def join(name: str, threads: int | None) -> None:
    """Makes this process take its part in a call that several processes make together.

    With ``mpirun`` only the first rank returns; the other ranks do what the first one
    says, and end when it ends.

    Args:
        name: The launcher, which ``run_by`` knows.
        threads: Cores to use on each host; None for all.

    Raises:
        UsageError: There is no such call, or its processes do not match.
        RunError: A process does not begin.
    """
    if name in _JOIN:
        _named(_JOIN[name])(threads)


def fit(name: str, config: RunConfig, *, keeps_count: bool) -> RunConfig:
    """Returns a config whose roles fit the processes of a call after ``join``.

    Args:
        name: The launcher, after ``join``.
        config: The run's.
        keeps_count: Whether the user gave the number of acting processes; else as many
            as fit.

    Raises:
        UsageError: The roles do not fit.
    """
    if name not in _FIT:
        return config
    fitted: RunConfig = _named(_FIT[name])(config, keeps_count=keeps_count)
    return fitted


def _named(target: str) -> Any:
    module, _, function = target.partition(":")
    return getattr(importlib.import_module(module), function)


def is_on_cluster(name: str | None) -> bool:
    """Returns whether a launcher may start roles on other hosts."""
    return name in _PACKAGES


def check_launch(name: str, config: RunConfig) -> None:
    """Makes sure that a launcher can run a config.

    Raises:
        UsageError: The agent's roles share a process, and with this launcher all roles
            work at once.
    """
    schedule = config.schedule
    if name != _INLINE and schedule.is_shared and not schedule.serving:
        raise UsageError(
            f"launch ({name}) does not go with agent {config.agent.kind}, whose actor "
            f"and learner share a process; use --launch {_INLINE}"
        )


def check_doors(name: str, config: RunConfig) -> None:
    """Makes sure that ``launch.listen`` can be used, where the learner is on this host.

    On another host the learner checks it itself. Where roles take turns no other
    machine can join: a TengenWarning says so.

    Args:
        name: The launcher, after ``fit``.
        config: The run's.

    Raises:
        UsageError: It cannot be used; the message says for which service and why.
    """
    if name == _INLINE and config.launch.listen:
        text = (
            f"launch.listen ({config.launch.listen}) has no effect where roles take "
            f"turns; use --launch local to let others in"
        )
        warnings.warn(text, TengenWarning, stacklevel=2)
    if name in _HAS_LEARNER:
        is_here: bool = _named(_HAS_LEARNER[name])(config)
    else:
        is_here = name != _INLINE and not is_on_cluster(name)
    if is_here:
        roles.check_doors(config)


def check_room(name: str, config: RunConfig, run: RunDirectory) -> str:
    """Makes sure that this host has room for a run's experience.

    Args:
        name: The launcher. On a cluster the learner may be on another host, and then
            checks this itself.
        config: The run's.
        run: The run, which need not be there yet; nothing is written.

    Returns:
        A line for people that says how large the experience is and where; or nothing.

    Raises:
        UsageError: The experience does not fit the memory or the disk.
    """
    if is_on_cluster(name):
        return ""
    return roles.check_room(config, run, at_once=name != _INLINE)
