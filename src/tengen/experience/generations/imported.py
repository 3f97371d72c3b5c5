"""Generations imported from another program, which count as older than the run's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.experience.generations_config import GenerationsConfig
from tengen.games import open_game
from tengen.minigo.records import NUM_FEATURES
from tengen.minigo.rows import ImportedRows, RowsMeta
from tengen.run import find_files

__all__ = ["ImportedGenerations", "checked_files"]


def checked_files(game: str, config: GenerationsConfig) -> list[Path]:
    """Returns the imported files that a run learns from, without reading their rows.

    Args:
        game: The run's game.
        config: Names the folder, and says how many generations are needed.

    Raises:
        UsageError: The folder has no such files, they are of another board, or the
            last of them have too few games to fill the window.
        RunError: A file is damaged.
    """
    paths = find_files(Path(config.imported), "*.rows.npz")
    if not paths:
        raise UsageError(
            f"store.imported ({config.imported}) must have files of imported "
            f"generations, 000017.rows.npz; make them by tengen data "
            f"import-minigo --examples"
        )
    newest = sorted(paths)[-config.num_generations :]
    found = {path: RowsMeta.read(path) for path in newest}
    rules = open_game(game)
    for path, meta in found.items():
        wanted = (meta.side, meta.side, NUM_FEATURES + 1)
        if (rules.height, rules.width, rules.num_planes) != wanted:
            raise UsageError(
                f"store.imported ({path}) must be of {game}, not of "
                f"go/{meta.side}/nosuicide/planes=minigo; choose another folder, or "
                f"leave it out"
            )
    num_whole = sum(meta.num_games >= config.min_games for meta in found.values())
    if num_whole < config.num_generations:
        raise UsageError(
            f"store.imported ({config.imported}) must end with store.num_generations "
            f"({config.num_generations}) generations of store.min_games "
            f"({config.min_games}) games or more, {num_whole} of its last have so "
            f"many; lower either, or leave it out"
        )
    return newest


class ImportedGenerations:
    """The generations in the folder ``store.imported``; none where it is empty.

    Imported generations have numbers below 0, and the newest has -1, because the run's
    own begin with 0. Rows are numbered from 0 over all imported generations.

    Args:
        game: The run's game.
        config: Names the folder, and says how many generations are needed.

    Raises:
        UsageError: As ``checked_files``.
        RunError: A file is damaged.
    """

    def __init__(self, game: str, config: GenerationsConfig) -> None:
        self._parts: list[ImportedRows] = []
        if config.imported:
            paths = checked_files(game, config)
            self._parts = [ImportedRows(path) for path in paths]
        counts = [0, *(part.num_rows for part in self._parts)]
        self._firsts: NDArray[np.int64] = np.cumsum(counts)

    @property
    def num_rows(self) -> int:
        """Rows of all imported generations."""
        return int(self._firsts[-1])

    def generations(self) -> list[int]:
        """Returns the numbers of the generations, in increasing order."""
        return list(range(-len(self._parts), 0))

    def num_games(self, generation: int) -> int:
        """Returns how many games a generation has."""
        num_games: int = self._parts[generation].num_games
        return num_games

    def rows(self, generation: int, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """Returns the row numbers ``[R] int64`` of some games of a generation."""
        first = int(self._firsts[len(self._parts) + generation])
        is_chosen = np.isin(self._parts[generation].games, chosen)
        rows: NDArray[np.int64] = np.flatnonzero(is_chosen) + first
        return rows

    def columns(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        """Returns the columns of rows, as ``DerivedRows.derive`` does.

        Args:
            keys: ``[R] int64``, row numbers, at least one.
            symmetries: ``[R] uint8``, one for each.
        """
        places = np.searchsorted(self._firsts, keys, side="right") - 1
        columns: dict[str, NDArray[Any]] = {}
        for place in np.unique(places):
            chosen = places == place
            found = self._parts[place].columns(
                keys[chosen] - self._firsts[place], symmetries[chosen]
            )
            for name, column in found.items():
                if name not in columns:
                    shape = (len(keys), *column.shape[1:])
                    columns[name] = np.empty(shape, column.dtype)
                columns[name][chosen] = column
        return columns

    def close(self) -> None:
        """Frees the rows. A second call does nothing."""
        self._parts = []
