"""Whether a game of one's own keeps its protocol; ``tengen game check``."""

from __future__ import annotations

from tengen.games.check.own_game import check_own_game, check_position

__all__ = ["check_own_game", "check_position"]
