"""Training rows, whose planes and targets are derived from games when sampled.

A hash of a game's generation and index decides whether it is a validation game, which
is held out of training to measure the validation loss. So every process that reads a
run splits its games into training and validation games in the same way.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.experience.games.files import experience_files
from tengen.experience.games.journal import core_errors
from tengen.experience.games.segment import GAME_COLUMNS, SegmentReader
from tengen.games import core_game, is_external, open_game

# Columns of games that DerivedRows does not need.
_FOR_PEOPLE = ("game_index", "model", "num_simulations")
_ROW_COLUMNS = tuple(
    name for name in GAME_COLUMNS if name not in _FOR_PEOPLE and "switch" not in name
)
_OF_GAMES = (
    "game_index",
    "outcome",
    "model",
    "num_variant_bytes",
    "num_opening_plies",
    "num_plies",
    "num_switches",
)
# For each column with counts of a game's entries, the columns that hold the entries.
_BY_COUNT = {
    "num_variant_bytes": ("variant",),
    "num_opening_plies": ("opening",),
    "num_switches": ("switch_ply", "switch_model"),
    "num_plies": (
        "action",
        "root_value",
        "policy_weight",
        "value_weight",
        "num_simulations",
        "lead",
        "num_policy_entries",
    ),
}
_OF_ENTRIES = ("policy_action", "policy_mass")


class WindowPass(NamedTuple):
    """A pass over a window's rows in random order, and the position in the pass."""

    number: int
    """Index of the pass's first batch among all batches of the run."""
    first_row: int
    """Index of the window's oldest row."""
    size: int
    """Number of rows in the window."""
    offset: int
    """Number of rows of the pass that are already sampled."""


class WindowDraw(NamedTuple):
    """A description of a batch; with the games and the seed, it determines the rows."""

    lease: int
    """Index of the batch among all batches of the run."""
    num_rows: int
    """Number B of rows in the batch."""
    first_row: int
    """Index of the window's oldest row."""
    size: int
    """Number of rows in the window."""
    place: WindowPass | None
    """The pass, at the batch's first row; None if rows are sampled with replacement."""


class DerivedRows:
    """Games in memory, from which the rows of a batch are derived.

    A row is a searched ply with a target. Rows are numbered in the order in which they
    are added. Several threads may call ``draw`` and ``derive`` while none adds games.

    Args:
        game: The game's name for `tengen.games.open_game`.
        auxiliary: Whether rows also have the targets of auxiliary heads.
        first_row: Index of the first row to be added.

    Attributes:
        shape: The numbers C, H and W of planes, rows and columns.
        num_actions: Number A of actions.
        num_symmetries: Number of symmetries of the board, at least 1.
        is_native: Whether the core implements the game.

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
        """Number of rows added so far, plus ``first_row``."""
        return int(self._rows.num_rows)

    @property
    def oldest_row(self) -> int:
        """Index of the oldest row in memory."""
        return int(self._rows.first_row)

    @property
    def num_bytes(self) -> int:
        """Memory that the stored games use, in bytes."""
        return int(self._rows.num_bytes)

    def add(self, columns: Mapping[str, NDArray[Any]]) -> int:
        """Adds the games of a segment; returns the number of their rows.

        Args:
            columns: The return value of ``SegmentReader.game_columns``.

        Raises:
            RunError: A move is illegal or a result is wrong, so the segment is of a
                different game.
        """
        with core_errors():
            needed = {name: columns[name] for name in _ROW_COLUMNS}
            return int(self._rows.add_segment(**needed))

    def drop_before(self, row: int) -> None:
        """Frees the segments whose rows all have indices below ``row``."""
        self._rows.drop_before(row)

    def draw(
        self, seed: int, draw: WindowDraw
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Samples the rows of a batch; a pure function of the arguments.

        Returns:
            Row indices int64 and symmetries uint8, arrays of shape ``[draw.num_rows]``.
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
        """Returns the columns of the rows ``keys``; see ``OrderedExperience.sample``.

        Raises:
            RunError: A row is not in memory.
        """
        with core_errors():
            return self._rows.derive(keys, symmetries, self._auxiliary)


def is_validation(
    generation: int, game_index: NDArray[np.uint32], share: float
) -> NDArray[np.bool_]:
    """Returns a mask ``[games]`` of the validation games.

    The hash is the finaliser of SplitMix64 (Steele, Lea and Flood 2014).

    Args:
        generation: The games' generation.
        game_index: ``[games]``, the games' indices in the generation.
        share: Share of validation games, in [0, 1).
    """
    bits = game_index.astype(np.uint64) + (np.uint64(generation) << np.uint64(32))
    with np.errstate(over="ignore"):
        bits += np.uint64(0x9E3779B97F4A7C15)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    chosen: NDArray[np.bool_] = (bits >> np.uint64(11)) < np.uint64(share * 2.0**53)
    return chosen


def select_games(
    columns: Mapping[str, NDArray[Any]], chosen: NDArray[np.bool_]
) -> dict[str, NDArray[Any]]:
    """Returns the columns of the games that the mask ``chosen`` selects.

    Args:
        columns: The return value of ``SegmentReader.game_columns``.
        chosen: A mask ``[games]``.
    """
    selected = {name: columns[name][chosen] for name in _OF_GAMES}
    for count, names in _BY_COUNT.items():
        parts = np.repeat(chosen, columns[count])
        selected |= {name: columns[name][parts] for name in names}
    plies = np.repeat(chosen, columns["num_plies"])
    entries = np.repeat(plies, columns["num_policy_entries"])
    selected |= {name: columns[name][entries] for name in _OF_ENTRIES}
    return selected


def sample_positions(
    game: str, experience: Path, generation: int, num_positions: int, seed: int
) -> tuple[NDArray[np.float32], NDArray[np.bool_]] | None:
    """Samples positions uniformly from the rows of one generation's sealed games.

    A pure function of the arguments and the segments. The positions are distinct, so
    that a caller can hold some of them out without overlap.

    Args:
        game: The game's name for `tengen.games.open_game`.
        experience: ``RUN/experience``.
        generation: The generation.
        num_positions: Number of rows to sample, with replacement, at least 1.
        seed: Seed of the random generator.

    Returns:
        Planes ``[M, C, H, W]`` float32 under random symmetries and masks ``[M, A]`` of
        legal actions, M at most ``num_positions``; None if the generation has no rows.

    Raises:
        UsageError: A segment is of a newer schema, or the game is unknown.
        RunError: A segment is damaged.
    """
    rows = DerivedRows(game, auxiliary=False)
    for path in experience_files(experience, "npz"):
        if int(path.stem) != generation:
            continue
        with SegmentReader(path) as reader:
            rows.add(reader.game_columns())
    if rows.num_rows == 0:
        return None
    draw = WindowDraw(
        lease=0, num_rows=num_positions, first_row=0, size=rows.num_rows, place=None
    )
    keys, symmetries = rows.draw(seed, draw)
    columns = rows.derive(keys, symmetries)
    planes, legal = columns["planes"], columns["legal"].astype(bool)
    # Remove duplicates: rows sampled twice, perhaps under different symmetries, and
    # positions that several games share, such as openings.
    first_of_row = np.unique(keys, return_index=True)[1]
    different = {planes[index].tobytes(): index for index in np.sort(first_of_row)}
    chosen = list(different.values())
    return planes[chosen], legal[chosen]
