"""Playing against a trained agent: from Python and on a terminal.

    with tengen.load("runs/connect4") as player:
        action = player.choose([3, 3, 2], simulations=200)

Importing this imports no torch.
"""

from __future__ import annotations

from tengen.play.player import ActionAnalysis, Analysis, Player, load

__all__ = ["ActionAnalysis", "Analysis", "Player", "load"]
