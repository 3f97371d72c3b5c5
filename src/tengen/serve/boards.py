"""Converts games to JSON values for web pages, and to files for other programs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

from tengen.errors import TengenError, UsageError
from tengen.games import Game, State, go_result, open_game
from tengen.games.sgf import GoRecord, write_sgf
from tengen.play.board import make_board_text, read_stones

_SGF_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_GOMOKU = 4  # SGF's game number of gomoku and renju
# Openings that show what a game looks like, by family: offsets (row, column) from the
# centre, or actions.
_POINTS = {
    "go": ((-1, 1), (1, -1), (1, 1), (-1, -1), (2, 0), (2, -1), (0, 2), (-2, 1)),
    "gomoku": ((0, 0), (-1, 1), (1, 1), (-1, -1), (1, -1), (2, 2), (-1, 0), (-2, 0)),
}
_ACTIONS = {"connect4": (3, 3, 3, 2, 4, 4, 2, 5, 2), "tictactoe": (4, 0, 2, 6, 3)}


def describe_game(game: Game) -> dict[str, Any]:
    """Returns the properties of a game that pages use, as JSON values.

    Keys: ``name``, ``family`` (the first part of the name, such as ``go``), ``shape``
    (``cells``, ``columns`` or ``text``), ``height``, ``width``, ``letters`` (of the
    columns), ``num_actions``, and ``has_pass``.
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
    """Validates the moves that a page sent, and returns them as a list.

    Raises:
        UsageError: ``moves`` is not a list of action numbers, or is longer than a game.
    """
    if not isinstance(moves, list) or len(moves) > game.max_plies:
        raise UsageError(
            f"moves (of the page) must be at most {game.max_plies} actions; restart"
        )
    if any(type(move) is not int or not 0 <= move < 2**31 for move in moves):
        raise UsageError("moves (of the page) must be action numbers; start a new game")
    return list(moves)


def play_moves(game: Game, moves: Iterable[int]) -> State:
    """Returns the position after ``moves``.

    Raises:
        UsageError: A move is illegal.
    """
    state = game.new_state()
    for number, move in enumerate(moves, 1):
        apply_move(state, move, number)
    return state


def apply_move(state: State, move: int, number: int) -> None:
    """Plays the move ``move``, which has the number ``number`` in its game.

    Raises:
        UsageError: The move is illegal.
    """
    if state.is_terminal() or move not in state.legal_actions():
        raise UsageError(
            f"move ({move}, number {number}) is not legal here; choose another one"
        )
    state.apply(move)


def position(game: Game, state: State) -> dict[str, Any]:
    """Returns a position as JSON values.

    Keys: ``to_play`` (0 or 1); ``board``, all rows from the top in one string of ``X``
    (the first player), ``O`` and ``.``, or the position's text if the game's shape is
    ``text``; ``legal``, the legal actions; and ``result``, the first player's result in
    {-1, 0, 1}, or None before the end.
    """
    is_over = state.is_terminal()
    is_text = make_board_text(game).shape == "text"
    return {
        "to_play": state.to_play,
        "board": str(state) if is_text else "".join(read_stones(state)),
        "legal": [] if is_over else state.legal_actions(),
        "result": state.returns()[0] if is_over else None,
    }


@lru_cache(maxsize=256)
def picture(task: str) -> dict[str, Any] | None:
    """Returns the board of a game early in an opening, for a small picture of the game.

    Keys: ``game``, as in ``describe_game``, and ``board``, as in ``position``. Returns
    None if the task is not a game, may not be imported, or has no board of cells.

    Args:
        task: Name of the task.
    """
    try:
        game = open_game(task)
    except TengenError:
        return None
    told = describe_game(game)
    if told["shape"] == "text":
        return None
    middle = game.height // 2 * game.width + game.width // 2
    points = _POINTS.get(told["family"], ())
    actions = [middle + row * game.width + column for row, column in points]
    state = game.new_state()
    for action in actions or _ACTIONS.get(told["family"], ()):
        if not state.is_terminal() and action in state.legal_actions():
            state.apply(action)
    return {"game": told, "board": position(game, state)["board"]}


def game_record(
    game: Game, moves: Sequence[int], first: str, second: str
) -> tuple[str, bytes]:
    """Returns a game record as (file name extension, content).

    Args:
        game: The game.
        moves: Legal moves from the start. The game need not have ended.
        first: Name of the first player, in printable characters.
        second: Name of the second player, in printable characters.
    """
    state = game.new_state()
    for move in moves:
        state.apply(move)
    family = game.name.split("/")[0]
    if family == "go":
        record = GoRecord(
            game=game.name,
            moves=tuple(moves),
            first_player=game.new_state().to_play,
            result=go_result(game.name, moves) if state.is_terminal() else "",
            black=first,
            white=second,
        )
        return "sgf", write_sgf(record).encode(errors="replace")
    text = make_board_text(game)
    if family == "gomoku":
        nodes = [
            f";{'BW'[ply % 2]}[{_point(move, game)}]" for ply, move in enumerate(moves)
        ]
        result = ""
        if state.is_terminal():
            result = {1.0: "RE[B+]", -1.0: "RE[W+]"}.get(state.returns()[0], "RE[0]")
        header = (
            f"(;GM[{_GOMOKU}]FF[4]CA[UTF-8]AP[tengen]SZ[{game.width}]"
            f"PB[{_escaped(first)}]PW[{_escaped(second)}]{result}"
        )
        return "sgf", "".join([header, *nodes, ")\n"]).encode(errors="replace")
    lines = [f"{game.name}: {first} against {second}"]
    lines += [f"{ply}. {text.write(move)}" for ply, move in enumerate(moves, 1)]
    return "txt", ("\n".join([*lines, "", str(state)]) + "\n").encode()


def _point(move: int, game: Game) -> str:
    row, column = divmod(move, game.width)
    return _SGF_LETTERS[column] + _SGF_LETTERS[row]


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("]", "\\]")
