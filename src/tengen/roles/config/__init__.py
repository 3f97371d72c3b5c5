"""The config of a run, and the file ``run.json`` that stores it."""

from __future__ import annotations

from tengen.roles.config import environments, games
from tengen.roles.config.launch import MOST_SERVERS, LaunchConfig, RoleResources
from tengen.roles.config.run_config import Family, RunConfig, Schedule
from tengen.roles.config.run_file import (
    RUN_LOCK,
    asked_generations,
    change_config,
    config_changes,
    newest_inference,
    open_inference,
    read_config,
    read_part,
    record_generation,
    record_inference,
    stages_schema,
    with_asked_generations,
    write_config,
)

__all__ = [
    "MOST_SERVERS",
    "RUN_LOCK",
    "Family",
    "LaunchConfig",
    "RoleResources",
    "RunConfig",
    "Schedule",
    "asked_generations",
    "change_config",
    "config_changes",
    "environments",
    "games",
    "newest_inference",
    "open_inference",
    "read_config",
    "read_part",
    "record_generation",
    "record_inference",
    "stages_schema",
    "with_asked_generations",
    "write_config",
]
