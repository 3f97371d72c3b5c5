"""Translates moves of Go in any order of sides to a game in which they alternate.

Controllers and servers let one side move twice, and continue after two passes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

__all__ = ["GoTurns"]


class GoTurns:
    """Actions in which the sides alternate: a side that is skipped passes.

    A pass is removed again if a later stone makes it superfluous. Legality of stones is
    not checked.

    Args:
        first_player: The side to move first: 0 Black, 1 White.
        pass_action: The action of a pass, height times width.
        setup: Actions that place the setup; they are never removed.

    Attributes:
        actions: All actions, the setup first.
        to_play: The side to move.
        is_passed_to: Whether the last action is the pass of a skipped side. Another
            pass would end the game, although nobody has passed.
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
        """Number of passes at the end, without the setup; two end the game."""
        end = place = len(self.actions)
        while place > self._num_setup and self.actions[place - 1] == self._pass:
            place -= 1
        return end - place

    def add(self, player: int, action: int) -> bool:
        """Adds a side's move.

        Returns:
            False if the move changes nothing: a pass out of turn, or after two passes.
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
        """Returns the game with a side to move; the other side passes if needed."""
        other = copy(self)
        if player != self.to_play:
            other._turn(player)
        return other

    def going_on(self) -> GoTurns:
        """Returns the game without the two passes that ended it, if it ended so."""
        other = copy(self)
        if self.num_passes == 2:
            del other.actions[-2:]
        return other

    def _turn(self, player: int) -> None:
        """Gives a side the turn: the other side passes, or its pass is removed."""
        self.is_passed_to = self.num_passes == 0
        if self.is_passed_to:
            self.actions.append(self._pass)
        else:
            self.actions.pop()
        self.to_play = player
