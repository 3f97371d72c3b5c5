"""Games of Go played with a network that was trained on another game's planes.

A network can evaluate only the kind of planes that it was trained on, those of its
frame. Another game of Go is played by its own rules, but its positions are encoded as
planes of the frame. A smaller board lies in the upper left corner of the frame's board.
In the core, the smaller game is a variant of the frame, and its actions are numbered on
the frame's board. Callers number actions on the smaller board.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tengen import _core
from tengen.errors import UsageError
from tengen.games.protocol import Game, State
from tengen.games.registry import open_game

_PLANES = re.compile("/planes=[a-z]+$")


class Framed:
    """A game and its frame: the game whose planes encode its positions. Immutable.

    Args:
        game: The game to play, with its own action numbers.
        frame: The game whose planes are the network's input; may be ``game`` itself.

    Attributes:
        game: The game to play.
        frame: The game that searches play.
        variant: The name of ``game`` as a variant of ``frame``; empty if they are the
            same.
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
        """Embeds a Go game in a corner of another's board, which is at least as large.

        Raises:
            UsageError: One game is not Go, or the board of ``frame`` is the smaller.
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
        """Converts actions of the game to actions of the frame; invalid ones to -1."""
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
        """Number of symmetries that the boards of the game and the frame share."""
        return min(self.game.num_symmetries, self.frame.num_symmetries)


def _with_planes_of(game: Game, frame: Game) -> str:
    """Returns the name of the game of Go ``game`` with the planes of ``frame``."""
    planes = _PLANES.search(frame.name)
    return _PLANES.sub("", game.name) + (planes[0] if planes else "")
