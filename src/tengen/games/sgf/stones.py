"""The points in a node of SGF: its move, and the stones that it places."""

from __future__ import annotations

import dataclasses
import re
from typing import TypeAlias

from tengen._core import CoreError, GoRules
from tengen.games.sgf.record import GoRecord, replay, stones_on
from tengen.games.sgf.tree import Node, has_move, refuse

__all__ = ["LETTERS", "check_later_stones", "read_move", "start_stones"]

LETTERS = "abcdefghijklmnopqrstuvwxyz"
"""The letters of columns and rows."""
_STONES = ("AB", "AW", "AE")
_PASSES = ("", "tt", "pass")

_Stones: TypeAlias = tuple[set[int], set[int]]


def read_move(node: Node, rules: GoRules) -> tuple[int, int]:
    """Returns the player and the action of a node with a move; Black is 0, White 1.

    Raises:
        UsageError: Both sides move, one side moves twice, or a point is off the board.
    """
    if "B" in node and "W" in node:
        points = f"{node['B'][0]} and {node['W'][0]}"
        raise refuse("B and W", points, "must stand in nodes of their own; correct")
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
    """Returns the points of a list, rectangles filled."""
    points: set[int] = set()
    for value in dict.fromkeys(node.get(name, ())):
        if not value.strip():
            continue  # AB[] is an empty list
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
    """Returns the stones before the first move; the last node that sets a point wins.

    Args:
        start: The nodes up to the first move.
        rules: The rules, which have the board.

    Raises:
        UsageError: A point is off the board, or in two lists of one node.
    """
    stones: _Stones = (set(), set())
    for node in start:
        black, white, empty = (_points(node, name, rules) for name in _STONES)
        if black & white or black & empty or white & empty:
            rule = "must not name a point of one another; correct them"
            raise refuse("AB, AW and AE", "a point twice", rule)
        for own, colour in zip(stones, (black, white), strict=True):
            own -= black | white | empty
            own |= colour
    return sorted(stones[0]), sorted(stones[1])


def check_later_stones(
    nodes: list[Node], num_start: int, start: GoRecord, rules: GoRules
) -> None:
    """Checks that stones placed after the first move do not change the position.

    In a node with a move they may describe the position before or after it.

    Args:
        nodes: All nodes, from the root.
        num_start: Number of nodes up to the first move, its own included.
        start: The record without moves.
        rules: The rules.

    Raises:
        UsageError: They change the position, or the setup is impossible.
    """
    if not any(node.keys() & set(_STONES) for node in nodes[num_start:]):
        return
    # Simple ko allows every move that a file's rules may allow.
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
                    return  # No rules allow it; replaying the game reports it.
                stones = stones_on(state)
                changed = changed and _changed(node, stones, rules)
        if changed is not None:
            rule = "must change nothing after the first move, where a game has begun"
            raise refuse(changed, node[changed][0], f"{rule}; keep the moves before")


def _changed(node: Node, stones: _Stones, rules: GoRules) -> str | None:
    """Returns the first property of a node that changes the position; None if none."""
    black, white = stones
    for name, standing in zip(_STONES, (black, white, None), strict=True):
        points = _points(node, name, rules)
        if points & (black | white) if standing is None else points - standing:
            return name
    return None
