"""The roles of a run, such as self-play and learning.

``actor``, ``selfplay``, ``serving``, ``learning`` and ``judging`` implement the roles.
``config`` defines the config that all roles read, ``inputs`` checks the external files
that the config names, and ``doors`` has the addresses of the run's services. ``alone``
runs a single role as a command; ``store`` has the commands of a standalone store.
"""

from __future__ import annotations

from tengen.roles.config import RunConfig, read_config
from tengen.roles.config.run_file import change_config, write_config
from tengen.roles.role import RoleContext, make_role
from tengen.roles.stopping import StopListener

__all__ = [
    "RoleContext",
    "RunConfig",
    "StopListener",
    "change_config",
    "make_role",
    "read_config",
    "write_config",
]
