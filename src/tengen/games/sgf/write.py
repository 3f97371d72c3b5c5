"""Writing games of Go as SGF."""

from __future__ import annotations

import re

from tengen._core import GoRules, handicap_points, parse_go_name
from tengen.games.go_rules import rules_as_text
from tengen.games.sgf.record import GoRecord
from tengen.games.sgf.stones import LETTERS

__all__ = ["write_sgf"]

_MOVES_A_LINE = 10
_LARGE_KOMI = 50


def write_sgf(record: GoRecord) -> str:
    """Returns the game as SGF FF[4]; ``read_sgf`` reads it back.

    The same record gives the same text. Line breaks in comments become newlines, and
    other white space becomes spaces. The planes that a network is shown
    (``/planes=minigo``, ``/planes=katago``) are not part of the game and left out.

    Args:
        record: The game; its moves are not checked.

    Raises:
        CoreError: The name is not that of a game of Go.
    """
    rules = parse_go_name(record.game)
    usual = GoRules(rules.height, rules.width)
    height, width = rules.height, rules.width
    size = str(width) if height == width else f"{width}:{height}"
    # The reader accepts such a komi only from tengen.
    writer = "AP[tengen]" if abs(rules.komi) > height * width else ""
    lines = [
        f"(;FF[4]CA[UTF-8]{writer}GM[1]SZ[{size}]KM[{_komi(rules)}]"
        f"RU[{rules_as_text(rules)}]"
    ]
    if rules.max_plies != usual.max_plies:
        lines.append(f"PLIES[{rules.max_plies}]")
    black = list(record.black_stones)
    if rules.handicap:
        lines.append(f"HA[{rules.handicap}]")
        black = handicap_points(height, width, rules.handicap)
    lines += [
        name + "".join(f"[{_point(point, rules)}]" for point in sorted(points))
        for name, points in (("AB", black), ("AW", record.white_stones))
        if points
    ]
    if record.first_player != (1 if rules.handicap else 0) or black:
        lines.append(f"PL[{'BW'[record.first_player]}]")
    said = (
        ("PB", _one_line(record.black)),
        ("PW", _one_line(record.white)),
        ("RE", _one_line(record.result)),
        ("C", _escaped(record.comment)),
    )
    lines += [f"{name}[{text}]" for name, text in said if text]
    lines.append(_moves(record, rules))
    return "\n".join(line for line in lines if line) + ")\n"


def _komi(rules: GoRules) -> str:
    """Returns komi; large whole numbers get a point, or they would be hundredths."""
    text = f"{rules.komi:g}"
    is_large = abs(rules.komi) >= min(rules.height * rules.width, _LARGE_KOMI)
    return f"{text}.0" if is_large and "." not in text else text


def _moves(record: GoRecord, rules: GoRules) -> str:
    text = ""
    for number, action in enumerate(record.moves):
        if number % _MOVES_A_LINE == 0 and number > 0:
            text += "\n"
        colour = "BW"[(record.first_player + number) % 2]
        text += f";{colour}[{_point(action, rules)}]"
        if number < len(record.comments) and record.comments[number]:
            text += f"C[{_escaped(record.comments[number])}]"
    return text


def _point(action: int, rules: GoRules) -> str:
    """Returns a point's two letters; empty for a pass."""
    row, column = divmod(action, rules.width)
    return "" if row == rules.height else LETTERS[column] + LETTERS[row]


def _escaped(text: str) -> str:
    return re.sub(r"([\\\]])", r"\\\1", text)


def _one_line(text: str) -> str:
    return _escaped(re.sub(r"[\n\r\t\v\f]", " ", text))
