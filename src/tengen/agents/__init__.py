"""Agents: an algorithm is one file, and nothing outside asks which of them runs.

``Agent`` is what the roles ask of any; ``EnvironmentAgent`` is what the agents of
environments share. Importing this package imports no torch.
"""

from __future__ import annotations

from tengen.agents.agent import Agent, Schedule
from tengen.agents.environment_agent import EnvironmentAgent
from tengen.agents.stages import History, NetStage

__all__ = ["Agent", "EnvironmentAgent", "History", "NetStage", "Schedule"]
