"""Positions of games as pages draw them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tengen.errors import UsageError
from tengen.games import Game, State
from tengen.play.board import make_board_text, read_stones

__all__ = ["describe_game", "play_moves", "position", "read_moves"]


def describe_game(game: Game) -> dict[str, Any]:
    """Returns what a page must know of a game, as JSON values.

    Keys: ``name``, ``family`` (``go`` of ``go/9``), ``shape`` (``cells``, ``columns``
    or ``text``), ``height``, ``width``, ``letters`` of the columns, ``num_actions``,
    and ``has_pass``.
    """
    text = make_board_text(game)
    return {
        "name": game.name,
        "family": game.name.split("/")[0],
        "shape": text.shape,
        "height": game.height,
        "width": game.width,
        "letters": text.letters,
        "num_actions": game.num_actions,
        "has_pass": text.shape == "cells" and game.policy_layout == "cells_and_pass",
    }


def read_moves(game: Game, moves: Any) -> list[int]:
    """Returns the moves that a page sent.

    Raises:
        UsageError: It is no list of actions, or longer than a game.
    """
    if not isinstance(moves, list) or len(moves) > game.max_plies:
        raise UsageError(
            f"moves (of the page) must be at most {game.max_plies} actions; begin anew"
        )
    if any(type(move) is not int or not 0 <= move < 2**31 for move in moves):
        raise UsageError("moves (of the page) must be action numbers; begin anew")
    return list(moves)


def play_moves(game: Game, moves: Iterable[int]) -> State:
    """Returns the position after moves.

    Raises:
        UsageError: One is not legal.
    """
    state = game.new_state()
    for number, move in enumerate(moves, 1):
        apply_move(state, move, number)
    return state


def apply_move(state: State, move: int, number: int) -> None:
    """Plays a move of a page, or of a file.

    Raises:
        UsageError: It is not legal.
    """
    if state.is_terminal() or move not in state.legal_actions():
        raise UsageError(
            f"move ({move}, number {number}) is not legal here; choose another one"
        )
    state.apply(move)


def position(game: Game, state: State) -> dict[str, Any]:
    """Returns a position as JSON values.

    Keys: ``to_play`` (0 or 1), ``board``, rows of ``X`` (the first player's), ``O`` and
    ``.`` from the top without gaps, or lines of text; ``legal``, and ``result``, of the
    first player in {-1, 0, 1}, None before the end.
    """
    is_over = state.is_terminal()
    is_text = make_board_text(game).shape == "text"
    return {
        "to_play": state.to_play,
        "board": str(state) if is_text else "".join(read_stones(state)),
        "legal": [] if is_over else state.legal_actions(),
        "result": state.returns()[0] if is_over else None,
    }
