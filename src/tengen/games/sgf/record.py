"""The record of a game of Go, and the moves that place its setup stones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from tengen._core import CoreError, GoRules, handicap_points
from tengen.errors import UsageError
from tengen.games.protocol import Game, State
from tengen.games.registry import open_game
from tengen.games.vertices import write_vertex

__all__ = ["GoRecord", "is_fixed_handicap", "replay", "setup_moves", "stones_on"]


@dataclass(frozen=True, kw_only=True)
class GoRecord:
    """One game of Go, finished or not."""

    game: str
    """The game's name, ``go/9/komi=6.5``, which includes standard handicap stones."""
    moves: tuple[int, ...] = ()
    """The actions, after the setup."""
    first_player: int = 0
    """The player of the first action: 0 Black, 1 White."""
    black_stones: tuple[int, ...] = ()
    """Black's other setup stones, points in increasing order."""
    white_stones: tuple[int, ...] = ()
    """White's setup stones, points in increasing order."""
    result: str = ""
    """The result as in SGF: ``B+3.5``, ``W+R``, ``0`` for a draw, ``Void`` for no
    result; empty if unknown."""
    black: str = ""
    """Black's name, on one line."""
    white: str = ""
    """White's name, on one line."""
    comment: str = ""
    """A comment on the whole game."""
    comments: tuple[str, ...] = ()
    """A comment for each move; empty if no move has one."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """What the reader ignored, a line each; not part of the game."""


def setup_moves(record: GoRecord) -> list[int]:
    """Returns moves that place a record's setup stones on an empty board.

    The sides alternate, beginning with Black, and pass if they have no stone to place.
    Passes come first, so that the setup does not end with two passes, which would end
    the game. Then it is the turn of ``first_player``.

    Returns:
        Actions to play before the record's; empty if there is no setup.

    Raises:
        UsageError: There is no such game, or the setup is impossible: a stone has no
            liberty or is off the board, or two stones are on one point.
    """
    black, white = record.black_stones, record.white_stones
    game = open_game(record.game)
    state = game.new_state()
    if not (black or white) and state.to_play == record.first_player:
        return []
    num_points = game.height * game.width
    num_white = max(len(white), len(black) - record.first_player)
    num_black = num_white + record.first_player
    black_turns = [num_points] * (num_black - len(black)) + list(black)
    white_turns = [num_points] * (num_white - len(white)) + list(white)
    moves = []
    for turn, action in enumerate(black_turns):
        moves += [action, *white_turns[turn : turn + 1]]
    _play(game, state, moves, "setup")
    if len(state.legal_actions()) == 0 or not _has_stones(state, record):
        raise UsageError(
            f"SGF setup ({len(black)} and {len(white)} stones) must leave every stone "
            f"a liberty, in a game of handicap 0; correct the stones"
        )
    return moves


def replay(record: GoRecord) -> tuple[State, list[int]]:
    """Returns the position after the record's moves, and all moves that led to it.

    Raises:
        UsageError: There is no such game, or a stone or a move is not legal.
    """
    game = open_game(record.game)
    state = game.new_state()
    moves = setup_moves(record)
    _play(game, state, moves, "setup")
    _play(game, state, record.moves, "move")
    return state, [*moves, *record.moves]


def is_fixed_handicap(rules: GoRules, stones: Sequence[int]) -> bool:
    """Returns whether stones, in increasing order, stand on the fixed handicap points.

    Args:
        rules: The rules, which have the board.
        stones: The points.
    """
    try:
        points = handicap_points(rules.height, rules.width, len(stones))
    except CoreError:
        return False
    return sorted(points) == list(stones)


def stones_on(state: State) -> tuple[set[int], set[int]]:
    """Returns the points of Black's and of White's stones in a position of Go."""
    planes = state.observation()
    own, other = (set(planes[plane].ravel().nonzero()[0].tolist()) for plane in (1, 2))
    return (own, other) if state.to_play == 0 else (other, own)


def _play(game: Game, state: State, moves: Sequence[int], what: str) -> None:
    for number, action in enumerate(moves, 1):
        try:
            state.apply(action)
        except CoreError as error:
            is_on = 0 <= action < game.num_actions
            vertex = write_vertex(action, game.height, game.width) if is_on else action
            raise UsageError(
                f"SGF {what} ({vertex}, number {number}) must be legal; keep the moves "
                f"before it"
            ) from error


def _has_stones(state: State, record: GoRecord) -> bool:
    """Returns whether exactly the record's stones stand on the board."""
    return stones_on(state) == (set(record.black_stones), set(record.white_stones))
