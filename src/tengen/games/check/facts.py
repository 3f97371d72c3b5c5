"""What random games showed: lengths, results, and positions that look alike."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

__all__ = ["GameFacts"]

# How many positions are remembered, to find two that look alike.
_MAX_POSITIONS = 200_000


@dataclass
class GameFacts:
    """Counts of games that were played at random."""

    num_plies: list[int] = field(default_factory=list)
    """Length of each game."""
    results: dict[float, int] = field(default_factory=lambda: {1: 0, 0: 0, -1: 0})
    """How many games the first player won (1), drew (0) and lost (-1)."""
    alike: str = ""
    """Two positions with the same planes but different legal actions; empty if none
    were met."""
    _legal: dict[bytes, tuple[int, tuple[int, tuple[int, ...]]]] = field(
        default_factory=dict, repr=False
    )

    @property
    def warning(self) -> str:
        """One line on what the planes do not show; empty where nothing was met."""
        if not self.alike:
            return ""
        return (
            f"observation ({self.alike}) should show all that legal actions depend on, "
            f"for positions with the same planes share one evaluation; add planes"
        )

    def see(self, ply: int, player: int, legal: tuple[int, ...], planes: bytes) -> None:
        """Records a position that is not finished.

        Args:
            ply: Moves made so far.
            player: The side to move.
            legal: Its legal actions.
            planes: The bytes of its planes.
        """
        key = hashlib.blake2b(planes, digest_size=16).digest()
        met = self._legal.get(key)
        if met is None:
            if len(self._legal) < _MAX_POSITIONS:
                self._legal[key] = ply, (player, legal)
        elif met[1] != (player, legal) and not self.alike:
            first_ply, (first_player, first_legal) = met
            if first_player != player:
                other = "another player is to move"
            else:
                action = min(set(first_legal) ^ set(legal))
                other = f"action {action} is legal in one of them alone"
            self.alike = f"the same at ply {first_ply} and at ply {ply}, where {other}"

    def finish(self, num_plies: int, first: float) -> None:
        """Records a finished game.

        Args:
            num_plies: Its length.
            first: The first player's result: 1, 0 or -1.
        """
        self.num_plies.append(num_plies)
        self.results[first] += 1
