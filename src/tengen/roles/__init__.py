"""The roles of a run, such as self-play and learning.

``actor``, ``selfplay``, ``serving``, ``learning`` and ``judging`` implement the roles.
``config`` defines the config that all roles read, ``inputs`` checks the external files
that the config names, and ``doors`` has the addresses of the run's services. ``alone``
runs a single role as a command; ``store`` has the commands of a standalone store.
"""

from __future__ import annotations

from tengen.experience import TRAIN_WRITER, sealed_generation, writer_directory
from tengen.roles.config import (
    RUN_LOCK,
    RunConfig,
    Schedule,
    asked_generations,
    change_config,
    config_changes,
    read_config,
    record_generation,
    stages_schema,
    with_asked_generations,
    write_config,
)
from tengen.roles.config.launch import LaunchConfig, RoleResources
from tengen.roles.connecting import mirrored
from tengen.roles.devices import (
    check_devices,
    gpus_named,
    move_run,
    possible_inference,
    with_devices,
)
from tengen.roles.doors import TOKEN_VARIABLE, Connect, check_doors, connect_to
from tengen.roles.experience import check_room
from tengen.roles.host import RoleHost
from tengen.roles.inputs import (
    checked_book,
    checked_initial_model,
    checked_source,
    keep_book,
    run_book,
    with_games,
)
from tengen.roles.role import ROLES, Report, Role, RoleContext, make_role
from tengen.roles.spent import RunSpent, learned_steps, read_spent, record_spent
from tengen.roles.stopping import StopListener

__all__ = [
    "ROLES",
    "RUN_LOCK",
    "TOKEN_VARIABLE",
    "TRAIN_WRITER",
    "Connect",
    "LaunchConfig",
    "Report",
    "Role",
    "RoleContext",
    "RoleHost",
    "RoleResources",
    "RunConfig",
    "RunSpent",
    "Schedule",
    "StopListener",
    "asked_generations",
    "change_config",
    "check_devices",
    "check_doors",
    "check_room",
    "checked_book",
    "checked_initial_model",
    "checked_source",
    "config_changes",
    "connect_to",
    "gpus_named",
    "keep_book",
    "learned_steps",
    "make_role",
    "mirrored",
    "move_run",
    "possible_inference",
    "read_config",
    "read_spent",
    "record_generation",
    "record_spent",
    "run_book",
    "sealed_generation",
    "stages_schema",
    "with_asked_generations",
    "with_devices",
    "with_games",
    "write_config",
    "writer_directory",
]
