"""The config of a run, and the file ``run.json`` that stores it."""

from __future__ import annotations

from tengen.roles.config import environments, games
from tengen.roles.config.run_config import RunConfig
from tengen.roles.config.run_file import newest_inference, read_config

__all__ = ["RunConfig", "environments", "games", "newest_inference", "read_config"]
