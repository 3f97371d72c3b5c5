"""A game that lies in the upper left corner of the planes that a network reads.

A network that was trained for several boards reads the planes of the largest. The core
calls a smaller one a variant of that game and numbers its actions on the larger board;
whoever plays it numbers them on its own.
"""

from __future__ import annotations

from collections.abc import Iterable

from tengen import _core
from tengen.errors import UsageError
from tengen.games.protocol import Game, State
from tengen.games.registry import open_game

__all__ = ["Framed"]


class Framed:
    """A game and the game whose planes it is shown on. Never changes.

    Args:
        game: What is played, by its own actions.
        frame: Whose planes the network reads; ``game`` itself where they are its own.

    Attributes:
        game: What is played.
        frame: The game that searches are told.
        variant: What they are told to play of it; empty for ``frame`` itself.
    """

    def __init__(self, game: Game, frame: Game) -> None:
        self.game = game
        self.frame = frame
        self.variant = "" if frame is game else game.name
        self._outer: dict[int, int] = {}
        if self.variant:
            *cells, own_pass = range(game.num_actions)
            for cell in cells:
                row, column = divmod(cell, game.width)
                self._outer[cell] = row * frame.width + column
            self._outer[own_pass] = frame.num_actions - 1
        self._own = {outer: action for action, outer in self._outer.items()}

    @classmethod
    def corner(cls, game: Game, frame: Game) -> Framed:
        """Returns a game of Go on a smaller board than that of the planes.

        Raises:
            UsageError: The frame is not Go, the board does not fit it, or the planes
                are others.
        """
        try:
            rules = _core.parse_go_name(frame.name)
            rules.max_plies = max(rules.max_plies, game.max_plies)
            longest = open_game(rules.name)
            longest.new_state(game.name)
        except _core.CoreError as error:
            raise UsageError(
                f"game ({game.name}) must be on a board that fits {frame.name}, with "
                f"the planes of that; choose another"
            ) from error
        return cls(game, longest)

    def to_frame(self, actions: Iterable[int]) -> list[int]:
        """Returns actions as the frame numbers them; -1 for what is off the board."""
        if not self.variant:
            return [int(action) for action in actions]
        return [self._outer.get(int(action), -1) for action in actions]

    def from_frame(self, action: int) -> int:
        """Returns an action of a search as the game numbers it."""
        return self._own[action] if self.variant else action

    def new_state(self, moves: Iterable[int]) -> State:
        """Returns the position after moves of the game, as the network is shown it.

        Raises:
            CoreError: A move is not legal.
        """
        state = self.frame.new_state(self.variant)
        for action in self.to_frame(moves):
            state.apply(action)
        return state

    @property
    def num_symmetries(self) -> int:
        """Symmetries that the board has, and planes can be shown under."""
        return min(self.game.num_symmetries, self.frame.num_symmetries)
