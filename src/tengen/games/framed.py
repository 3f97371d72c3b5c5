"""A game played with a network that was trained on the planes of another game.

A network can evaluate only the planes that it was trained on. So if a game of Go has
other planes, it is played with its own rules and the network's planes. A network
trained on several boards reads the planes of the largest board, with a smaller board in
the upper left corner. In the core, the smaller game is a variant of the larger game,
and its actions are numbered on the larger board. Callers use the action numbers of the
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
    """A game, and the game (the frame) whose planes represent it. Immutable.

    Args:
        game: The game to play, with its own action numbers.
        frame: The game whose planes the network takes as input; may equal ``game``.

    Attributes:
        game: The game to play.
        frame: The game whose states searches use.
        variant: The variant of ``frame`` that is ``game``; empty for ``frame`` itself.
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
        """Returns a game of Go in the frame of one with an equal or larger board.

        Raises:
            UsageError: One of the games is not Go, or the board does not fit.
        """
        try:
            rules = _core.parse_go_name(frame.name)
            rules.max_plies = max(rules.max_plies, game.max_plies)
            longest = open_game(rules.name)
            longest.new_state(_with_planes_of(game, frame))
        except _core.CoreError as error:
            raise UsageError(
                f"game ({game.name}) must fit the board of {frame.name}; choose a "
                "smaller one"
            ) from error
        return cls(game, longest)

    def to_frame(self, actions: Iterable[int]) -> list[int]:
        """Converts actions of the game to actions of the frame; -1 if invalid."""
        if not self.variant:
            return [int(action) for action in actions]
        return [self._outer.get(int(action), -1) for action in actions]

    def from_frame(self, action: int) -> int:
        """Converts an action of the frame to an action of the game."""
        return self._own[action] if self.variant else action

    def new_state(self, moves: Iterable[int]) -> State:
        """Returns the frame's position after ``moves``, which are actions of the game.

        Raises:
            CoreError: A move is not legal.
        """
        state = self.frame.new_state(self.variant)
        for action in self.to_frame(moves):
            state.apply(action)
        return state

    @property
    def num_symmetries(self) -> int:
        """Number of symmetries that the game's board and the frame's board share."""
        return min(self.game.num_symmetries, self.frame.num_symmetries)


def _with_planes_of(game: Game, frame: Game) -> str:
    """Returns the name of the Go game ``game`` with the planes of ``frame``."""
    planes = _PLANES.search(frame.name)
    return _PLANES.sub("", game.name) + (planes[0] if planes else "")
