"""A game that is shown to a network on the planes of another one.

A network reads the planes that it was trained for. It may play a game of Go whose name
has other planes, by the rules of that game and with the network's planes. A network
that was trained for several boards reads the planes of the largest board, and a smaller
game lies in the upper left corner. The core calls the smaller game a variant of the
larger one, and numbers its actions on the larger board; callers number them on the
smaller board.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tengen import _core
from tengen.errors import UsageError
from tengen.games.protocol import Game, State
from tengen.games.registry import open_game

__all__ = ["Framed"]

_PLANES = re.compile("/planes=[a-z]+$")


class Framed:
    """A game and the game whose planes it is shown on. Immutable.

    Args:
        game: The game that is played, with its own actions.
        frame: The game whose planes the network reads; may be ``game`` itself.

    Attributes:
        game: What is played.
        frame: The game that searches are given.
        variant: The variant of it that they play; empty for ``frame`` itself.
    """

    def __init__(self, game: Game, frame: Game) -> None:
        self.game = game
        self.frame = frame
        self.variant = "" if frame is game else _with_planes_of(game, frame)
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
        """Returns a game of Go on the planes of another one, no smaller than its board.

        Raises:
            UsageError: One of them is not Go, or the board does not fit.
        """
        try:
            rules = _core.parse_go_name(frame.name)
            rules.max_plies = max(rules.max_plies, game.max_plies)
            longest = open_game(rules.name)
            longest.new_state(_with_planes_of(game, frame))
        except _core.CoreError as error:
            raise UsageError(
                f"game ({game.name}) must be on a board that fits {frame.name}; "
                f"choose a smaller one"
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


def _with_planes_of(game: Game, frame: Game) -> str:
    """Returns the name of a game of Go with the planes of another one."""
    planes = _PLANES.search(frame.name)
    return _PLANES.sub("", game.name) + (planes[0] if planes else "")
