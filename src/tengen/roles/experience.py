"""Opening a run's experience, which roles of one process may share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.experience import Experience
from tengen.learners.checkpoint import read_extra
from tengen.roles.config import RunConfig
from tengen.roles.doors import STORE, Doors
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory, memory_root, service_folder

__all__ = ["check_room", "open_experience"]


def check_room(config: RunConfig, run: RunDirectory, *, at_once: bool) -> str:
    """Makes sure that this host has room for a run's experience; writes nothing.

    Args:
        config: The run's.
        run: The run, which need not be there yet.
        at_once: Whether actors will be other processes.

    Returns:
        A line for people that says how large the experience is and where; or nothing.

    Raises:
        UsageError: The experience does not fit.
    """
    directory = None
    if at_once and config.schedule.is_shared:
        # A new run has no folder there yet.
        new = memory_root() / "tengen"
        directory = new if run.is_new else service_folder(run, STORE)
    return config.family.check_room(run, directory)


def open_experience(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: Mapping[str, Any] | None = None,
) -> Experience:
    """Returns the experience that a role uses, opened by the first role that asks.

    Args:
        config: The run's.
        run: The run.
        context: Holds the experience that roles of this process share.
        state: The experience's state in the learner's checkpoint; None reads it from
            the checkpoint, if there is one.

    Raises:
        UsageError: The experience belongs to another process.
        RunError: What is on the disk is missing or damaged.
    """
    family = config.family
    if not family.schedule.is_shared:
        return family.open_experience(run, state)
    if context.at_once:
        # Actors are other processes, which connect there.
        doors = Doors(config.launch, run, STORE)
        if line := family.check_room(run, doors.folder):
            context.say(line)
        opened = family.open_experience(run, state, doors.folder, doors.net)
        doors.publish()
        return opened
    shared = context.shared
    if shared.experience is None:
        number = run.checkpoints.latest()
        if state is None and number is not None:
            # In a new process an actor that redoes its turn opens it before the learner
            # does.
            state = read_extra(run.checkpoints.entry(number))["table"]
        shared.experience = family.open_experience(run, state)
    return shared.experience
