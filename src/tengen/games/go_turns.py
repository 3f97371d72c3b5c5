"""Moves of Go in which a side may move twice, as a game whose sides take turns.

Controllers and servers let one side move twice and go on after two passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

__all__ = ["GoTurns"]


class GoTurns:
    """Actions in which the sides take turns: a side that is left out passes.

    Passes that a later stone makes superfluous are removed again. Whether stones are
    legal is not checked.

    Args:
        first_player: Who has the first move: 0 Black, 1 White.
        pass_action: Height times width.
        setup: Actions that set up what stands before the first move; they stay.

    Attributes:
        actions: From the first of the setup.
        to_play: Whose turn it is.
        is_passed_to: Whether the last action is a pass that nobody made, for a side
            left out: a pass that answers it would end a game that nobody ends.
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
        """Passes that stand at the end, of those that are moves; two end the game."""
        end = place = len(self.actions)
        while place > self._num_setup and self.actions[place - 1] == self._pass:
            place -= 1
        return end - place

    def add(self, player: int, action: int) -> bool:
        """Adds a side's move.

        Returns:
            False where it changes nothing: a pass out of turn, or after two.
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
        """Returns the game with that side to move, the other having passed."""
        other = copy(self)
        if player != self.to_play:
            other._turn(player)
        return other

    def going_on(self) -> GoTurns:
        """Returns the game with the two passes forgotten that ended it, if any did."""
        other = copy(self)
        if self.num_passes == 2:
            del other.actions[-2:]
        return other

    def _turn(self, player: int) -> None:
        """Makes it that side's turn: by a pass of the other, or one less."""
        self.is_passed_to = self.num_passes == 0
        if self.is_passed_to:
            self.actions.append(self._pass)
        else:
            self.actions.pop()
        self.to_play = player
