"""Opens a run's experience, which the roles of one process may share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.experience import Experience
from tengen.learners.checkpoint import read_extra
from tengen.roles.config import RunConfig
from tengen.roles.doors import STORE, Doors
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory, memory_root, service_folder


def check_room(config: RunConfig, run: RunDirectory, *, at_once: bool) -> str:
    """Checks that a run's experience fits into this host's memory and disk.

    Args:
        config: The run's config.
        run: The run, which need not exist yet.
        at_once: Whether roles work concurrently, with actors in other processes.

    Returns:
        A line for the user with the experience's size and location; may be empty.

    Raises:
        UsageError: The experience does not fit the memory or the disk.
    """
    directory = None
    if at_once and config.schedule.is_shared:
        # A new run has no service folder yet, so use one in the same file system.
        new = memory_root() / "tengen"
        directory = new if run.is_new else service_folder(run, STORE)
    return config.family.check_room(run, directory)


def open_experience(
    config: RunConfig,
    run: RunDirectory,
    context: RoleContext,
    state: Mapping[str, Any] | None = None,
) -> Experience:
    """Returns a role's experience, which the first role of the process opens.

    Args:
        config: The run's config.
        run: The run.
        context: Stores the experience that the roles of this process share.
        state: The experience's state in the learner's checkpoint; None reads it from
            the newest checkpoint, if there is one.

    Raises:
        UsageError: Another process has the experience open.
        RunError: Experience on the disk is missing or damaged.
    """
    family = config.family
    if not family.schedule.is_shared:
        return family.open_experience(run, state)
    if context.at_once:
        # Actors are in other processes, which connect to this folder or address.
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
            # An actor that repeats its turn in a new process opens the experience
            # before the learner does.
            state = read_extra(run.checkpoints.entry(number))["table"]
        shared.experience = family.open_experience(run, state)
    return shared.experience
