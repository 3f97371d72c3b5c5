"""The board of a GTP session, where anyone may move at any time.

Controllers set stones, let one side move twice and go on after two passes. The core's
game takes turns: where a side is left out it passes, and passes that a later stone
shows to be none are taken away again.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from tengen import _core
from tengen.games import Game, State, go_result
from tengen.games.sgf import GoRecord, setup_moves

__all__ = ["MAX_PLIES", "Position", "Start"]

MAX_PLIES = 4 * 19 * 19
"""The longest game that the core plays. Passes that stand for a side left out, and
stones set up, are plies, too, so that the usual limit would end games that go on."""


@dataclass(frozen=True)
class Start:
    """What stands on the board before the first move."""

    game: str
    """The model's game, as its name is: board, ko rule, suicide, plies."""
    komi: float
    """Points for White."""
    black_stones: tuple[int, ...] = ()
    """Points in increasing order."""
    white_stones: tuple[int, ...] = ()
    """Points in increasing order."""
    first_player: int = 0
    """Who is to move: 0 Black, 1 White."""

    def record(self) -> GoRecord:
        """Returns it as a game without moves, standard handicap stones in its name.

        This is where a position becomes a game of the core.
        """
        rules = _core.parse_go_name(self.game)
        rules.komi, rules.handicap = self.komi, 0
        black = self.black_stones
        if self.first_player == 1 and not self.white_stones and _is_fixed(rules, black):
            rules.handicap, black = len(black), ()
        return GoRecord(
            game=rules.name,
            first_player=self.first_player,
            black_stones=black,
            white_stones=self.white_stones,
        )


class Position:
    """A start and the moves after it. Never changes.

    Args:
        start: Before the moves.
        game: The game of ``start.record()``.
        moves: (player, action) of each.

    Attributes:
        moves: Those that were given.
        actions: Those of the core's game, from its first; they are legal.
        num_setup: Those of them that set the start up.
        is_passed_to: Whether the last of them is a pass that nobody made, for a side
            left out: a pass that answers it would end a game that nobody ends.
        state: The position after them.

    Raises:
        UsageError: The stones of the start cannot stand so.
        CoreError: A move is not legal.
    """

    def __init__(
        self, start: Start, game: Game, moves: Iterable[tuple[int, int]] = ()
    ) -> None:
        self.start = start
        self.game = game
        self.moves = tuple(moves)
        setup = setup_moves(start.record())
        self.num_setup = len(setup)
        self.actions = list(setup)
        self._to_play = start.first_player
        self.is_passed_to = False
        for player, action in self.moves:
            self._add(player, action)
        self.state = self._replayed()

    def after(self, player: int, action: int) -> Position:
        """Returns the position after one more move.

        Raises:
            CoreError: It is not legal.
        """
        return Position(self.start, self.game, (*self.moves, (player, action)))

    def turn_of(self, player: int) -> Position:
        """Returns the position with that side to move, the other having passed."""
        if self.state.to_play == player or self.state.is_terminal():
            return self
        turned = self._copied()
        turned._turn(player)
        turned.state = turned._replayed()
        return turned

    def going_on(self) -> Position:
        """Returns the position with the two passes forgotten that ended the game.

        Itself where none did.
        """
        if self._num_passes() < 2:
            return self
        position = self._copied()
        del position.actions[-2:]
        position.state = position._replayed()
        return position

    def record(self) -> GoRecord:
        """Returns the game with its moves, and its result once it is over."""
        is_over = self.state.is_terminal()
        rules = _core.parse_go_name(self.game.name)
        usual = _core.GoRules(rules.height, rules.width).max_plies
        # The session's limit says nothing of the game, unless it is longer than usual.
        if len(self.actions) <= usual:
            rules.max_plies = usual
        return replace(
            self.start.record(),
            game=rules.name,
            moves=tuple(self.actions[self.num_setup :]),
            result=go_result(self.game.name, self.actions) if is_over else "",
        )

    @property
    def score(self) -> float:
        """Black's area less White's and komi, as the board stands."""
        return _core.GoPosition(self.game.name, self.actions).score()

    @property
    def _pass(self) -> int:
        return self.game.num_actions - 1

    def _copied(self) -> Position:
        position = copy(self)
        position.actions = list(self.actions)
        return position

    def _replayed(self) -> State:
        state = self.game.new_state()
        for action in self.actions:
            state.apply(action)
        return state

    def _num_passes(self) -> int:
        """Returns how many passes stand at the end, of those that were moves."""
        count = 0
        for action in reversed(self.actions[self.num_setup :]):
            if action != self._pass:
                break
            count += 1
        return count

    def _add(self, player: int, action: int) -> None:
        if action == self._pass:
            # A side that passes out of turn changes nothing; so does a third pass.
            is_over = self._num_passes() == 2 or len(self.actions) == self._max_plies
            if player != self._to_play or is_over:
                return
        elif player != self._to_play:
            self._turn(player)
        elif self._num_passes() == 2:
            del self.actions[-2:]
        self.actions.append(action)
        self.is_passed_to = False
        self._to_play = 1 - player

    def _turn(self, player: int) -> None:
        """Makes it that side's turn: by a pass of the other, or one less."""
        self.is_passed_to = self._num_passes() == 0
        if self.is_passed_to:
            self.actions.append(self._pass)
        else:
            self.actions.pop()
        self._to_play = player

    @property
    def _max_plies(self) -> int:
        return self.game.max_plies


def _is_fixed(rules: _core.GoRules, stones: tuple[int, ...]) -> bool:
    try:
        points = _core.handicap_points(rules.height, rules.width, len(stones))
    except _core.CoreError:
        return False
    return tuple(sorted(points)) == stones
