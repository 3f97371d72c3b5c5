"""VDN: the Q value of a team is the sum of the Q values of its agents.

Source: Sunehag et al. 2018, "Value-Decomposition Networks For Cooperative Multi-Agent
Learning" (arXiv:1706.05296), section 3.

``tengen.agents.bases.team_agent`` has the settings, the update, and the differences
from the paper.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.agents.bases.team_agent import TeamAgent


@dataclass(frozen=True, kw_only=True)
class Vdn(TeamAgent):
    """Settings of VDN; the module docstring gives the source."""

    kind: Literal["vdn"] = "vdn"
    """The agent's name, as in ``--agent``."""
