"""Rules and results of Go as text, in SGF and in KataGo's GTP commands.

Source of the names: KataGo, docs/GTP_Extensions.md and its page of rules. Games in
tengen have area scoring, without group tax and without a button.
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

__all__ = ["go_result", "read_go_rules", "rules_as_json", "rules_as_text"]

# (ko, whether suicide is allowed). The first name of each pair is the one written.
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
# Further keys of the JSON object, with the only values that are supported.
_FIXED = {
    "scoring": "AREA",
    "tax": "NONE",
    "hasButton": False,
    "whiteHandicapBonus": "0",
    "friendlyPassOk": False,
}
_MAX_CHARACTERS = 1000


def read_go_rules(text: str) -> tuple[str, bool] | None:
    """Parses rules; returns (ko, may_suicide) as in ``GoRules``.

    Args:
        text: A name (``tromp-taylor``, ``NZ``, ``Chinese``, ``chinese-ogs``), letters
            in either case, ``_`` and spaces as ``-``; KataGo's short form
            (``koSIMPLEscoreAREAtaxNONEsui0``) or its JSON object.

    Returns:
        The rules; None if the text is unknown, or the rules are not supported.
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
    """Returns the name of the rules, or else KataGo's short form."""
    for name, said in _NAMED.items():
        if said == (rules.ko, rules.may_suicide):
            if name.startswith("chinese-"):
                break
            return name
    return f"ko{rules.ko.upper()}scoreAREAtaxNONEsui{int(rules.may_suicide)}"


def rules_as_json(rules: GoRules) -> dict[str, Any]:
    """Returns KataGo's JSON object of the rules."""
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
    """Returns the result as SGF and GTP write it: ``B+3.5``, ``W+R``, ``0``.

    Args:
        name: The game's name.
        moves: All actions. If they do not end the game, the side to move has resigned.

    Raises:
        UsageError: There is no such game.
        CoreError: A move is not legal.
    """
    state = position_after(open_game(name), moves)
    if not state.is_terminal():
        return f"{'WB'[state.to_play]}+R"
    # The score alone does not decide: a repeated board may end a game as a draw.
    winner = state.returns()[0]
    if winner == 0:
        return "0"
    score = _core.GoPosition(name, list(moves)).score()
    return f"{'B' if winner > 0 else 'W'}+{abs(score):g}"
