"""The draw of a batch from the window, before its rows are derived."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["WindowDraw", "WindowPass"]


class WindowPass(NamedTuple):
    """A random order of a window's rows, and how far it was drawn."""

    number: int
    """The number of the batch that began the pass."""
    first_row: int
    """The window's oldest row."""
    size: int
    """The window's rows."""
    offset: int
    """Rows of the pass already drawn."""


class WindowDraw(NamedTuple):
    """A batch: together with the games, it determines the batch's columns."""

    lease: int
    """The number of the batch in the run."""
    num_rows: int
    """Number B of rows in the batch."""
    first_row: int
    """The window's oldest row."""
    size: int
    """The window's rows."""
    place: WindowPass | None
    """Where the batch begins in a pass; None where rows are drawn with replacement."""
