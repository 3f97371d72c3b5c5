"""The board of a GTP session, where anyone may move at any time.

Controllers set stones, let one side move twice and go on after two passes. The core's
game takes turns; see ``GoTurns``.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from tengen import _core
from tengen.games import Game, State, go_result
from tengen.games.go_turns import GoTurns
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
        num_setup: Those of them that set the start up.
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
        self._turns = GoTurns(start.first_player, self._pass, setup)
        for player, action in self.moves:
            self._add(player, action)
        self.state = self._replayed()

    @property
    def actions(self) -> list[int]:
        """Those of the core's game, from its first; they are legal."""
        return self._turns.actions

    @property
    def is_passed_to(self) -> bool:
        """As of ``GoTurns``."""
        return self._turns.is_passed_to

    @property
    def closing_pass(self) -> list[tuple[int, int, int]]:
        """What a search leaves out, as in ``AnalysisRequest``: a pass after none."""
        return [(self.state.to_play, self._pass, 1)] if self.is_passed_to else []

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
        return self._on(self._turns.turned(player))

    def going_on(self) -> Position:
        """Returns the position with the two passes forgotten that ended the game.

        Itself where none did.
        """
        return self if self._turns.num_passes < 2 else self._on(self._turns.going_on())

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

    def _on(self, turns: GoTurns) -> Position:
        """Returns the position after other actions of the same moves."""
        position = copy(self)
        position._turns = turns
        position.state = position._replayed()
        return position

    def _replayed(self) -> State:
        state = self.game.new_state()
        for action in self.actions:
            state.apply(action)
        return state

    def _add(self, player: int, action: int) -> None:
        # A pass after the last ply of all is one too many.
        if action != self._pass or len(self.actions) < self.game.max_plies:
            self._turns.add(player, action)


def _is_fixed(rules: _core.GoRules, stones: tuple[int, ...]) -> bool:
    try:
        points = _core.handicap_points(rules.height, rules.width, len(stones))
    except _core.CoreError:
        return False
    return tuple(sorted(points)) == stones
