"""A game as a file for other programs: SGF where the game has it, else text."""

from __future__ import annotations

from collections.abc import Sequence

from tengen.games import Game, go_result
from tengen.games.sgf import GoRecord, write_sgf
from tengen.play.board import make_board_text

__all__ = ["game_record"]

_SGF_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_GOMOKU = 4  # SGF's number of gomoku and renju


def game_record(
    game: Game, moves: Sequence[int], first: str, second: str
) -> tuple[str, bytes]:
    """Returns the ending of a file's name, and the file.

    Args:
        game: What was played.
        moves: Legal, from the first; the game may go on.
        first: The name of who moved first, printable.
        second: The other's.
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
