"""Rows of games, whose planes and targets are derived only when they are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.experience.games.core_errors import core_errors
from tengen.experience.games.segment import GAME_COLUMNS
from tengen.experience.rows.window_draw import WindowDraw
from tengen.games import core_game, is_external, open_game

__all__ = ["DerivedRows"]

# The columns of a segment that rows are derived from; the others only inform people.
_FOR_PEOPLE = ("game_index", "model", "num_simulations")
_ROW_COLUMNS = tuple(
    name for name in GAME_COLUMNS if name not in _FOR_PEOPLE and "switch" not in name
)


class DerivedRows:
    """Games in memory, from which the rows of a batch are derived.

    A row is a searched ply with a target. Rows are numbered from 0 in the order in
    which they were added. ``draw`` and ``derive`` may run in several threads.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        auxiliary: Whether rows have the targets of auxiliary heads too.
        first_row: The number of the first row to be added.

    Attributes:
        shape: C, H and W.
        num_actions: A.
        num_symmetries: Symmetries of the board, at least 1.
        is_native: Whether the game is one of the core's.

    Raises:
        UsageError: The game is unknown, or a game in Python breaks the protocol.
    """

    def __init__(self, game: str, auxiliary: bool, first_row: int = 0) -> None:
        rules = open_game(game)
        self._rows = _core.GameRows(core_game(rules))
        self._rows.skip_rows(first_row)
        self._auxiliary = auxiliary
        self.shape = (self._rows.num_planes, self._rows.height, self._rows.width)
        self.num_actions = self._rows.num_actions
        self.num_symmetries: int = self._rows.num_symmetries
        self.is_native = not is_external(rules)

    @property
    def num_rows(self) -> int:
        """Rows added so far, plus ``first_row``."""
        return int(self._rows.num_rows)

    @property
    def oldest_row(self) -> int:
        """The number of the oldest row that is held."""
        return int(self._rows.first_row)

    @property
    def num_bytes(self) -> int:
        """Bytes of memory for the games that are held."""
        return int(self._rows.num_bytes)

    def add(self, columns: Mapping[str, NDArray[Any]]) -> int:
        """Adds the games of a segment; returns how many rows they have.

        Args:
            columns: As ``SegmentReader.game_columns`` returns them.

        Raises:
            RunError: A move is illegal or a result is wrong, so the games are not of
                this game.
        """
        with core_errors():
            needed = {name: columns[name] for name in _ROW_COLUMNS}
            return int(self._rows.add_segment(**needed))

    def drop_before(self, row: int) -> None:
        """Frees segments whose rows are all below ``row``."""
        self._rows.drop_before(row)

    def draw(
        self, seed: int, draw: WindowDraw
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Draws the rows of a batch, as a pure function of the arguments.

        Returns:
            ``[draw.num_rows] int64`` row numbers and as many ``uint8`` symmetries.
        """
        num_symmetries = self.num_symmetries
        if draw.place is None:
            return _core.draw_rows(
                seed=seed,
                step=draw.lease,
                num_rows=draw.num_rows,
                first_row=draw.first_row,
                size=draw.size,
                num_symmetries=num_symmetries,
            )
        return _core.draw_rows_of_pass(
            seed=seed,
            number=draw.place.number,
            offset=draw.place.offset,
            num_rows=draw.num_rows,
            first_row=draw.first_row,
            size=draw.size,
            num_symmetries=num_symmetries,
        )

    def derive(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        """Returns the columns of rows, as ``GameWindow.sample`` lists them.

        Raises:
            RunError: A row is not held.
        """
        rows, size, num_actions = self._rows, len(keys), self._rows.num_actions
        columns: dict[str, NDArray[Any]] = {
            "planes": np.empty((size, *self.shape), np.float32),
            "legal": np.empty((size, num_actions), np.uint8),
            "policy": np.empty((size, num_actions), np.float32),
            "policy_weight": np.empty(size, np.float32),
            "outcome": np.empty((size, 3), np.float32),
            "search_value": np.empty(size, np.float32),
            "value_weight": np.empty(size, np.float32),
        }
        if self._auxiliary:
            columns |= self._auxiliary_columns(size)
        with core_errors():
            rows.fill(keys, symmetries, **columns)
        return columns

    def _auxiliary_columns(self, size: int) -> dict[str, NDArray[Any]]:
        rows = self._rows
        shapes: dict[str, tuple[int, ...]] = {
            "reply": (size, rows.num_actions),
            "reply_weight": (size,),
            "horizons": (size, _core.NUM_HORIZONS),
        }
        if rows.max_score > 0:
            shapes |= {
                "ownership": (size, rows.height, rows.width),
                "score": (size,),
                "final_weight": (size,),
                "lead": (size,),
                "lead_weight": (size,),
            }
        return {name: np.empty(shape, np.float32) for name, shape in shapes.items()}
