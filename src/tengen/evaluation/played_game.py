"""One finished game of a match, with its result or why it has none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from tengen.config import to_dict

__all__ = ["Dispute", "PlayedGame"]


@dataclass(frozen=True)
class Dispute:
    """A legal move that an outside engine refuses, so that its game has no result."""

    side: Literal["a", "b"]
    """Who refuses it."""
    move: int
    """The number of the move, from 1, the opening counted."""
    vertex: str
    """The move as the engine was told it: ``D4``, ``pass``."""
    words: str
    """What the engine said, on one line."""

    def text(self, name: str) -> str:
        """Returns the dispute for people, ``name`` being who refuses."""
        return f"{name} refuses move {self.move}, {self.vertex}: {self.words}"


@dataclass(frozen=True)
class PlayedGame:
    """One finished game of a match."""

    index: int
    """Its place in the match, from 0."""
    a_moves_first: bool
    """Whether A had the first move, of the opening too."""
    moves: tuple[int, ...]
    """Actions from the first, the opening included."""
    num_opening_plies: int
    """Random plies that the game began with."""
    score_a: float | None
    """1 where A won, 0.5 drawn, 0 lost; None where the game is disputed."""
    disputed: Dispute | None = None
    """Why the game counts for nobody; None where it counts."""
    illegal: str = ""
    """The move that is not legal by which an outside engine lost it; empty: none."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values; ``from_dict`` reads them.

        ``disputed`` and ``illegal`` are left out of games that they say nothing of.
        """
        fields = to_dict(self)
        if not self.illegal:
            del fields["illegal"]
        if self.disputed is None:
            del fields["disputed"]
        return fields
