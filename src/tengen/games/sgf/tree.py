"""Parses the syntax of SGF texts.

Source: SGF FF[4] (red-bean.com/sgf), "EBNF Definition" and "Property Value Types".
Lowercase letters in property names, which older files contain, are dropped. Names of
private properties may contain digits and underscores.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from tengen.errors import UsageError

MAX_CHARACTERS = 1 << 20
"""The maximum length of an SGF text, in characters."""

_MAX_DEPTH = 1000
_WHOLE = 'must be a complete game, "(;...)"; check the file'
# Matches "(;" if a node's content or the end of the text follows, unlike in "(;-)".
_BEGINNING = re.compile(
    r"\([\s\0]*;[\s\0]*+(?=[A-Za-z();]|[0-9_][A-Za-z0-9_]*+[\s\0]*+\[|$)"
)
_SPACE = re.compile(r"[\s\0]*")
_LOWER = re.compile("[a-z]+")
_NAME = re.compile(r"[A-Za-z0-9_]+")
_VALUE = re.compile(r"\[([^\]\\]*+(?:\\.[^\]\\]*+)*+)\]", re.S)
_LINE_BREAK = re.compile(r"\r\n|\n\r|\r|\n")
# If the text ends within a value of one of these properties, the position is unknown.
_POSITION = frozenset(("GM", "SZ", "HA", "PL", "AB", "AW", "AE"))
# Properties that occur only in the root node of a game.
_ROOT = frozenset(("FF", "GM", "SZ"))

Node = dict[str, list[str]]
"""A node of an SGF tree: the escaped values of each property by name. If a property
occurs several times in the node, one list has all its values."""


@dataclass(frozen=True)
class Tree:
    """The parsed first game of an SGF text."""

    nodes: list[Node]
    """The nodes of the game's main line, beginning with the root."""
    has_variations: bool
    """Whether the game has variations in addition to the main line."""
    is_collection: bool
    """Whether another game follows in the text."""
    is_cut: bool
    """Whether the text ends before the end of the game."""
    unfinished: str
    """Name of the property whose truncated last value was dropped; empty if none."""


def refuse(name: str, value: object, rule: str) -> UsageError:
    """Returns a UsageError about an invalid value; its message shortens the value."""
    text = " ".join(str(value).split())
    shown = text if len(text) <= 40 else text[:37] + "..."
    return UsageError(f"SGF {name} ({shown}) {rule}")


def has_move(node: Node) -> bool:
    """Returns whether a node has a move or a pass."""
    return "B" in node or "W" in node


@dataclass
class _Level:
    """An open variation: an unclosed "(" and the nodes after it."""

    is_main: bool  # Whether the nodes belong to the main line.
    has_child: bool = False
    num_nodes: int = 0


def parse_tree(text: str, most: int = MAX_CHARACTERS) -> Tree:
    """Parses the first game of an SGF text.

    The main line is the first variation at each branch. Text around the game, such as
    that of an email, is ignored. A truncated text is accepted, without its incomplete
    last value.

    Args:
        text: The SGF text.
        most: The maximum number of characters of ``text``.

    Raises:
        UsageError: The text has no game tree or is too long, the tree is broken or too
            deep, or the text ends before the position is known.
    """
    if len(text) > most:
        rule = f"must be at most {most} characters; split the file"
        raise refuse("text", f"{len(text)} characters", rule)
    nodes: list[Node] = []
    levels: list[_Level] = []
    has_variations = is_cut = False
    unfinished = ""
    begun = _BEGINNING.search(text)
    if begun is None:
        raise refuse("text", text or "nothing", _WHOLE)
    place = begun.start()
    while levels or not nodes:
        sign = text[place : place + 1]
        if sign == "(":
            if len(levels) == _MAX_DEPTH:
                rule = f"must nest at most {_MAX_DEPTH} variations"
                raise refuse("text", "deep", f"{rule}; keep the main line")
            if levels and levels[-1].num_nodes == 0:
                raise _unexpected(text, place, "a node")
            is_main = not levels or (levels[-1].is_main and not levels[-1].has_child)
            if levels:
                has_variations |= levels[-1].has_child
                levels[-1].has_child = True
            levels.append(_Level(is_main))
            place = _skip(text, place + 1)
        elif sign == ")" and levels and levels[-1].num_nodes > 0:
            levels.pop()
            place = _skip(text, place + 1)
        elif sign == ";" and levels and not levels[-1].has_child:
            node, place, last = _parse_node(text, _skip(text, place + 1))
            levels[-1].num_nodes += 1
            if levels[-1].is_main:
                if last and (not nodes or _LOWER.sub("", last[0]) in _POSITION):
                    raise _unexpected(text, last.end(), f"a full value of {last[0]}")
                nodes.append(node)
            unfinished = last[0] if last else ""
        elif not sign:
            # Reject the text if its missing end may contain the size, or if it has two
            # roots.
            is_sized = len(nodes) > 1 or "SZ" in nodes[0]
            has_roots = any(node.keys() & _ROOT for node in nodes[1:])
            if not any(nodes) or not is_sized or has_roots:
                raise refuse("text", "the end", _WHOLE)
            is_cut = True
            break
        else:
            raise _unexpected(text, place, "( or ; or )")
    is_collection = _BEGINNING.search(text, place) is not None
    return Tree(nodes, has_variations, is_collection, is_cut, unfinished)


def plain_text(value: str, *, keep_lines: bool) -> str:
    """Unescapes a property value of the SGF type Text or SimpleText.

    Args:
        value: The characters between the brackets.
        keep_lines: Whether to keep line breaks, as in Text; in SimpleText they become
            spaces.
    """
    value = _LINE_BREAK.sub("\n", value)
    value = re.sub(r"\\(.)", lambda m: m[1] if m[1] != "\n" else "", value, flags=re.S)
    return re.sub(r"[\t\v\f]" if keep_lines else r"[\n\t\v\f]", " ", value)


def _parse_node(text: str, place: int) -> tuple[Node, int, re.Match[str] | None]:
    """Parses the node at index ``place`` of ``text``.

    Returns:
        The node, the index after it, and the match of the name of a truncated property
        (None if none is truncated).
    """
    node: Node = {}
    while match := _NAME.match(text, place):
        name = _LOWER.sub("", match[0])
        values = []
        place = _skip(text, match.end())
        while value := _VALUE.match(text, place):
            values.append(value[1])
            place = _skip(text, value.end())
        if values:
            node.setdefault(name, []).extend(values)
        if text.startswith("[", place) or (not values and place == len(text)):
            return node, len(text), match
        if not values:
            raise _unexpected(text, place, f"[, a value of {match[0]}")
    return node, place, None


def _skip(text: str, place: int) -> int:
    match = _SPACE.match(text, place)
    return match.end() if match else place


def _unexpected(text: str, place: int, wanted: str) -> UsageError:
    line = text.count("\n", 0, place) + 1
    found = text[place : place + 20] or "the end"
    return refuse(f"line {line}", found, f"must have {wanted} here; check the file")
