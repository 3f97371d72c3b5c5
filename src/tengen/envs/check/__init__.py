"""The checks of ``tengen env check``, which test an environment's contract."""

from tengen.envs.check.episodes import EpisodeFacts
from tengen.envs.check.report import Cost, Report, check_env, check_own_env
from tengen.envs.check.seen import Finding

__all__ = ["Cost", "EpisodeFacts", "Finding", "Report", "check_env", "check_own_env"]
