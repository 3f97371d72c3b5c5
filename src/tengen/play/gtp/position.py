"""The position of a GTP session, in which either side may move at any time.

Controllers may place stones, play two moves of one side in a row, and continue after
two passes. In the core's games sides alternate, so ``GoTurns`` inserts a pass for each
skipped turn.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass, replace

from tengen import _core
from tengen.games import Game, go_result, position_after
from tengen.games.go_turns import GoTurns
from tengen.games.sgf import GoRecord, is_fixed_handicap, setup_moves

MAX_PLIES = 4 * 19 * 19
"""Ply limit of GTP games. It exceeds the limit of self-play, because setup stones and
inserted passes also count as plies."""


@dataclass(frozen=True)
class Start:
    """The setup of a game before the first move."""

    game: str
    """Name of the game, with board size, ko rule, suicide rule and ply limit."""
    komi: float
    """Komi, White's compensation in points."""
    black_stones: tuple[int, ...] = ()
    """Points with black setup stones, in increasing order."""
    white_stones: tuple[int, ...] = ()
    """Points with white setup stones, in increasing order."""
    first_player: int = 0
    """The side that moves first: 0 for Black, 1 for White."""

    def record(self) -> GoRecord:
        """Returns the setup as a game record without moves.

        Handicap stones on the standard points become part of the record's game name.
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
    """A position of a GTP session: a setup and the moves after it. Immutable.

    Args:
        start: The setup before the moves.
        game: The game that ``start.record()`` names.
        moves: The moves as (player, action).

    Attributes:
        moves: The moves as (player, action).
        num_setup: Number of leading actions that place setup stones.
        state: The core's state after the moves.

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
        """The actions of the core's game that lead to this position."""
        return self._turns.actions

    @property
    def is_passed_to(self) -> bool:
        """Whether the last action is the inserted pass of a skipped side."""
        return self._turns.is_passed_to

    @property
    def closing_pass(self) -> list[tuple[int, int, int]]:
        """Actions to exclude (see ``Player.begin``): a pass after an inserted pass."""
        return [(self.state.to_play, self._pass, 1)] if self.is_passed_to else []

    def after(self, player: int, action: int) -> Position:
        """Returns the position after one more move.

        Raises:
            CoreError: The move is illegal.
        """
        return Position(self.start, self.game, (*self.moves, (player, action)))

    def turn_of(self, player: int) -> Position:
        """Returns the position with ``player`` to move; inserts a pass if needed."""
        if self.state.to_play == player or self.state.is_terminal():
            return self
        return self._on(self._turns.turned(player))

    def going_on(self) -> Position:
        """Returns the position before the two passes that ended the game.

        If the game has not ended with two passes, returns this position.
        """
        return self if self._turns.num_passes < 2 else self._on(self._turns.going_on())

    def record(self) -> GoRecord:
        """Returns the record of the game, with the result if the game has ended."""
        is_over = self.state.is_terminal()
        rules = _core.parse_go_name(self.game.name)
        usual = _core.GoRules(rules.height, rules.width).max_plies
        # Record the default ply limit of the board size, unless the game exceeds it.
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
        """Black's area minus White's area minus komi, on the current board."""
        return _core.GoPosition(self.game.name, self.actions).score()

    @property
    def _pass(self) -> int:
        return self.game.num_actions - 1

    def _on(self, turns: GoTurns) -> Position:
        """Returns a position with the same moves and the actions of ``turns``."""
        position = copy(self)
        position._turns = turns
        position.state = position_after(self.game, turns.actions)
        return position

    def _add(self, player: int, action: int) -> None:
        # Ignore a pass after the ply limit: the game has already ended.
        if action != self._pass or len(self.actions) < self.game.max_plies:
            self._turns.add(player, action)
