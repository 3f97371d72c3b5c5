"""The record of a game of Go, its setup and replay, and the SGF writer."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from tengen._core import CoreError, GoRules, handicap_points, parse_go_name
from tengen.errors import UsageError
from tengen.games.go_rules import rules_as_text, write_vertex
from tengen.games.protocol import Game, State
from tengen.games.registry import open_game
from tengen.games.sgf.tree import Node, has_move, refuse


@dataclass(frozen=True, kw_only=True)
class GoRecord:
    """The record of one game of Go, finished or not."""

    game: str
    """The game's name, such as ``go/9/komi=6.5``. A handicap on fixed points is part of
    the name."""
    moves: tuple[int, ...] = ()
    """The actions after the setup stones."""
    first_player: int = 0
    """The player of the first action: 0 Black, 1 White."""
    black_stones: tuple[int, ...] = ()
    """Points of Black's setup stones in increasing order, without a fixed handicap."""
    white_stones: tuple[int, ...] = ()
    """Points of White's setup stones, in increasing order."""
    result: str = ""
    """The result as in SGF: ``B+3.5``, ``W+R``, ``0`` for a draw, ``Void`` for no
    result; empty if unknown."""
    black: str = ""
    """Name of the Black player, on one line."""
    white: str = ""
    """Name of the White player, on one line."""
    comment: str = ""
    """A comment on the complete game; empty for none."""
    comments: tuple[str, ...] = ()
    """One comment per move, maybe empty; no entries if no move has a comment."""
    notes: tuple[str, ...] = field(default=(), compare=False)
    """The reader's one-line notes about data that it ignored. Not part of equality."""


def setup_moves(record: GoRecord) -> list[int]:
    """Returns actions that place a record's setup stones on an empty board.

    The sides alternate, starting with Black, so the side with fewer stones also passes.
    Its passes come first, because two passes after the last stone would end the game.
    After the setup it is the turn of ``first_player``.

    Returns:
        The actions that precede the record's moves; empty if no setup is needed.

    Raises:
        UsageError: The game does not exist, or the setup is impossible: a stone has no
            liberty or is off the board, or two stones are on one point.
    """
    black, white = record.black_stones, record.white_stones
    game = open_game(record.game)
    state = game.new_state()
    if not (black or white) and state.to_play == record.first_player:
        return []
    num_points = game.height * game.width
    num_white = max(len(white), len(black) - record.first_player)
    num_black = num_white + record.first_player
    black_turns = [num_points] * (num_black - len(black)) + list(black)
    white_turns = [num_points] * (num_white - len(white)) + list(white)
    moves = []
    for turn, action in enumerate(black_turns):
        moves += [action, *white_turns[turn : turn + 1]]
    _play(game, state, moves, "setup")
    if len(state.legal_actions()) == 0 or not _has_stones(state, record):
        raise UsageError(
            f"SGF setup ({len(black)} and {len(white)} stones) must leave each chain a "
            "liberty, in a game without handicap; correct the stones"
        )
    return moves


def replay(record: GoRecord) -> tuple[State, list[int]]:
    """Returns the position after a record's moves, and all actions with the setup's.

    Raises:
        UsageError: The game does not exist, or a setup stone or a move is not legal.
    """
    game = open_game(record.game)
    state = game.new_state()
    moves = setup_moves(record)
    _play(game, state, moves, "setup")
    _play(game, state, record.moves, "move")
    return state, [*moves, *record.moves]


def is_fixed_handicap(rules: GoRules, stones: Sequence[int]) -> bool:
    """Returns whether ``stones`` are the points of a fixed handicap.

    Args:
        rules: The rules, including the board size.
        stones: Points in increasing order.
    """
    try:
        points = handicap_points(rules.height, rules.width, len(stones))
    except CoreError:
        return False
    return sorted(points) == list(stones)


def stones_on(state: State) -> tuple[set[int], set[int]]:
    """Returns the points of Black's and White's stones in a position of Go."""
    planes = state.observation()
    own, other = (set(planes[plane].ravel().nonzero()[0].tolist()) for plane in (1, 2))
    return (own, other) if state.to_play == 0 else (other, own)


def _play(game: Game, state: State, moves: Sequence[int], what: str) -> None:
    for number, action in enumerate(moves, 1):
        try:
            state.apply(action)
        except CoreError as error:
            is_on = 0 <= action < game.num_actions
            vertex = write_vertex(action, game.height, game.width) if is_on else action
            raise UsageError(
                f"SGF {what} ({vertex}, number {number}) must be legal; remove it and "
                "the later moves"
            ) from error


def _has_stones(state: State, record: GoRecord) -> bool:
    """Returns whether the board of ``state`` has exactly the record's setup stones."""
    return stones_on(state) == (set(record.black_stones), set(record.white_stones))


LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""The letters of the board's columns and rows in SGF."""
_STONES = ("AB", "AW", "AE")
_PASSES = ("", "tt", "pass")

_Stones: TypeAlias = tuple[set[int], set[int]]


def read_move(node: Node, rules: GoRules) -> tuple[int, int]:
    """Returns a node's move as (player, action); player 0 is Black, 1 White.

    Raises:
        UsageError: The node has several moves, or its point is off the board.
    """
    if "B" in node and "W" in node:
        points = f"{node['B'][0]} and {node['W'][0]}"
        raise refuse("B and W", points, "must be in separate nodes; separate them")
    name = "B" if "B" in node else "W"
    actions = {_action(text.strip(), rules, name) for text in node[name]}
    if len(actions) > 1:
        raise refuse(name, "several values", "must have one value; keep one")
    return "BW".index(name), actions.pop()


def _action(text: str, rules: GoRules, name: str) -> int:
    is_pass = text.lower() in _PASSES
    return rules.height * rules.width if is_pass else _point(text, rules, name)


def _point(text: str, rules: GoRules, name: str) -> int:
    text = text.strip()
    if re.fullmatch("[a-z]{2}", text):
        column, row = (LETTERS.index(letter) for letter in text)
        if row < rules.height and column < rules.width:
            return row * rules.width + column
    rule = f"must be two letters, a point of the {rules.height}x{rules.width} board"
    raise refuse(name, text, f"{rule}; correct it")


def _points(node: Node, name: str, rules: GoRules) -> set[int]:
    """Returns the points in a property's values, which may be points or rectangles."""
    points: set[int] = set()
    for value in dict.fromkeys(node.get(name, ())):
        if not value.strip():
            continue  # An empty value, as in AB[], means no points.
        first, _, last = value.partition(":")
        rows, columns = zip(
            divmod(_point(first, rules, name), rules.width),
            divmod(_point(last or first, rules, name), rules.width),
            strict=True,
        )
        points.update(
            row * rules.width + column
            for row in range(min(rows), max(rows) + 1)
            for column in range(min(columns), max(columns) + 1)
        )
        if len(points) == rules.height * rules.width:
            break
    return points


def start_stones(start: list[Node], rules: GoRules) -> tuple[list[int], list[int]]:
    """Returns the points of Black's and White's stones before the first move.

    If several nodes set a point, the last one counts.

    Args:
        start: The nodes up to the first move.
        rules: The rules, including the board size.

    Raises:
        UsageError: A point is off the board, or appears in two of a node's properties.
    """
    stones: _Stones = (set(), set())
    for node in start:
        black, white, empty = (_points(node, name, rules) for name in _STONES)
        if black & white or black & empty or white & empty:
            rule = "must not list a point twice; correct them"
            raise refuse("AB, AW and AE", "a point twice", rule)
        for own, colour in zip(stones, (black, white), strict=True):
            own -= black | white | empty
            own |= colour
    return sorted(stones[0]), sorted(stones[1])


def check_later_stones(
    nodes: list[Node], num_start: int, start: GoRecord, rules: GoRules
) -> None:
    """Checks that setup stones after the first move do not change the position.

    In a node with a move, they may describe the position before or after the move.

    Args:
        nodes: All nodes of the main line.
        num_start: Number of nodes up to the first move, including the move's node.
        start: The record of the game without moves.
        rules: The rules of the game.

    Raises:
        UsageError: The stones change the position, or the setup is impossible.
    """
    if not any(node.keys() & set(_STONES) for node in nodes[num_start:]):
        return
    # Replay with simple ko, which allows all moves that the other ko rules allow.
    ko, rules.ko = rules.ko, "simple"
    start, rules.ko = dataclasses.replace(start, game=rules.name), ko
    state, _ = replay(start)
    pass_action = rules.height * rules.width
    stones = stones_on(state)
    for number, node in enumerate(nodes):
        changed = _changed(node, stones, rules) if number >= num_start else None
        if has_move(node):
            colour, move = read_move(node, rules)
            if move != pass_action:
                try:
                    if state.to_play != colour:
                        state.apply(pass_action)
                    state.apply(move)
                except CoreError:
                    return  # Illegal under any rules; the caller's replay reports it.
                stones = stones_on(state)
                changed = changed and _changed(node, stones, rules)
        if changed is not None:
            rule = "must change no stones after the first move"
            raise refuse(changed, node[changed][0], f"{rule}; keep the moves before")


def _changed(node: Node, stones: _Stones, rules: GoRules) -> str | None:
    """Returns the first property of ``node`` that changes the stones, or None."""
    black, white = stones
    for name, standing in zip(_STONES, (black, white, None), strict=True):
        points = _points(node, name, rules)
        if points & (black | white) if standing is None else points - standing:
            return name
    return None


_MOVES_A_LINE = 10
_LARGE_KOMI = 50


def write_sgf(record: GoRecord) -> str:
    """Returns a game record as SGF FF[4] text, which ``read_sgf`` can read.

    Equal records give equal texts. A round trip changes some white space in comments:
    line breaks become newlines, other white space becomes spaces. It also omits the
    part of the game's name that selects planes (``/planes=minigo``,
    ``/planes=katago``).

    Args:
        record: The record to write. Its moves are not checked.

    Raises:
        CoreError: The record's name is not that of a game of Go.
    """
    rules = parse_go_name(record.game)
    usual = GoRules(rules.height, rules.width)
    height, width = rules.height, rules.width
    size = str(width) if height == width else f"{width}:{height}"
    # The reader accepts a komi above the board's area only from tengen.
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
        name + "".join(f"[{_letters(point, rules)}]" for point in sorted(points))
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
    """Returns the value of KM; ".0" marks points that look like hundredths."""
    text = f"{rules.komi:g}"
    is_large = abs(rules.komi) >= min(rules.height * rules.width, _LARGE_KOMI)
    return f"{text}.0" if is_large and "." not in text else text


def _moves(record: GoRecord, rules: GoRules) -> str:
    text = ""
    for number, action in enumerate(record.moves):
        if number % _MOVES_A_LINE == 0 and number > 0:
            text += "\n"
        colour = "BW"[(record.first_player + number) % 2]
        text += f";{colour}[{_letters(action, rules)}]"
        if number < len(record.comments) and record.comments[number]:
            text += f"C[{_escaped(record.comments[number])}]"
    return text


def _letters(action: int, rules: GoRules) -> str:
    """Returns the two letters of an action's point; an empty string for a pass."""
    row, column = divmod(action, rules.width)
    return "" if row == rules.height else LETTERS[column] + LETTERS[row]


def _escaped(text: str) -> str:
    return re.sub(r"([\\\]])", r"\\\1", text)


def _one_line(text: str) -> str:
    return _escaped(re.sub(r"[\n\r\t\v\f]", " ", text))
