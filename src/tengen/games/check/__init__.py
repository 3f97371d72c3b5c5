"""``tengen game check``: checks a user's implementation of `tengen.games.OwnGame`."""

from __future__ import annotations

from tengen.games.check.own_game import check_own_game, check_position
from tengen.games.check.verified_game import is_decisive

__all__ = ["check_own_game", "check_position", "is_decisive"]
