"""SVG drawings of boards for notebooks, based on a game's text output.

All native games, and most user-defined games, print a position as rows of ``.``, ``X``
and ``O``, optionally with row numbers on the left and column names below. A stone is
drawn where its letter stands in the text, so that boards with shifted rows, such as
Hex, look right. Text without a board is shown unchanged.

``Markup`` is HTML and SVG in which external text is escaped. A drawing has no scripts
and loads no resources, so a saved notebook is self-contained.
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NewType

Markup = NewType("Markup", str)
"""HTML or SVG in which external text is escaped. Only this module creates it."""

FRAGMENT_STYLE = (
    "font-family:system-ui,sans-serif;display:flex;flex-wrap:wrap;gap:1rem;"
    "align-items:flex-start"
)
"""The CSS style of the outermost element of a fragment, such as a notebook's output."""

# Characters that HTML forbids or that are invisible: control characters, bidi marks.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_SHOWN = "\N{REPLACEMENT CHARACTER}"


def text(value: object) -> Markup:
    """Returns ``str(value)``, escaped for content and for quoted attributes.

    Hidden characters become the replacement character, and lone surrogates ``?``.
    """
    shown = str(value).encode("utf-8", "replace").decode("utf-8")
    return Markup(html.escape(_HIDDEN.sub(_SHOWN, shown)))


def element(name: str, /, *children: Markup, **attributes: object) -> Markup:
    """Returns the markup of an HTML or SVG element.

    Args:
        name: The name of the element. It is not escaped, so it must not be user input.
        children: The content of the element, in order.
        **attributes: Attribute values by name. In names, ``_`` becomes ``-`` and a
            trailing ``_`` is removed. Floats are rounded to two decimals. None omits
            the attribute.
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_number(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Markup(f"<{name}{written}>{''.join(children)}</{name}>")


def _number(value: object) -> object:
    if not isinstance(value, float):
        return value
    return f"{value:.2f}".rstrip("0").rstrip(".")


def table(
    caption: str, columns: Sequence[str], rows: Iterable[Sequence[object]]
) -> Markup:
    """Returns an HTML table that scrolls horizontally if it is too wide.

    Args:
        caption: The caption of the table.
        columns: The column headers.
        rows: The values of each row, starting with the row header.
    """
    head = [element("th", text(name), scope="col") for name in columns]
    body = [
        element(
            "tr",
            element("th", text(first), scope="row"),
            *(element("td", text(cell)) for cell in cells),
        )
        for first, *cells in rows
    ]
    shown = element(
        "table",
        element("caption", text(caption)),
        element("thead", element("tr", *head)),
        element("tbody", *body),
    )
    return element("div", shown, style="overflow-x:auto", role="region", tabindex=0)


_CELLS = ("cells", "cells_and_pass")
_STONES = frozenset(".XO")
_MOST_CELLS = 40  # Maximum number of cells in a drawn row or column.
_CELL = 30.0  # Side length of a cell, in SVG units.
_EDGE = 8.0
_FONT = "font-family:system-ui,sans-serif"
_WOOD, _LINE, _INK, _HEAT, _LAST = "#e3c48d", "#a3834a", "#241a08", "#2563eb", "#d9480f"
# A highlight with at least this intensity also shows a number, in percent.
_TOLD = 0.01
_FULLEST = 0.6


@dataclass(frozen=True)
class Board:
    """A board that was parsed from the text of a position."""

    rows: tuple[str, ...]
    """The board's rows as strings of ``.``, ``X`` and ``O`` of equal length."""
    places: tuple[tuple[float, ...], ...]
    """For each row, the horizontal offsets of its cells, in cell widths."""
    row_labels: tuple[str, ...]
    """The labels of the rows from the top; empty if there are none."""
    column_labels: tuple[str, ...]
    """The labels of the columns from the left; empty if there are none."""
    below: str
    """The text below the board, such as the side to move or the winner."""

    @property
    def width(self) -> int:
        """The number of cells per row of the board."""
        return len(self.rows[0])


@dataclass(frozen=True)
class Heat:
    """The highlight of one cell or column of a board."""

    share: float
    """The intensity of the highlight, in [0, 1]."""
    told: str
    """The text of the highlight's tooltip."""


def read_board(shown: str) -> Board | None:
    """Parses the board in the text of a position; returns None if there is no board.

    Args:
        shown: The text of the position, ``str(state)``.
    """
    lines = shown.splitlines()[: _MOST_CELLS + 8]
    first = next((i for i, line in enumerate(lines) if _cells(line)), None)
    if first is None:
        return None
    found: list[list[re.Match[str]]] = []
    for line in lines[first:]:
        cells = _cells(line)
        if cells is None or (found and len(cells) != len(found[0])):
            break
        found.append(cells)
    rest = lines[first + len(found) :]
    width = len(found[0])
    if len(found) > _MOST_CELLS:
        return None
    labels = _labels(rest[0]) if rest else ()
    labels = labels if len(labels) == width else ()
    left = min(row[0].start() for row in found)
    pitch = min(
        b.start() - a.start() for row in found for a, b in itertools.pairwise(row)
    )
    numbers = [
        lines[first + i][: row[0].start()].strip() for i, row in enumerate(found)
    ]
    return Board(
        rows=tuple("".join(cell[0] for cell in row) for row in found),
        places=tuple(
            tuple((cell.start() - left) / pitch for cell in row) for row in found
        ),
        row_labels=tuple(numbers) if all(numbers) else (),
        column_labels=labels,
        below="\n".join(rest[1:] if labels else rest).strip(),
    )


def board_svg(
    board: Board,
    title: str,
    *,
    last: tuple[int, int] | None = None,
    cells: Mapping[tuple[int, int], Heat] | None = None,
    columns: Mapping[int, Heat] | None = None,
) -> Markup:
    """Returns an SVG drawing of a board, with a title and text for screen readers.

    Args:
        board: The board to draw.
        title: The title of the drawing, as a phrase.
        last: Row and column of the last move, whose stone gets a ring.
        cells: The highlights of cells, by row and column.
        columns: The highlights of columns, drawn in a row above the board.
    """
    margin = _CELL * 0.8 if board.row_labels else 0.0
    top = _EDGE + (_CELL if columns else 0.0)
    left = _EDGE + margin
    width = left + _CELL * (max(map(max, board.places)) + 1) + _EDGE
    height = top + _CELL * len(board.rows) + _EDGE
    height += _CELL * 0.8 if board.column_labels else 0.0

    def x_of(row: int, column: int) -> float:
        return left + _CELL * board.places[row][column]

    squares, stones, warm = [], [], []
    for i, row in enumerate(board.rows):
        y = top + _CELL * i
        for j, stone in enumerate(row):
            x = x_of(i, j)
            squares.append(f"M{x:g} {y:g}h{_CELL:g}v{_CELL:g}h-{_CELL:g}z")
            if stone != ".":
                stones.append(_stone(x, y, stone, is_last=last == (i, j)))
            elif cells and (i, j) in cells:
                warm.append(_heat(x, y, cells[i, j]))
    for column, heat in (columns or {}).items():
        if 0 <= column < board.width:
            warm.append(_heat(x_of(0, column), _EDGE, heat))
    labels = [
        _label(_EDGE + margin / 2, top + _CELL * (i + 0.5), label)
        for i, label in enumerate(board.row_labels)
    ]
    bottom = len(board.rows) - 1
    labels += [
        _label(x_of(bottom, j) + _CELL / 2, top + _CELL * (bottom + 1.4), label)
        for j, label in enumerate(board.column_labels)
    ]
    grid = element("path", d="".join(squares), fill="none", stroke=_LINE)
    return element(
        "svg",
        element("title", text(title)),
        element("desc", text(_words(board))),
        element("rect", width=width, height=height, rx=6, fill=_WOOD),
        *warm,
        grid,
        *stones,
        *labels,
        role="img",
        aria_label=title,
        viewBox=f"0 0 {width:g} {height:g}",
        xmlns="http://www.w3.org/2000/svg",
        style=f"width:100%;max-width:{width:.0f}px;height:auto;{_FONT}",
    )


def position_figure(
    shown: str,
    title: str,
    *,
    layout: str = "flat",
    last: int | None = None,
    heats: Mapping[int, Heat] | None = None,
) -> Markup:
    """Returns a figure of a position: its board as a drawing, or its text.

    Args:
        shown: The text of the position.
        title: The title of the figure, as a phrase.
        layout: The game's ``policy_layout``, which maps actions to cells or columns. If
            it is flat, ``last`` and ``heats`` are ignored.
        last: The last action, whose stone gets a ring; None for no ring.
        heats: The highlights by action.
    """
    board = read_board(shown)
    if board is None:
        return element("figure", element("pre", text(shown), aria_label=title))
    heats = heats or {}
    cells = {divmod(action, board.width): heat for action, heat in heats.items()}
    drawn = board_svg(
        board,
        title,
        last=None if last is None else _last_cell(board, layout, last),
        cells=cells if layout in _CELLS else {},
        columns=heats if layout == "columns" else {},
    )
    words = f"{board.below} (X, the first player, is black)".strip()
    return element("figure", drawn, element("figcaption", text(words)))


def _last_cell(board: Board, layout: str, action: int) -> tuple[int, int] | None:
    """Returns the row and column of an action's stone; None if it has no stone."""
    if layout in _CELLS:
        return divmod(action, board.width)
    if layout != "columns" or not 0 <= action < board.width:
        return None
    # Stones fall, so the last stone in a column is its topmost one.
    rows = enumerate(board.rows)
    return next(((i, action) for i, row in rows if row[action] != "."), None)


def _cells(line: str) -> list[re.Match[str]] | None:
    """Returns the matches of a line's cells; None if the line is not a board row."""
    tokens = list(re.finditer(r"\S+", line))
    if tokens and tokens[0][0].isdecimal():
        tokens = tokens[1:]
    if not 2 <= len(tokens) <= _MOST_CELLS:
        return None
    return tokens if all(token[0] in _STONES for token in tokens) else None


def _labels(line: str) -> tuple[str, ...]:
    names = tuple(line.split())
    return names if all(len(name) <= 2 for name in names) else ()


def _words(board: Board) -> str:
    return "\n".join([*(" ".join(row) for row in board.rows), board.below]).strip()


def _stone(x: float, y: float, stone: str, *, is_last: bool) -> Markup:
    is_first = stone == "X"
    half = _CELL / 2
    return element(
        "circle",
        cx=x + half,
        cy=y + half,
        r=_CELL * 0.4,
        fill="#111111" if is_first else "#fcfcfc",
        stroke=_LAST if is_last else "#777777" if is_first else "#333333",
        stroke_width=4 if is_last else 1,
    )


def _heat(x: float, y: float, heat: Heat) -> Markup:
    share = min(1.0, max(0.0, heat.share))
    parts = [
        element("title", text(heat.told)),
        element(
            "rect",
            x=x,
            y=y,
            width=_CELL,
            height=_CELL,
            fill=_HEAT,
            fill_opacity=_FULLEST * share**0.5,
        ),
    ]
    if share >= _TOLD:
        half = _CELL / 2
        parts.append(_label(x + half, y + half, f"{100 * share:.0f}"))
    return element("g", *parts)


def _label(x: float, y: float, label: str) -> Markup:
    return element(
        "text",
        text(label),
        x=x,
        y=y,
        fill=_INK,
        font_size=12,
        text_anchor="middle",
        dominant_baseline="central",
    )
