"""Which rows a batch of the window has, before they are derived."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["WindowDraw", "WindowPass"]


class WindowPass(NamedTuple):
    """A random order of the rows of a window, and how far it was drawn."""

    number: int
    """That of the batch which began it."""
    first_row: int
    """The window's oldest row."""
    size: int
    """The window's rows."""
    offset: int
    """Rows that were drawn."""


class WindowDraw(NamedTuple):
    """A batch: with the games, all that its columns are derived from."""

    lease: int
    """The number of the batch in the run."""
    num_rows: int
    """B."""
    first_row: int
    """The window's oldest row."""
    size: int
    """The window's rows."""
    place: WindowPass | None
    """Where it begins in a pass; None where rows are drawn with replacement."""
