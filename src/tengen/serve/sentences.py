"""Says in a sentence how strong a bundled player is."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tengen.bundled import Strength

_SCORE = re.compile(r"score against (?P<opponent>.+?)(, [0-9,]+ simulations?)?")
_SOLVED = re.compile(r"moves that an exact solver calls optimal(, .+)?")
_LINES = re.compile(r"lines not lost, against every reply(, .+)?")
_MCTS = re.compile(r"mcts:([0-9]+)")


def strength_sentence(rows: Sequence[Strength]) -> str | None:
    """Returns a sentence about the first measurement whose wording is known, or None.

    Args:
        rows: The measurements of a player, as in its manifest.
    """
    return next(filter(None, map(_sentence, rows)), None)


def _sentence(row: Strength) -> str | None:
    count = row.value * row.number
    if _SOLVED.fullmatch(row.what):
        return (
            f"Plays the best move in {count:,.0f} of {row.number:,} positions, "
            "according to an exact solver."
        )
    if _LINES.fullmatch(row.what):
        if row.value == 1:
            return "Never loses."
        return f"Does not lose {count:,.0f} of {row.number:,} lines of play."
    if match := _SCORE.fullmatch(row.what):
        opponent = _opponent(match["opponent"])
        # A draw counts half: only a full score, or a game without draws, is all wins.
        # GNU Go is the opponent in Go, whose usual komi excludes draws.
        is_whole = round(2 * count) % 2 == 0
        if row.value == 1 or (opponent.startswith("GNU Go") and is_whole):
            return f"Beats {opponent} in {count:,.0f} of {row.number:,} games."
        points = f"{round(2 * count) / 2:,g}"
        return f"Scores {points} of {row.number:,} points against {opponent}."
    return None


def _opponent(name: str) -> str:
    if match := _MCTS.fullmatch(name):
        return f"a search with {int(match[1]):,} random playouts"
    return "random moves" if name == "random" else name
