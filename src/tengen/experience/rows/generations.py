"""The games for passes over generations: the run's own, and imported games."""

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

__all__ = ["GenerationPass", "GenerationStock"]

_DRAWS_OF_PASS = 4096
"""Maximum number of random streams in a pass: two per generation, one for its order."""

# Segment index of imported games; every pass may use them.
_IMPORTED = -1


class GenerationPass(NamedTuple):
    """The parameters of a pass, which determine its rows for given games."""

    number: int
    """Index of the pass in the run, from 0."""
    generation: int
    """The newest generation of the pass."""
    num_segments: int
    """The pass uses only games in this number of the manifest's first segments."""


class _Game(NamedTuple):
    """A game in memory."""

    segment: int
    """Index of the game's segment in the manifest."""
    first_row: int
    """Index of the game's first row."""
    num_rows: int
    """Number of rows of the game."""


class GenerationStock:
    """The games of all generations, from which passes sample. Not thread-safe.

    A generation's number is that of the last model of its games. Imported generations
    count as older than the run's own: their numbers are negative, and the newest is -1.
    Row indices count first the imported rows, then the rows of the run's own games.
    ``restore`` changes row indices.

    Args:
        game: The run's game.
        experience: ``RUN/experience``.
        config: The generations and the fraction of their rows that a pass samples.
        seed: Seed for sampling.

    Attributes:
        manifest: The segments of the run, in order.

    Raises:
        UsageError: The game is unknown, or an imported generation is of another game.
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
        # For each segment, the newest generation of its games.
        self._newest: list[int] = []
        self._prepared: tuple[GenerationPass, NDArray[np.int64]] | None = None

    @property
    def num_rows(self) -> int:
        """Number of rows in all segments so far and in the imported generations."""
        return int(self._firsts[-1]) + self.manifest.num_rows

    @property
    def num_bytes(self) -> int:
        """Bytes of memory that the run's own games use."""
        return self._rows.num_bytes

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Loads the manifest's last segments; returns their number of rows.

        Raises:
            UsageError: A segment has a newer schema or belongs to another game.
            RunError: A segment is damaged.
        """
        before = self._rows.num_rows
        first = len(self.manifest) - len(entries)
        for place, entry in enumerate(entries, first):
            self._newest.append(self._load(place, entry))
        return self._rows.num_rows - before

    def state(self) -> dict[str, Any]:
        """Returns the state for ``restore``, as JSON values."""
        return {"manifest": self.manifest.to_dict(), "newest": list(self._newest)}

    def restore(self, state: Mapping[str, Any], oldest: int) -> list[int]:
        """Restores a state, and loads the games of generations from ``oldest`` on.

        Args:
            state: The return value of ``state``.
            oldest: The oldest generation that is needed.

        Returns:
            The indices of segments that have been set aside since then.

        Raises:
            RunError: A segment that is needed is missing or damaged.
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
        """Returns the generations that have games; imported ones are negative."""
        return sorted(self._games)

    def num_games(self, generation: int, num_segments: int | None = None) -> int:
        """Returns a generation's number of games in the first ``num_segments``.

        If ``num_segments`` is None, counts games in all segments.
        """
        return len(self._of(generation, num_segments))

    def rows_of_pass(self, place: GenerationPass) -> NDArray[np.int64]:
        """Returns the row indices of a pass, before they are shuffled.

        Samples ``min_games`` games from each generation, newest first, and then the
        config's ``share`` of their rows. Deterministic for given games and seed.

        Differs from the benchmark: samples exactly this share of the rows, whereas the
        benchmark samples each row with this probability.
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
        """Returns the next rows of a pass, as indices into it, and their symmetries.

        Args:
            place: The pass.
            offset: Number of earlier rows of the pass.
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
        """Frees the games that neither this pass nor a later pass needs.

        Returns:
            The oldest of the run's own generations that remains.
        """
        # If segments have been set aside, the pass may have no generation.
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
        """Returns the columns of rows, as ``DerivedRows.derive`` does.

        Args:
            keys: ``[R] int64``, row indices.
            symmetries: ``[R] uint8``, the symmetry of each row.
        """
        first_own = self._firsts[-1]
        if not (keys < first_own).any():
            return self._rows.derive(keys - first_own, symmetries)
        # Find the source of each row: an imported generation, or the run's own games.
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
        """Returns the generations of a pass, newest first.

        Skips generations with too few games, for example because the next model was
        published soon.
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

        Each ``draw`` of each pass has its own random numbers.
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
        """Adds the games of a segment, whose rows are consecutive."""
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
