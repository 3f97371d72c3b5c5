"""Roles on hosts that do not have the run directory.

The run's host has a ``RunService``. Each remote role works on a ``Mirror``, a folder on
its own host that looks like the run directory. ``downloads`` fetches complete files of
the run. ``uploads`` sends files of the role as they grow; the run's host makes each
piece durable before it acknowledges the piece.
"""

from tengen.remote.messages import MIRROR_ROLES, RUN
from tengen.remote.mirror import Mirror
from tengen.remote.service import RunService

__all__ = ["MIRROR_ROLES", "RUN", "Mirror", "RunService"]
