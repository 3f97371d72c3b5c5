"""Playing against a trained agent: from Python and on a terminal.

    with tengen.load("runs/connect4") as player:
        action = player.choose([3, 3, 2], simulations=200)

Importing this imports no torch.
"""

from __future__ import annotations

from tengen.play.growing import ActionAnalysis, Analysis, GrowingSearch
from tengen.play.player import Player, load

__all__ = ["ActionAnalysis", "Analysis", "GrowingSearch", "Player", "load"]
