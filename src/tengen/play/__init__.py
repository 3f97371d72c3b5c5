"""Players that use trained models: for a game, or for an environment.

    with tengen.load("runs/connect4") as player:
        action = player.choose([3, 3, 2], simulations=200)

    with tengen.load("runs/CartPole-v1") as player:
        player.reset()
        action = player.act(observation)

Importing this package does not import torch.
"""

from __future__ import annotations

from tengen.play.agent_player import AgentPlayer
from tengen.play.growing import ActionAnalysis, Analysis, GrowingSearch
from tengen.play.loading import load
from tengen.play.player import Player

__all__ = [
    "ActionAnalysis",
    "AgentPlayer",
    "Analysis",
    "GrowingSearch",
    "Player",
    "load",
]
