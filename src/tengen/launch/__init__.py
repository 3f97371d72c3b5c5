"""Where processes are, a launcher a file; and which works when, a schedule a file.

``inline`` has roles take turns, in processes of this machine; ``local`` and ``ray``
have them work all at once, in processes of this machine or actors of a Ray cluster.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable

from tengen import roles
from tengen.errors import UsageError, did_you_mean
from tengen.launch.budget import Budget
from tengen.launch.journal import RunJournal
from tengen.roles import RunConfig
from tengen.run import RunDirectory

__all__ = ["LAUNCHERS", "Budget", "RunJournal", "check_launch", "check_room", "run_by"]

_INLINE = "inline"

LAUNCHERS = {
    _INLINE: "tengen.launch.inline:run_inline",
    "local": "tengen.launch.local:run_local",
    "ray": "tengen.launch.ray:run_ray",
}
"""Name -> ``module:function``; each is imported when it is used."""

_PACKAGES = {"ray": "ray"}
"""What a launcher needs besides, which is an extra of the same name."""


def run_by(name: str) -> Callable[..., None]:
    """Returns the function of a launcher, as ``run_inline``.

    Raises:
        UsageError: There is none of that name, or it needs a package that is missing.
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
                f"pip install 'tengen[{name}]'"
            ) from None
    module, _, function = LAUNCHERS[name].partition(":")
    run: Callable[..., None] = getattr(importlib.import_module(module), function)
    return run


def check_launch(name: str, config: RunConfig) -> None:
    """Makes sure that a launcher can run a config.

    Raises:
        UsageError: Its roles share a process, and this one has them work all at once.
    """
    schedule = config.agent.schedule(config)
    if name != _INLINE and schedule.is_shared and not schedule.serving:
        raise UsageError(
            f"launch ({name}) does not go with agent {config.agent.kind}, whose actor "
            f"and learner share a process; use --launch {_INLINE}"
        )


def check_room(name: str, config: RunConfig, run: RunDirectory) -> str:
    """Makes sure that this host has room for a run's experience.

    Args:
        name: The launcher. Where it is a cluster's, the learner may be on another host,
            which sees to it itself.
        config: The run's.
        run: The run, which need not be there yet; nothing is written.

    Returns:
        How large it is and where it will be, a line for people, or nothing.

    Raises:
        UsageError: It does not fit the memory or the disk.
    """
    if name in _PACKAGES:
        return ""
    return roles.check_room(config, run, at_once=name != _INLINE)
