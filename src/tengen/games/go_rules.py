"""Formats and parses Go rules, results and points for SGF, GTP and KataGo's commands.

Source of the rules' names: KataGo, docs/GTP_Extensions.md and its rules page. All games
in tengen have area scoring, without group tax and without a button.

Points are written as in GTP, ``D4``: columns are letters from the left, without I, and
rows are numbers from the bottom.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from tengen import _core
from tengen._core import GoRules
from tengen.games.positions import position_after
from tengen.games.registry import open_game

GO_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of the board's columns in GTP; the letter I is skipped."""


def write_vertex(action: int, height: int, width: int) -> str:
    """Returns the GTP vertex of ``action``; height * width is a pass."""
    if action == height * width:
        return "pass"
    row, column = divmod(action, width)
    return f"{GO_COLUMNS[column]}{height - row}"


def read_vertex(text: str, height: int, width: int) -> int | None:
    """Parses a GTP vertex, ignoring case; returns its action, or None if invalid."""
    text = text.upper()
    if text == "PASS":
        return height * width
    match = re.fullmatch(r"([A-HJ-Z])([0-9]{1,2})", text)
    if match is None:
        return None
    row, column = height - int(match[2]), GO_COLUMNS.index(match[1])
    if not (0 <= row < height and column < width):
        return None
    return row * width + column


# Rules by name, as (ko rule, suicide allowed). rules_as_text writes the first three.
_NAMED = {
    "Tromp-Taylor": ("positional", True),
    "NZ": ("situational", True),
    "Chinese": ("simple", False),
    "new-zealand": ("situational", True),
    "chinese-ogs": ("positional", False),
    "chinese-kgs": ("positional", False),
}
_COMPACT = re.compile(
    "ko(SIMPLE|POSITIONAL|SITUATIONAL)scoreAREAtaxNONEsui([01])(?:whb0)?", re.I
)
# The other keys of KataGo's JSON object for rules, and their only supported values.
_FIXED = {
    "scoring": "AREA",
    "tax": "NONE",
    "hasButton": False,
    "whiteHandicapBonus": "0",
    "friendlyPassOk": False,
}
_MAX_CHARACTERS = 1000


def read_go_rules(text: str) -> tuple[str, bool] | None:
    """Parses the text of Go rules; returns (ko, may_suicide) as in ``GoRules``.

    Args:
        text: A name such as ``tromp-taylor``, ``NZ`` or ``chinese-ogs`` (any letter
            case; ``_`` or a space in place of ``-``); or KataGo's short form, such as
            ``koSIMPLEscoreAREAtaxNONEsui0``; or KataGo's JSON object.

    Returns:
        The rules; None if the text is invalid or the rules are not supported.
    """
    text = text.strip()
    if len(text) > _MAX_CHARACTERS:
        return None
    if text.startswith("{"):
        return _read_object(text)
    if match := _COMPACT.fullmatch(text):
        return match[1].lower(), match[2] == "1"
    name = re.sub(r"[_\s]", "-", text).lower()
    named = {key.lower(): value for key, value in _NAMED.items()}
    return named.get(name)


def rules_as_text(rules: GoRules) -> str:
    """Returns the name of the rules, or KataGo's short form if they have no name."""
    for name, said in _NAMED.items():
        if said == (rules.ko, rules.may_suicide):
            if name.startswith("chinese-"):
                break
            return name
    return f"ko{rules.ko.upper()}scoreAREAtaxNONEsui{int(rules.may_suicide)}"


def rules_as_json(rules: GoRules) -> dict[str, Any]:
    """Returns the rules as KataGo's JSON object."""
    return {"ko": rules.ko.upper(), "suicide": rules.may_suicide, **_FIXED}


def _read_object(text: str) -> tuple[str, bool] | None:
    try:
        said = json.loads(text)
    except (ValueError, RecursionError):
        return None
    ko, may_suicide = said.pop("ko", None), said.pop("suicide", None)
    known = {"SIMPLE", "POSITIONAL", "SITUATIONAL"}
    if not isinstance(ko, str) or ko not in known or not isinstance(may_suicide, bool):
        return None
    if any(key not in _FIXED or said[key] != _FIXED[key] for key in said):
        return None
    return ko.lower(), may_suicide


def go_result(name: str, moves: Sequence[int]) -> str:
    """Returns the result of a game of Go as in SGF and GTP: ``B+3.5``, ``W+R``, ``0``.

    Args:
        name: The game's name.
        moves: All actions of the game. If they do not end it, the side to move has
            resigned.

    Raises:
        UsageError: The game does not exist.
        CoreError: A move is not legal.
    """
    state = position_after(open_game(name), moves)
    if not state.is_terminal():
        return f"{'WB'[state.to_play]}+R"
    # Take the winner from returns(): the score does not show a draw by repetition.
    winner = state.returns()[0]
    if winner == 0:
        return "0"
    score = _core.GoPosition(name, list(moves)).score()
    return f"{'B' if winner > 0 else 'W'}+{abs(score):g}"
