"""The result of a game of Go as text."""

from __future__ import annotations

from collections.abc import Sequence

from tengen import _core
from tengen.games.registry import open_game

__all__ = ["go_result"]


def go_result(name: str, moves: Sequence[int]) -> str:
    """Returns the result as SGF and GTP write it: ``B+3.5``, ``W+R``, ``0``.

    Args:
        name: The game, by its own name.
        moves: Actions from the first. Where they do not end the game, the side to
            move has resigned.

    Raises:
        UsageError: There is no such game.
        CoreError: A move is not legal.
    """
    state = open_game(name).new_state()
    for move in moves:
        state.apply(move)
    if not state.is_terminal():
        return f"{'WB'[state.to_play]}+R"
    # Not by the score alone: a board that comes back may end a game as a draw.
    winner = state.returns()[0]
    if winner == 0:
        return "0"
    score = _core.GoPosition(name, list(moves)).score()
    return f"{'B' if winner > 0 else 'W'}+{abs(score):g}"
