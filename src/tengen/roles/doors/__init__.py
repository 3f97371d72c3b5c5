"""Where a run's services listen for roles of other processes and hosts."""

from __future__ import annotations

from tengen.roles.doors.services import (
    ANYWHERE,
    INFERENCE,
    LEARNERS,
    RUN_SERVICE,
    STORE,
    TOKEN_VARIABLE,
    Connect,
    Doors,
    Way,
    check_doors,
    connect_to,
    port_offset,
    server_name,
    way_to,
)

__all__ = [
    "ANYWHERE",
    "INFERENCE",
    "LEARNERS",
    "RUN_SERVICE",
    "STORE",
    "TOKEN_VARIABLE",
    "Connect",
    "Doors",
    "Way",
    "check_doors",
    "connect_to",
    "port_offset",
    "server_name",
    "way_to",
]
