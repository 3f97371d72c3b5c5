"""Reading games of Go from SGF."""

from __future__ import annotations

import codecs
import re

from tengen._core import CoreError, GoRules, handicap_points
from tengen.games.go_rules import read_go_rules
from tengen.games.go_turns import GoTurns
from tengen.games.sgf.record import GoRecord, replay
from tengen.games.sgf.tree import (
    MAX_CHARACTERS,
    Node,
    parse_tree,
    plain_text,
    refuse,
)

__all__ = ["read_sgf"]

_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_MAX_SIZE = 19
_MAX_KOMI = 361
_MAX_HUNDREDTHS = 1000
_MAX_STONES = 4
_SETUP = ("AB", "AW", "AE")
_GAME_INFO = ("KM", "HA", "RU", "RE", "PB", "PW")
# What a charset must leave as it is, so that names of properties and brackets are seen.
_ASCII = (
    "".join(map(chr, range(32, 92)))
    + "\\x41\\u0041"
    + "".join(map(chr, range(93, 127)))
)
_CHARSET = re.compile(rb"\bCA\s*\[([^\]]*)\]")


def read_sgf(
    text: str | bytes, *, main_line: bool = False, num_moves: int | None = None
) -> GoRecord:
    """Returns the game of an SGF text.

    A board of 19x19 and a komi of 7.5 are meant where nothing is said. Rules that no
    name of a game can say (territory scoring) become the usual ones: moves are checked
    by them, and the result is kept as it stands.

    What servers write otherwise: a side that moves twice in a row was passed to, two
    passes before another stone are none,
    ``HA`` without ``AB`` and Black's move means the fixed points, and a komi of
    hundredths (375), of stones by Chinese counting (3.75) and with a comma is points.

    Args:
        text: One game; bytes in the charset that it names, else UTF-8 or Latin-1.
        main_line: Whether a game with variations is read, along its first ones.
        num_moves: How many ``B`` and ``W`` are read, from the first, at least 0; all
            where it is None. The result stays that of the whole game.

    Raises:
        UsageError: It is no SGF, no game of Go on a board of 2 to 19, has variations,
            stones set after the start, or a move that is not legal. One line, which
            says what and what to do.
    """
    if isinstance(text, bytes):
        text = _decoded(text)
    nodes, has_variations = parse_tree(text.removeprefix("\ufeff"))
    if has_variations and not main_line:
        rule = "must be one line of play; ask for the main line"
        raise refuse("text", "variations", rule)
    root = _with_game_info(nodes)
    rules = _rules(root)
    black, white = _stones(root, rules)
    moves, colours, comments = _moves(nodes, rules)
    if not black and not (colours and colours[0] == 0):
        black = _handicap(root, rules)
    _check_handicap(root, black, colours)
    first = _first_player(root, colours, black, white)
    moves, said = _with_passes(
        moves[:num_moves], colours[:num_moves], comments[:num_moves], first, rules
    )
    if black and not white and first == 1 and _is_standard(rules, black):
        rules.handicap, black = len(black), []
    _set_plies(root, rules)
    record = GoRecord(
        game=rules.name,
        moves=tuple(moves),
        first_player=first,
        black_stones=tuple(black),
        white_stones=tuple(white),
        result=_line(root, "RE"),
        black=_line(root, "PB"),
        white=_line(root, "PW"),
        comment=_comment(root) if not _has_move(root) else "",
        comments=tuple(said) if any(said) else (),
    )
    replay(record)
    return record


def _decoded(text: bytes) -> str:
    if len(text) > 4 * MAX_CHARACTERS:
        rule = f"must be at most {4 * MAX_CHARACTERS} bytes; keep games apart"
        raise refuse("text", f"{len(text)} bytes", rule)
    text = text.removeprefix(codecs.BOM_UTF8)
    named = _CHARSET.search(text)
    name = named[1].decode("latin-1").strip() if named else ""
    try:
        plain = text.decode()
    except UnicodeDecodeError:
        plain = ""
    try:
        if name and _ASCII.encode().decode(name) == _ASCII:
            said = text.decode(name, errors="replace")
            # Where an editor made UTF-8 of a file that says otherwise, brackets go.
            if not plain or said.count("]") == plain.count("]"):
                return said
    except (LookupError, ValueError):
        pass  # no charset, or none that this one text can be in
    return plain or text.decode("latin-1")


def _one(node: Node, name: str) -> str | None:
    """Returns the value of a property that has one, None where it is absent."""
    values = node.get(name)
    if values is None:
        return None
    if len(values) > 1:
        raise refuse(name, "several values", "must have one value; keep one")
    return values[0]


def _line(node: Node, name: str) -> str:
    return plain_text(_one(node, name) or "", keep_lines=False).strip(" ")


def _comment(node: Node) -> str:
    return plain_text(_one(node, "C") or "", keep_lines=True)


def _has_move(node: Node) -> bool:
    return "B" in node or "W" in node


def _whole(node: Node, name: str, default: int) -> int:
    text = _line(node, name)
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,6}", text):
        raise refuse(name, text, "must be a whole number; correct it")
    return int(text)


def _rules(root: Node) -> GoRules:
    """Returns the rules that the root says, but for handicap and plies."""
    if _whole(root, "GM", 1) != 1:
        raise refuse("GM", _line(root, "GM"), "must be 1, Go; only Go is read")
    if not 1 <= _whole(root, "FF", 4) <= 4:
        raise refuse("FF", _line(root, "FF"), "must be 4 or less; write FF[4]")
    size = _line(root, "SZ") or "19"
    match = re.fullmatch(r"([0-9]{1,3})(?:\s*:\s*([0-9]{1,3}))?", size)
    width, height = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (2 <= width <= _MAX_SIZE and 2 <= height <= _MAX_SIZE):
        raise refuse("SZ", size, f"must be 2 to {_MAX_SIZE}; no other board is played")
    rules = GoRules(height, width)
    if komi := _line(root, "KM"):
        rules.komi = _komi(komi)
    said = read_go_rules(_line(root, "RU"))
    if said is not None:
        rules.ko, rules.may_suicide = said
    return rules


def _komi(text: str) -> float:
    """Returns points, which servers also write in hundredths and in stones."""
    if re.fullmatch(r"[+-]?[0-9]{1,6}([.,][0-9]{0,6})?", text):
        komi = float(text.replace(",", "."))
        if _MAX_KOMI < komi < _MAX_HUNDREDTHS:
            komi /= 100
        # A quarter is none of points: 3.75 stones of White's are 7.5 points.
        if 4 * komi % 2 == 1 and abs(komi) <= _MAX_STONES:
            komi *= 2
        if 2 * komi == int(2 * komi) and abs(komi) <= _MAX_KOMI:
            return komi
    rule = f"must be whole or half points up to {_MAX_KOMI}; correct it"
    raise refuse("KM", text, rule)


def _point(text: str, rules: GoRules, name: str) -> int:
    text = text.strip()
    if re.fullmatch("[a-z]{2}", text):
        column, row = (_LETTERS.index(letter) for letter in text)
        if row < rules.height and column < rules.width:
            return row * rules.width + column
    rule = f"must be two letters, a point of the {rules.height}x{rules.width} board"
    raise refuse(name, text, f"{rule}; correct it")


def _points(node: Node, name: str, rules: GoRules) -> list[int]:
    """Returns the points of a list, rectangles filled, in increasing order."""
    points: list[int] = []
    for value in node.get(name, ()):
        if not value.strip() and len(node[name]) == 1:
            break  # AB[] is an empty list
        first, _, last = value.partition(":")
        top, left = divmod(_point(first, rules, name), rules.width)
        bottom, right = divmod(_point(last or first, rules, name), rules.width)
        if bottom < top or right < left:
            rule = "must name its upper left corner first; correct it"
            raise refuse(name, value, rule)
        points += [
            row * rules.width + column
            for row in range(top, bottom + 1)
            for column in range(left, right + 1)
        ]
        if len(points) > rules.height * rules.width:
            break
    if len(set(points)) < len(points):
        raise refuse(name, "a point twice", "must name a point once; correct it")
    return sorted(points)


def _stones(root: Node, rules: GoRules) -> tuple[list[int], list[int]]:
    black, white, empty = (_points(root, name, rules) for name in _SETUP)
    for a, b in ((black, white), (black, empty), (white, empty)):
        if set(a) & set(b):
            rule = "must not name a point of one another; correct them"
            raise refuse("AB, AW and AE", "a point twice", rule)
    return black, white


def _handicap(root: Node, rules: GoRules) -> list[int]:
    """Returns the fixed points of as many stones as ``HA`` counts."""
    handicap = _whole(root, "HA", 0)
    if handicap < 2:
        return []
    try:
        return sorted(handicap_points(rules.height, rules.width, handicap))
    except CoreError as error:
        rule = "must be a handicap that the board has points for; write AB"
        raise refuse("HA", handicap, rule) from error


def _check_handicap(root: Node, black: list[int], colours: list[int]) -> None:
    handicap = _whole(root, "HA", 0)
    # Some write them as Black's first moves.
    num_first = colours.index(1) if 1 in colours else len(colours)
    if handicap > 1 and handicap != (len(black) or num_first):
        rule = f"must be the number of AB's stones, {len(black)}; correct one"
        raise refuse("HA", handicap, rule)


def _is_standard(rules: GoRules, black: list[int]) -> bool:
    try:
        points = handicap_points(rules.height, rules.width, len(black))
    except CoreError:
        return False
    return sorted(points) == black


def _with_game_info(nodes: list[Node]) -> Node:
    """Returns the root with what a later node may say of the whole game.

    What changes the board or the game there is refused.
    """
    root = dict(nodes[0])
    for node in nodes[1:]:
        for name in (*_SETUP, "PL"):
            if name in node:
                rule = "must stand in the root, where a game begins"
                raise refuse(name, node[name][0], f"{rule}; keep the moves before")
        for name in ("GM", "SZ"):
            if name in node and node[name] != root.get(name):
                rule = "must stand in the root alone; correct it"
                raise refuse(name, node[name][0], rule)
        for name in _GAME_INFO:
            if name in node:
                root.setdefault(name, node[name])
    return root


def _moves(
    nodes: list[Node], rules: GoRules
) -> tuple[list[int], list[int], list[list[str]]]:
    """Returns actions, who made them, and what is said of each."""
    num_points = rules.height * rules.width
    moves: list[int] = []
    colours: list[int] = []
    comments: list[list[str]] = []
    for number, node in enumerate(nodes):
        if "B" in node and "W" in node:
            raise refuse("B and W", number, "must stand in nodes of their own; correct")
        if not _has_move(node):
            if number > 0 and comments:
                comments[-1].append(_comment(node))
            continue
        name = "B" if "B" in node else "W"
        text = (_one(node, name) or "").strip()
        is_pass = text in ("", "tt")
        moves.append(num_points if is_pass else _point(text, rules, name))
        colours.append("BW".index(name))
        comments.append([_comment(node)])
    return moves, colours, comments


def _first_player(
    root: Node, colours: list[int], black: list[int], white: list[int]
) -> int:
    said = _line(root, "PL")
    if said:
        if said.upper() not in ("B", "W", "BLACK", "WHITE"):
            raise refuse("PL", said, "must be B or W; correct it")
        return "BW".index(said[0].upper())
    if colours:
        return colours[0]
    return int(bool(black) and not white)


def _with_passes(
    moves: list[int],
    colours: list[int],
    comments: list[list[str]],
    first: int,
    rules: GoRules,
) -> tuple[list[int], list[str]]:
    """Returns actions and comments, with the passes that nobody wrote."""
    if colours and colours[0] != first:
        what = f"{'BW'[colours[0]]} as move 1"
        raise refuse("move", what, "must be of the side that PL says; correct one")
    turns = GoTurns(first, rules.height * rules.width)
    said: list[list[str]] = []
    for move, colour, comment in zip(moves, colours, comments, strict=True):
        turns.add(colour, move)
        place = len(turns.actions) - 1
        # What was said of passes that are gone, and of one that is no move, stays.
        last, *more = [*said[place:], comment]
        for text in more:
            last += text
        del said[place:]
        said += [[] for _ in range(place - len(said))]
        said.append(last)
    return turns.actions, ["\n".join(filter(None, texts)) for texts in said]


def _set_plies(root: Node, rules: GoRules) -> None:
    plies = _whole(root, "PLIES", rules.max_plies)
    if plies < 1:
        raise refuse("PLIES", plies, "must be at least 1; correct it")
    rules.max_plies = plies
