"""Roles on hosts that do not have the run directory.

The run's host has a ``RunService``; each such role has a ``Mirror``, a folder with what
the role needs of the run, which is kept as the run is and sends what the role makes.
"""

from tengen.mirror.messages import MIRROR_ROLES, RUN
from tengen.mirror.mirror import Mirror
from tengen.mirror.run_client import Place, RunClient
from tengen.mirror.service import AWAY_S, RunService

__all__ = [
    "AWAY_S",
    "MIRROR_ROLES",
    "RUN",
    "Mirror",
    "Place",
    "RunClient",
    "RunService",
]
