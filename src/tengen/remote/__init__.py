"""Roles on hosts that do not have the run directory.

The host of the run has a ``RunService``. Each remote role works on a ``Mirror``, a
folder on its own host with the layout of a run directory. ``transfers`` fetches
complete files of the run, and sends files of the role as they grow, in chunks that the
run's host makes durable before it acknowledges them.
"""

from tengen.remote.messages import MIRROR_ROLES, RUN
from tengen.remote.mirror import Mirror
from tengen.remote.service import RunService

__all__ = ["MIRROR_ROLES", "RUN", "Mirror", "RunService"]
