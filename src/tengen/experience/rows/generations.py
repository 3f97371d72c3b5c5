"""Stores the run's own and imported games for sampling in passes over generations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.experience.config import GenerationsConfig
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.rows.imported import ImportedRows

_DRAWS_OF_PASS = 4096
"""Random streams reserved per pass: two per generation, and one for the row order."""

# Segment index of imported games, below all others, so that every pass may use them.
_IMPORTED = -1


class GenerationPass(NamedTuple):
    """The parameters of a pass; together with the games they determine its rows."""

    number: int
    """Index of the pass in the run, from 0."""
    generation: int
    """The newest generation that the pass uses."""
    num_segments: int
    """The pass may use games only of the manifest's first ``num_segments`` segments."""


class _Game(NamedTuple):
    """The rows of a game in memory."""

    segment: int
    """Index of the game's segment in the manifest; ``_IMPORTED`` for imported games."""
    first_row: int
    """Index of the game's first row in the ``GenerationStock``."""
    num_rows: int
    """Number of rows of the game."""


class GenerationStock:
    """The games of all generations, from which passes sample. Not thread-safe.

    A game belongs to the generation of the last model that played it. Imported
    generations count as older than the run's own, so their numbers are negative, and
    the newest is -1. Row indices count the imported rows first, then the rows of the
    run's own games. ``restore`` renumbers the rows.

    Args:
        game: Name of the run's game.
        experience: ``RUN/experience``.
        config: The numbers of generations, games and rows that a pass samples.
        seed: Seed for sampling.

    Attributes:
        manifest: The segments of the run, in order.

    Raises:
        UsageError: The game is unknown, or imported generations are of a different one.
        RunError: An imported generation is damaged.
    """

    def __init__(
        self, game: str, experience: Path, config: GenerationsConfig, seed: int
    ) -> None:
        self._game = game
        self._config = config
        self._seed = seed
        self.manifest = Manifest(experience)
        self._games: dict[int, list[_Game]] = {}
        paths = config.imported_files(game)
        self._imported = [ImportedRows(path) for path in paths]
        counts = [0, *(part.num_rows for part in self._imported)]
        self._firsts: NDArray[np.int64] = np.cumsum(counts)
        for place, part in enumerate(self._imported):
            generation, first_row = place - len(self._imported), self._firsts[place]
            num_rows = np.bincount(part.games, minlength=part.num_games)
            models = [generation] * part.num_games
            self._add_games(models, _IMPORTED, int(first_row), num_rows)
        self._rows = DerivedRows(game, auxiliary=False)
        # For each segment in the manifest, the newest generation of its games.
        self._newest: list[int] = []
        self._prepared: tuple[GenerationPass, NDArray[np.int64]] | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in the manifest's segments and in the imported generations."""
        return int(self._firsts[-1]) + self.manifest.num_rows

    @property
    def num_bytes(self) -> int:
        """Memory that the run's own games use, in bytes."""
        return self._rows.num_bytes

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Loads ``entries``, the manifest's last segments; returns the number of rows.

        Raises:
            UsageError: A segment has a newer schema or is of a different game.
            RunError: A segment is damaged.
        """
        before = self._rows.num_rows
        first = len(self.manifest) - len(entries)
        for place, entry in enumerate(entries, first):
            self._newest.append(self._load(place, entry))
        return self._rows.num_rows - before

    def state(self) -> dict[str, Any]:
        """Returns the manifest and each segment's newest generation as JSON values."""
        return {"manifest": self.manifest.to_dict(), "newest": list(self._newest)}

    def restore(self, state: Mapping[str, Any], oldest: int) -> list[int]:
        """Restores ``state``, and loads segments with generation ``oldest`` or newer.

        Args:
            state: The return value of the method ``state``.
            oldest: The oldest generation to load.

        Returns:
            Indices in ``state`` of the segments that the user has excluded since then.

        Raises:
            RunError: A segment to load is missing or damaged.
        """
        self.manifest = Manifest.from_dict(self.manifest.experience, state["manifest"])
        newest = [int(number) for number in state["newest"]]
        aside = self.manifest.set_aside()
        self._newest = [n for place, n in enumerate(newest) if place not in aside]
        for place, entry in enumerate(self.manifest):
            if self._newest[place] >= oldest:
                self._load(place, entry)
        return sorted(aside)

    def generations(self) -> list[int]:
        """Returns the generations in memory, ascending; imported ones are negative."""
        return sorted(self._games)

    def num_games(self, generation: int, num_segments: int | None = None) -> int:
        """Returns the number of a generation's games.

        Counts only the manifest's first ``num_segments`` segments; None counts all.
        """
        return len(self._of(generation, num_segments))

    def rows_of_pass(self, place: GenerationPass) -> NDArray[np.int64]:
        """Returns the row indices of a pass, before they are shuffled.

        Samples ``min_games`` games from each generation, newest first, and then the
        fraction ``share`` of the rows of these games, both as set in the config.
        Deterministic for given games and seed.

        Differs from MLPerf's benchmark, which samples each row with probability
        ``share``: this method samples exactly this fraction of the rows.
        """
        if self._prepared is not None and self._prepared[0] == place:
            return self._prepared[1]
        parts = [np.zeros(0, np.int64)]
        for age, generation in enumerate(self._window(place)):
            games = self._of(generation, place.num_segments)
            chosen = self._drawn(
                place, 1 + 2 * age, len(games), self._config.min_games
            ).tolist()
            if generation < 0:
                chosen.sort()
            drawn_from = [games[index] for index in chosen]
            rows = np.concatenate(
                [
                    np.arange(game.first_row, game.first_row + game.num_rows)
                    for game in drawn_from
                ]
            ).astype(np.int64)
            num_wanted = round(len(rows) * self._config.share)
            parts.append(rows[self._drawn(place, 2 + 2 * age, len(rows), num_wanted)])
        selected = np.concatenate(parts)
        self._prepared = place, selected
        return selected

    def order(
        self, place: GenerationPass, offset: int, num_rows: int, size: int
    ) -> tuple[NDArray[np.int64], NDArray[np.uint8]]:
        """Returns a slice of a pass in random order, and the symmetry of each row.

        Rows are returned as indices into the result of ``rows_of_pass``.

        Args:
            place: The pass.
            offset: Number of rows of the shuffled pass to skip.
            num_rows: Number of rows to return.
            size: Number of rows of the complete pass.
        """
        return _core.draw_rows_of_pass(
            seed=self._seed,
            number=place.number * _DRAWS_OF_PASS,
            offset=offset,
            num_rows=num_rows,
            first_row=0,
            size=size,
            num_symmetries=self._rows.num_symmetries,
        )

    def forget(self, place: GenerationPass) -> int:
        """Frees the games that neither the pass ``place`` nor a later pass needs.

        Returns:
            The oldest of the run's own generations that stays in memory; 0 for all.
        """
        # The pass may have no generation left if the user has excluded segments.
        oldest = min(self._window(place), default=-1)
        if oldest < 0:
            return 0
        first_row = min(
            game.first_row
            for number, games in self._games.items()
            if number >= oldest
            for game in games
        )
        self._games = {
            number: games
            for number, games in self._games.items()
            if number < 0 or number >= oldest
        }
        self._rows.drop_before(first_row - int(self._firsts[-1]))
        return oldest

    def derive(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        """Returns the columns of the rows ``keys``; see ``DerivedRows.derive``.

        Args:
            keys: ``[R] int64``, row indices.
            symmetries: ``[R] uint8``, the symmetry to apply to each row.
        """
        first_own = self._firsts[-1]
        if not (keys < first_own).any():
            return self._rows.derive(keys - first_own, symmetries)
        # Find the source of each row, an imported generation or the run's own games.
        places = np.searchsorted(self._firsts, keys, side="right") - 1
        parts = [*(part.columns for part in self._imported), self._rows.derive]
        columns: dict[str, NDArray[Any]] = {}
        for place in np.unique(places).tolist():
            chosen = places == place
            own_keys = keys[chosen] - self._firsts[place]
            for name, column in parts[place](own_keys, symmetries[chosen]).items():
                if name not in columns:
                    shape = (len(keys), *column.shape[1:])
                    columns[name] = np.empty(shape, column.dtype)
                columns[name][chosen] = column
        return columns

    def close(self) -> None:
        """Frees all games. A second call does nothing."""
        self._rows.drop_before(self._rows.num_rows)
        self._imported = []

    def _window(self, place: GenerationPass) -> list[int]:
        """Returns the generations that a pass uses, newest first.

        Skips generations with fewer than ``min_games`` games. For example, a model that
        is soon replaced finishes few games.
        """
        whole = [
            number
            for number in self.generations()
            if number <= place.generation
            and self.num_games(number, place.num_segments) >= self._config.min_games
        ]
        return whole[: -self._config.num_generations - 1 : -1]

    def _of(self, generation: int, num_segments: int | None) -> list[_Game]:
        games = self._games.get(generation, [])
        if num_segments is None:
            return games
        return [game for game in games if game.segment < num_segments]

    def _drawn(
        self, place: GenerationPass, draw: int, size: int, num_wanted: int
    ) -> NDArray[np.int64]:
        """Returns at most ``num_wanted`` distinct random integers below ``size``.

        Each pair of pass and ``draw`` has its own random stream.
        """
        count = min(size, num_wanted)
        if count == 0:
            return np.zeros(0, np.int64)
        places, _ = _core.draw_rows_of_pass(
            seed=self._seed,
            number=place.number * _DRAWS_OF_PASS + draw,
            offset=0,
            num_rows=count,
            first_row=0,
            size=size,
            num_symmetries=1,
        )
        return places

    def _load(self, place: int, entry: SegmentEntry) -> int:
        """Loads a segment; returns the newest generation of its games."""
        with self.manifest.opened(entry, self._game) as reader:
            columns = reader.game_columns()
            first_row = int(self._firsts[-1]) + self._rows.num_rows
            self._rows.add(columns)
        models = _last_models(columns)
        self._add_games(models.tolist(), place, first_row, _rows_by_game(columns))
        return int(models.max(initial=0))

    def _add_games(
        self,
        models: Iterable[int],
        segment: int,
        first_row: int,
        num_rows: NDArray[np.int64],
    ) -> None:
        """Registers the games of a segment, whose rows have consecutive indices."""
        for model, count in zip(models, num_rows.tolist(), strict=True):
            self._games.setdefault(model, []).append(_Game(segment, first_row, count))
            first_row += count


def _last_models(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Returns the last model that played each game, ``[games] int64``.

    Args:
        columns: The return value of ``SegmentReader.game_columns``.
    """
    models = columns["model"].astype(np.int64)
    ends = np.cumsum(columns["num_switches"].astype(np.int64))
    has_switched = columns["num_switches"] > 0
    models[has_switched] = columns["switch_model"][ends[has_switched] - 1]
    return models


def _rows_by_game(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Returns the number of training rows of each game, ``[games] int64``.

    Args:
        columns: The return value of ``SegmentReader.game_columns``.
    """
    num_games = len(columns["num_plies"])
    game_of_ply = np.repeat(np.arange(num_games), columns["num_plies"].astype(np.int64))
    is_row = (columns["policy_weight"] > 0) | (columns["value_weight"] > 0)
    return np.bincount(game_of_ply[is_row], minlength=num_games)
