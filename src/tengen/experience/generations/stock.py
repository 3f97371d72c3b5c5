"""The games of passes over generations: the run's own, and imported ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.generations.games import GenerationGames, last_models
from tengen.experience.generations.imported import ImportedGenerations
from tengen.experience.generations.passes import (
    GenerationPass,
    chosen_games,
    sampled_rows,
)
from tengen.experience.generations_config import GenerationsConfig
from tengen.experience.rows.derived_rows import DerivedRows

__all__ = ["GenerationStock"]


class GenerationStock:
    """Games by generation, and the rows of a pass. Not thread-safe.

    Row numbers count first the imported rows, then those of the run's own games. A
    restored stock has other row numbers.

    Args:
        game: The run's game.
        experience: ``RUN/experience``.
        config: Which generations, and how much of them.
        seed: Seed of the draws.

    Attributes:
        manifest: The segments of the run, in their order.

    Raises:
        UsageError: The game is unknown, or the imported generations have another game.
        RunError: An imported generation is damaged.
    """

    def __init__(
        self, game: str, experience: Path, config: GenerationsConfig, seed: int
    ) -> None:
        self._game = game
        self._config = config
        self._seed = seed
        self.manifest = Manifest(experience)
        self._imported = ImportedGenerations(game, config)
        self._games = GenerationGames()
        self._rows = DerivedRows(game, False, self._imported.num_rows)
        # For each segment, the newest generation of its games.
        self._newest: list[int] = []
        self._prepared: tuple[GenerationPass, NDArray[np.int64]] | None = None

    @property
    def num_rows(self) -> int:
        """Rows of all segments so far, and of the imported generations."""
        return self._imported.num_rows + self.manifest.num_rows

    @property
    def num_bytes(self) -> int:
        """Bytes of memory for the run's own games that are held."""
        return self._rows.num_bytes

    @property
    def num_symmetries(self) -> int:
        """Symmetries of the board."""
        return self._rows.num_symmetries

    def refresh(self) -> int:
        """Takes in the segments that were sealed; returns how many rows they have.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        return self.take_in(self.manifest.discover())

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Loads the last segments of the manifest; returns how many rows they have.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        before = self._rows.num_rows
        first = len(self.manifest) - len(entries)
        for place, entry in enumerate(entries, first):
            self._newest.append(self._load(place, entry))
        return self._rows.num_rows - before

    def state(self) -> dict[str, Any]:
        """Returns JSON values for ``restore``."""
        return {"manifest": self.manifest.to_dict(), "newest": list(self._newest)}

    def restore(self, state: Mapping[str, Any], oldest: int) -> list[int]:
        """Restores a state, and loads the games of generations from ``oldest`` on.

        Args:
            state: What ``state`` returned.
            oldest: The first generation that is needed.

        Returns:
            The places of segments that were set aside since.

        Raises:
            RunError: A segment that is needed is missing or damaged.
            LookupError: The state has a wrong form; also TypeError, ValueError.
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
        """Returns the generations that have games; imported ones are below 0."""
        return [*self._imported.generations(), *self._games.generations()]

    def num_games(self, generation: int, num_segments: int | None = None) -> int:
        """Returns how many games of a generation are in the first ``num_segments``.

        None counts all segments.
        """
        if generation < 0:
            return self._imported.num_games(generation)
        return self._games.num_games(generation, num_segments)

    def window(self, newest: int, num_segments: int) -> list[int]:
        """Returns the generations of a pass, the newest first.

        A generation with too few games is passed over, for example one whose model was
        soon followed by another.
        """
        whole = [
            number
            for number in self.generations()
            if number <= newest
            and self.num_games(number, num_segments) >= self._config.min_games
        ]
        return sorted(whole, reverse=True)[: self._config.num_generations]

    def rows_of_pass(self, place: GenerationPass) -> NDArray[np.int64]:
        """Returns the rows of a pass, before they are shuffled; a pure function."""
        if self._prepared is not None and self._prepared[0] == place:
            return self._prepared[1]
        rows = [np.zeros(0, np.int64)]
        window = self.window(place.generation, place.num_segments)
        for age, generation in enumerate(window):
            chosen = chosen_games(
                self._seed,
                place.number,
                age,
                self.num_games(generation, place.num_segments),
                self._config.min_games,
            )
            of_games = (
                self._imported.rows(generation, chosen)
                if generation < 0
                else self._games.rows(generation, place.num_segments, chosen)
            )
            share = self._config.share
            rows.append(sampled_rows(self._seed, place.number, age, share, of_games))
        selected = np.concatenate(rows)
        self._prepared = place, selected
        return selected

    def forget(self, place: GenerationPass) -> int:
        """Frees the games that neither this pass nor a later one needs.

        Returns:
            The oldest of the run's own generations that stays.
        """
        # Where segments were set aside, the pass may have no generation.
        oldest = min(self.window(place.generation, place.num_segments), default=-1)
        if oldest >= 0:
            self._games.forget_before(oldest)
            self._rows.drop_before(self._games.first_row(oldest))
        return max(0, oldest)

    def derive(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        """Returns the columns of rows, as ``DerivedRows.derive`` does.

        Args:
            keys: ``[R] int64``, row numbers.
            symmetries: ``[R] uint8``, one for each.
        """
        is_imported = keys < self._imported.num_rows
        if not is_imported.any():
            return self._rows.derive(keys, symmetries)
        own = self._rows.derive(keys[~is_imported], symmetries[~is_imported])
        theirs = self._imported.columns(keys[is_imported], symmetries[is_imported])
        columns = {}
        for name, column in own.items():
            joined = np.empty((len(keys), *column.shape[1:]), column.dtype)
            joined[~is_imported] = column
            joined[is_imported] = theirs[name]
            columns[name] = joined
        return columns

    def close(self) -> None:
        """Frees the games that are held. A second call does nothing."""
        self._rows.drop_before(self._rows.num_rows)
        self._imported.close()

    def _load(self, place: int, entry: SegmentEntry) -> int:
        """Loads a segment; returns the newest generation of its games."""
        with self.manifest.opened(entry, self._game) as reader:
            columns = reader.game_columns()
            first_row = self._rows.num_rows
            self._rows.add(columns)
        self._games.add(place, first_row, columns)
        return int(last_models(columns).max(initial=0))
