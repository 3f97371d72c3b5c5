"""The board of a GTP session, where either side may move at any time.

Controllers place stones, let one side move twice, and continue after two passes. In
the core's game the sides alternate; ``GoTurns`` translates.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from tengen import _core
from tengen.games import Game, go_result, position_after
from tengen.games.go_turns import GoTurns
from tengen.games.sgf import GoRecord, is_fixed_handicap, setup_moves

__all__ = ["MAX_PLIES", "Position", "Start"]

MAX_PLIES = 4 * 19 * 19
"""The longest game that the core plays. Setup stones and the passes of a side that was
skipped count as plies, so the usual limit would end games too early."""


@dataclass(frozen=True)
class Start:
    """The setup before the first move."""

    game: str
    """Name of the game: board, ko rule, suicide, plies."""
    komi: float
    """Komi, White's compensation."""
    black_stones: tuple[int, ...] = ()
    """Points in increasing order."""
    white_stones: tuple[int, ...] = ()
    """Points in increasing order."""
    first_player: int = 0
    """The side to move first: 0 Black, 1 White."""

    def record(self) -> GoRecord:
        """Returns the setup as a record without moves.

        Standard handicap stones become part of the game's name.
        """
        rules = _core.parse_go_name(self.game)
        rules.komi, rules.handicap = self.komi, 0
        black = self.black_stones
        if (
            self.first_player == 1
            and not self.white_stones
            and is_fixed_handicap(rules, black)
        ):
            rules.handicap, black = len(black), ()
        return GoRecord(
            game=rules.name,
            first_player=self.first_player,
            black_stones=black,
            white_stones=self.white_stones,
        )


class Position:
    """A setup and the moves after it. Immutable.

    Args:
        start: The setup before the moves.
        game: The game of ``start.record()``.
        moves: (player, action) of each.

    Attributes:
        moves: The moves, as given.
        num_setup: Number of leading actions that place the setup.
        state: The core's position after the moves.

    Raises:
        UsageError: The setup is impossible.
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
        self.state = position_after(game, self.actions)

    @property
    def actions(self) -> list[int]:
        """The legal actions of the core's game that lead here."""
        return self._turns.actions

    @property
    def is_passed_to(self) -> bool:
        """See ``GoTurns``."""
        return self._turns.is_passed_to

    @property
    def closing_pass(self) -> list[tuple[int, int, int]]:
        """Forbids a pass after the pass of a skipped side; see ``AnalysisRequest``."""
        return [(self.state.to_play, self._pass, 1)] if self.is_passed_to else []

    def after(self, player: int, action: int) -> Position:
        """Returns the position after one more move.

        Raises:
            CoreError: It is not legal.
        """
        return Position(self.start, self.game, (*self.moves, (player, action)))

    def turn_of(self, player: int) -> Position:
        """Returns the position with a side to move; the other side passes if needed."""
        if self.state.to_play == player or self.state.is_terminal():
            return self
        return self._on(self._turns.turned(player))

    def going_on(self) -> Position:
        """Returns the position without the two passes that ended the game.

        Returns itself if the game has not ended so.
        """
        return self if self._turns.num_passes < 2 else self._on(self._turns.going_on())

    def record(self) -> GoRecord:
        """Returns the game's record, with its result if it is over."""
        is_over = self.state.is_terminal()
        rules = _core.parse_go_name(self.game.name)
        usual = _core.GoRules(rules.height, rules.width).max_plies
        # The session's limit is not the game's, unless the game is longer than usual.
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
        """Black's area minus White's area and komi, as the board stands."""
        return _core.GoPosition(self.game.name, self.actions).score()

    @property
    def _pass(self) -> int:
        return self.game.num_actions - 1

    def _on(self, turns: GoTurns) -> Position:
        """Returns the position of the same moves in another order of turns."""
        position = copy(self)
        position._turns = turns
        position.state = position_after(self.game, turns.actions)
        return position

    def _add(self, player: int, action: int) -> None:
        # A pass after the last possible ply is dropped.
        if action != self._pass or len(self.actions) < self.game.max_plies:
            self._turns.add(player, action)
