"""Points of a Go board as GTP writes them: ``D4``, ``pass``.

Columns are letters from the left, without I; rows are numbers from the bottom.
"""

from __future__ import annotations

import re

__all__ = ["GO_COLUMNS", "read_vertex", "write_vertex"]

GO_COLUMNS = "ABCDEFGHJKLMNOPQRSTUVWXYZ"
"""The letters of the columns."""


def write_vertex(action: int, height: int, width: int) -> str:
    """Returns an action of Go, 0 to height * width, as GTP writes it."""
    if action == height * width:
        return "pass"
    row, column = divmod(action, width)
    return f"{GO_COLUMNS[column]}{height - row}"


def read_vertex(text: str, height: int, width: int) -> int | None:
    """Returns the action of a vertex in either case; None if it is not a vertex."""
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
