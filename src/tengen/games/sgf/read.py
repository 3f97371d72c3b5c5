"""Reads games of Go from SGF.

An invalid property that does not affect the position is not an error: the reader uses
or ignores it, and adds a note if it may matter to the user.
"""

from __future__ import annotations

import dataclasses
import re

from tengen._core import CoreError, GoRules, handicap_points
from tengen.errors import UsageError
from tengen.games.go_rules import read_go_rules
from tengen.games.go_turns import GoTurns
from tengen.games.sgf.charset import parse_bytes
from tengen.games.sgf.record import (
    GoRecord,
    check_later_stones,
    is_fixed_handicap,
    read_move,
    replay,
    start_stones,
)
from tengen.games.sgf.tree import (
    Node,
    Tree,
    has_move,
    parse_tree,
    plain_text,
    refuse,
)

_MAX_SIZE = 19
# An integer KM of at least this value gives the komi in hundredths of a point.
_MIN_HUNDREDTHS = 275
# Maximum KM that can mean stones, as in Chinese counting. One stone is 2 points.
_MAX_STONES = 4
_GAME_INFO = ("KM", "HA", "RU", "RE", "PB", "PW")


def read_sgf(
    text: str | bytes, *, main_line: bool = False, num_moves: int | None = None
) -> GoRecord:
    """Returns the first game of an SGF text.

    The defaults are a 19x19 board and a komi of 7.5. Rules that tengen does not support
    (territory scoring) are replaced with the default rules, or with these and simple ko
    if a move is legal only under simple ko. The record's result is the file's.

    Dialects of servers and editors are supported; docs/reference/sgf.md lists them.

    Args:
        text: The SGF text. Bytes are decoded with the charset that the file names, or
            with a guessed charset.
        main_line: Whether to read the main line of a game with variations; if False,
            such a game is an error.
        num_moves: Number of moves (``B`` and ``W`` properties) to read, at least 0;
            None for all. The record's result is still that of the complete game.

    Raises:
        UsageError: The text is not SGF, is not a game of Go on a board of size 2 to 19,
            has variations or an illegal move, or changes the position with setup stones
            after the first move.
    """
    if isinstance(text, bytes):
        tree = parse_bytes(text)
    else:
        tree = parse_tree(text.removeprefix("\ufeff"))
    if tree.has_variations and not main_line:
        rule = "are not supported here; read only the main line"
        raise refuse("text", "variations", rule)
    notes = _notes(tree)
    num_start, num_read = _parts(tree.nodes, num_moves)
    root = _with_game_info(tree.nodes, num_start)
    nodes = tree.nodes[:num_read]
    rules = GoRules(*_board(root, tree.nodes))
    said_rules = _set_rules(root, rules, notes)
    black, white = start_stones(tree.nodes[:num_start], rules)
    opens = next((name for node in tree.nodes for name in "BW" if name in node), None)
    handicap = _handicap(root, notes)
    if not black and opens != "B" and handicap > 1:
        black = _fixed_stones(rules, root, handicap)
    elif handicap > 1 and black and handicap != len(black):
        notes.append(f"HA ({handicap}) differs from the number of AB, {len(black)}")
    to_play = _to_play(nodes, notes)
    first = _first_player(to_play, opens, black, white)
    if black and not white and first == 1 and is_fixed_handicap(rules, black):
        rules.handicap, black = len(black), []
    start = GoRecord(
        game=rules.name,
        first_player=first,
        black_stones=tuple(black),
        white_stones=tuple(white),
    )
    check_later_stones(nodes, num_start, start, rules)
    moves, colours, comments = _moves(nodes, rules)
    turns = GoTurns(first, rules.height * rules.width)
    actions, said = _with_passes(turns, moves, colours, comments, to_play)
    record = dataclasses.replace(
        start,
        moves=tuple(actions),
        result=_line(root, "RE"),
        black=_line(root, "PB"),
        white=_line(root, "PW"),
        comment=_comment(root) if not has_move(root) else "",
        comments=tuple(said) if any(said) else (),
        notes=tuple(notes),
    )
    return _replayable(record, None if said_rules else rules)


def _replayable(record: GoRecord, unsaid: GoRules | None) -> GoRecord:
    """Returns ``record``, with simple ko if its moves are legal only under simple ko.

    Args:
        record: The record of the game.
        unsaid: The default rules, if the file names no known rules; otherwise None.

    Raises:
        UsageError: A stone or a move is not legal.
    """
    try:
        replay(record)
    except UsageError:
        if unsaid is None:
            raise
        unsaid.ko = "simple"
        other = dataclasses.replace(record, game=unsaid.name)
        try:
            replay(other)
        except UsageError:
            pass
        else:
            return other
        raise
    return record


def _parts(nodes: list[Node], num_moves: int | None) -> tuple[int, int]:
    """Returns how many nodes lead to the first move, and to the last move to read.

    Both counts include the move's own node. ``num_moves`` is None for all nodes.
    """
    places = [place for place, node in enumerate(nodes, 1) if has_move(node)]
    num_start = places[0] if places else len(nodes)
    if num_moves is None or num_moves >= len(places):
        return num_start, len(nodes)
    return num_start, places[num_moves - 1] if num_moves > 0 else 0


def _notes(tree: Tree) -> list[str]:
    """Returns notes about truncation of an SGF text and about further games in it."""
    notes = ["only the first of several games is read"] if tree.is_collection else []
    if tree.is_cut:
        dropped = f"; its last value, of {tree.unfinished[:40]}, is dropped"
        notes.append("the text ends within the game" + dropped * bool(tree.unfinished))
    return notes


def _line(node: Node, name: str, notes: list[str] | None = None) -> str:
    """Returns a property's first value that is not empty; notes differing values."""
    values = (plain_text(v, keep_lines=False).strip(" ") for v in node.get(name, ()))
    said = list(dict.fromkeys(filter(None, values)))
    if notes is not None and len(said) > 1:
        notes.append(f"{name} has several values; the first, {said[0][:40]}, is used")
    return said[0] if said else ""


def _comment(node: Node) -> str:
    texts = (plain_text(value, keep_lines=True) for value in node.get("C", ()))
    return "\n".join(filter(None, texts))


def _board(root: Node, nodes: list[Node]) -> tuple[int, int]:
    """Returns the height and width of the game's board.

    Args:
        root: The root node, with the properties of all nodes before the first move.
        nodes: All nodes. They must not specify a game or a size that differs from the
            root's.
    """
    sizes = {}
    for node in (root, *nodes):
        for game in filter(None, map(str.strip, node.get("GM", ()))):
            if re.fullmatch(r"\+?0{0,5}1|go", game, re.IGNORECASE) is None:
                raise refuse("GM", game, "must be 1 for Go; other games cannot be read")
        for size in filter(None, map(str.strip, node.get("SZ", ()))):
            sizes[_size(size)] = size
            if len(sizes) > 1:
                raise refuse("SZ", size, "must be one size; remove the others")
        if node is root:
            sizes = sizes or {(19, 19): "19"}
    return next(iter(sizes))


def _size(text: str) -> tuple[int, int]:
    """Parses a value of the property ``SZ``; returns the board's height and width."""
    match = re.fullmatch(r"\+?([0-9]{1,3})(?:\s*[:xX]\s*([0-9]{1,3}))?", text)
    width, height = (int(match[1]), int(match[2] or match[1])) if match else (0, 0)
    if not (2 <= width <= _MAX_SIZE and 2 <= height <= _MAX_SIZE):
        raise refuse("SZ", text, f"must be 2 to {_MAX_SIZE}; use such a board")
    return height, width


def _set_rules(root: Node, rules: GoRules, notes: list[str]) -> bool:
    """Sets ``rules``, without handicap, from the root; returns whether RU is known."""
    if text := _line(root, "KM", notes):
        area = rules.height * rules.width
        komi = _komi(text, _line(root, "AP").lower(), area)
        if komi is None:
            notes.append(f"KM ({text[:40]}) is not a komi; {rules.komi:g} is used")
        else:
            rules.komi = komi
    plies = _line(root, "PLIES")
    if re.fullmatch("0*[1-9][0-9]{0,5}", plies):
        rules.max_plies = int(plies)
    said = read_go_rules(_line(root, "RU", notes))
    if said is not None:
        rules.ko, rules.may_suicide = said
    return said is not None


def _komi(text: str, writer: str, area: int) -> float | None:
    """Returns komi in points, converted if the file has hundredths or stones.

    Fox (``AP[foxwq]``) writes 0.5, 5.5, 6.5, 7 and 7.5 points as 50, 275, 325, 350 and
    375, which are hundredths of stones, except 50. No other program gives these numbers
    another meaning. A number with a decimal point is in points. Komi is at most the
    board's area, except in files written by tengen (``AP[tengen]``).

    Args:
        text: The value of ``KM``.
        writer: The value of ``AP`` in lower case.
        area: Number of points of the board.

    Returns:
        The komi; None if it is not a multiple of half a point, or too large.
    """
    if not re.fullmatch(r"[+-]?(?=[.,]?[0-9])[0-9]{0,6}([.,][0-9]{0,6})?", text):
        return None
    komi = float(text.replace(",", "."))
    is_whole = text.lstrip("+-").isdecimal()
    is_tengens = writer == "tengen" and not is_whole
    most = _MAX_SIZE * _MAX_SIZE if is_tengens else area
    size = abs(komi)
    from_here = 50 if "foxwq" in writer else _MIN_HUNDREDTHS
    is_hundredths = size > most or (is_whole and size >= from_here)
    if is_hundredths and size >= 50 and size % 25 == 0:
        komi /= 100
        if 1 <= abs(komi) <= _MAX_STONES:
            komi *= 2
    elif 4 * komi % 2 == 1 and size <= _MAX_STONES:
        komi *= 2  # An odd multiple of 0.25 must be in stones.
    is_komi = 2 * komi == int(2 * komi) and abs(komi) <= most
    return komi if is_komi else None


def _handicap(root: Node, notes: list[str]) -> int:
    """Returns the number of handicap stones in ``HA``; 0 if it has no number."""
    text = _line(root, "HA", notes)
    if match := re.match(r"\+?([0-9]{1,3})(?![0-9])", text):
        return int(match[1])
    if text:
        notes.append(f"HA ({text[:40]}) is not a number")
    return 0


def _fixed_stones(rules: GoRules, root: Node, handicap: int) -> list[int]:
    """Returns the fixed points of a handicap whose stones the file does not list."""
    if len({value.strip() for value in root["HA"]} - {""}) > 1:
        raise refuse("HA", "several values", "must have one value; keep one")
    try:
        return sorted(handicap_points(rules.height, rules.width, handicap))
    except CoreError as error:
        rule = "is too large for the board; list the stones in AB"
        raise refuse("HA", handicap, rule) from error


def _with_game_info(nodes: list[Node], num_start: int) -> Node:
    """Returns the root node, completed with game info from later nodes."""
    root = dict(nodes[0])
    said: set[str] = set()
    for number, node in enumerate(nodes):
        for name in _GAME_INFO if number >= num_start else ("SZ", *_GAME_INFO):
            if name not in said and any(map(str.strip, node.get(name, ()))):
                root[name] = node[name]
                said.add(name)
    return root


def _to_play(nodes: list[Node], notes: list[str]) -> int | None:
    """Returns the side that ``PL`` sets to move after the last move, or None.

    ``PL`` in a move's node is ignored, because its meaning differs between programs.
    """
    to_play: int | None = None
    said: list[str] = []
    for node in nodes:
        if has_move(node):
            to_play = None
            said.clear()
        elif "PL" in node:
            said.clear()
            text = _line(node, "PL", said)
            if text.upper() in ("B", "W", "BLACK", "WHITE"):
                to_play = "BW".index(text[0].upper())
            elif text:
                said.append(f"PL ({text[:40]}) is neither B nor W")
    notes += said
    return to_play


def _moves(
    nodes: list[Node], rules: GoRules
) -> tuple[list[int], list[int], list[list[str]]]:
    """Returns the actions of all moves, their players, and each move's comments."""
    moves: list[int] = []
    colours: list[int] = []
    comments: list[list[str]] = []
    for number, node in enumerate(nodes):
        if not has_move(node):
            if number > 0 and comments:
                comments[-1].append(_comment(node))
            continue
        colour, move = read_move(node, rules)
        moves.append(move)
        colours.append(colour)
        comments.append([_comment(node)])
    return moves, colours, comments


def _first_player(
    to_play: int | None, opens: str | None, black: list[int], white: list[int]
) -> int:
    """Returns the first player: of the first move, else of ``PL``, else the default."""
    if opens is not None:
        return "BW".index(opens)
    return int(bool(black) and not white) if to_play is None else to_play


def _with_passes(
    turns: GoTurns,
    moves: list[int],
    colours: list[int],
    comments: list[list[str]],
    to_play: int | None,
) -> tuple[list[int], list[str]]:
    """Returns actions and their comments, with inserted passes for skipped turns.

    Args:
        turns: The game after its setup, to which the moves are added.
        moves: The actions in the file.
        colours: The player of each action.
        comments: The comments on each action.
        to_play: The side to move after the last move, or None if the file sets none.
    """
    said: list[list[str]] = []
    for move, colour, comment in zip(moves, colours, comments, strict=True):
        turns.add(colour, move)
        place = len(turns.actions) - 1
        # A pass may have been removed or ignored; its comments go to the last action.
        last, *more = [*said[place:], comment]
        for text in more:
            last += text
        del said[place:]
        said += [[] for _ in range(place - len(said))]
        said.append(last)
    if to_play is not None and turns.num_passes < 2:
        turns = turns.turned(to_play)
        if len(turns.actions) < len(said):
            last = said.pop()
            if said:
                said[-1] += last
        said += [[] for _ in range(len(turns.actions) - len(said))]
    return turns.actions, ["\n".join(filter(None, texts)) for texts in said]
