"""Agents: one file per algorithm; no code outside this package tests an agent's kind.

``Agent`` is the interface that the roles use. ``EnvironmentAgent`` is the base class of
agents that act in environments. Importing this package does not import torch.
"""

from __future__ import annotations

from tengen.agents.agent import Agent
from tengen.agents.bases.environment_agent import EnvironmentAgent
from tengen.agents.bases.stages import History, NetStage

__all__ = ["Agent", "EnvironmentAgent", "History", "NetStage"]
