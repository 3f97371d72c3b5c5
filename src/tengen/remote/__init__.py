"""Roles on hosts that do not have the run directory.

The run's host has a ``RunService``. Each far role works on a ``Mirror``: a folder on
its own host that looks like the run directory. Files of the run come down whole
(``downloads``); files of the role go up as they grow (``uploads``), and are durable at
the run's host before it acknowledges them.
"""

from tengen.remote.messages import MIRROR_ROLES, RUN
from tengen.remote.mirror import Mirror
from tengen.remote.service import RunService

__all__ = ["MIRROR_ROLES", "RUN", "Mirror", "RunService"]
