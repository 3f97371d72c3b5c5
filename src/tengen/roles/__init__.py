"""What one process does; roles meet only through the run directory."""

from __future__ import annotations

from tengen.roles.config import (
    NetStage,
    RunConfig,
    change_config,
    read_config,
    write_config,
)
from tengen.roles.generations import sealed_generations
from tengen.roles.role import ROLES, Report, Role, RoleContext, make_role

__all__ = [
    "ROLES",
    "NetStage",
    "Report",
    "Role",
    "RoleContext",
    "RunConfig",
    "change_config",
    "make_role",
    "read_config",
    "sealed_generations",
    "write_config",
]
