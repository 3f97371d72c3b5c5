"""Checks that an environment keeps its contract; ``tengen env check``."""

from tengen.envs.check.cost import Cost
from tengen.envs.check.episodes import EpisodeFacts
from tengen.envs.check.findings import Finding
from tengen.envs.check.report import Report, check_env, check_own_env

__all__ = ["Cost", "EpisodeFacts", "Finding", "Report", "check_env", "check_own_env"]
