"""Converts Go moves by either side, in any order, to moves of alternating sides.

GTP controllers and Go servers let a side move twice in a row, and let play continue
after two passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy


class GoTurns:
    """Actions of alternating sides, with an inserted pass for each skipped turn.

    A pass is removed if a later move of the same side makes it unnecessary. The
    legality of moves is not checked.

    Args:
        first_player: The side to move first: 0 Black, 1 White.
        pass_action: The action of a pass, height times width.
        setup: Actions that place the setup stones, which are never removed.

    Attributes:
        actions: All actions, beginning with the setup.
        to_play: The side to move.
        is_passed_to: Whether the last action is an inserted pass. A pass after it would
            end the game, although the opponent has not chosen to pass.
    """

    def __init__(
        self, first_player: int, pass_action: int, setup: Sequence[int] = ()
    ) -> None:
        self.actions = list(setup)
        self.to_play = first_player
        self.is_passed_to = False
        self._pass = pass_action
        self._num_setup = len(setup)

    def __copy__(self) -> GoTurns:
        other = type(self).__new__(type(self))
        other.__dict__ |= self.__dict__ | {"actions": list(self.actions)}
        return other

    @property
    def num_passes(self) -> int:
        """Number of consecutive passes at the end; two passes end the game."""
        end = place = len(self.actions)
        while place > self._num_setup and self.actions[place - 1] == self._pass:
            place -= 1
        return end - place

    def add(self, player: int, action: int) -> bool:
        """Adds a move of a side.

        Returns:
            Whether the move was added. A pass out of turn and a third pass are ignored.
        """
        num_passes = self.num_passes
        if action == self._pass:
            if player != self.to_play or num_passes == 2:
                return False
        elif player != self.to_play:
            self._turn(player)
        elif num_passes == 2:
            del self.actions[-2:]
        self.actions.append(action)
        self.is_passed_to = False
        self.to_play = 1 - player
        return True

    def turned(self, player: int) -> GoTurns:
        """Returns a copy with ``player`` to move; the other side passes if needed."""
        other = copy(self)
        if player != self.to_play:
            other._turn(player)
        return other

    def going_on(self) -> GoTurns:
        """Returns a copy, without the last two passes if they ended the game."""
        other = copy(self)
        if self.num_passes == 2:
            del other.actions[-2:]
        return other

    def _turn(self, player: int) -> None:
        """Makes ``player`` the side to move: adds a pass, or removes the last pass."""
        self.is_passed_to = self.num_passes == 0
        if self.is_passed_to:
            self.actions.append(self._pass)
        else:
            self.actions.pop()
        self.to_play = player
