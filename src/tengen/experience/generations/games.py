"""Maps generations to their games, and games to their rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["GenerationGames", "last_models", "rows_by_game"]


class _Game(NamedTuple):
    """A game in memory."""

    segment: int
    """The place of the game's segment in the manifest."""
    first_row: int
    """The number of the game's first row."""
    num_rows: int
    """Number of the game's rows."""


class GenerationGames:
    """Games in the order in which they arrived, by generation.

    A generation is named by the model that its games ended on.
    """

    def __init__(self) -> None:
        self._games: dict[int, list[_Game]] = {}

    def add(
        self, segment: int, first_row: int, columns: Mapping[str, NDArray[Any]]
    ) -> None:
        """Adds the games of a segment.

        Args:
            segment: The segment's place in the manifest.
            first_row: The number of the segment's first row.
            columns: As ``SegmentReader.game_columns`` returns them.
        """
        counts = rows_by_game(columns)
        firsts = first_row + np.concatenate([[0], np.cumsum(counts)[:-1]])
        for model, first, count in zip(
            last_models(columns).tolist(), firsts.tolist(), counts.tolist(), strict=True
        ):
            self._games.setdefault(model, []).append(_Game(segment, first, count))

    def generations(self) -> list[int]:
        """Returns the generations that have games, in increasing order."""
        return sorted(self._games)

    def num_games(self, generation: int, num_segments: int | None = None) -> int:
        """Returns how many games of a generation are in the first ``num_segments``.

        None counts all segments.
        """
        return len(self._of(generation, num_segments))

    def first_row(self, generation: int) -> int:
        """Returns the least row of any game of this generation or a newer one."""
        return min(
            game.first_row
            for number, games in self._games.items()
            if number >= generation
            for game in games
        )

    def rows(
        self, generation: int, num_segments: int, chosen: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Returns the rows of some games of a generation.

        Args:
            generation: The generation.
            num_segments: Number of the first segments, whose games count.
            chosen: ``[G] int64``, places among these games.

        Returns:
            ``[R] int64`` row numbers in the order of ``chosen``.
        """
        known = self._of(generation, num_segments)
        games = [known[place] for place in chosen.tolist()]
        ranges = [
            np.arange(game.first_row, game.first_row + game.num_rows) for game in games
        ]
        return np.concatenate([np.zeros(0, np.int64), *ranges]).astype(np.int64)

    def forget_before(self, generation: int) -> None:
        """Forgets all generations before this one."""
        for number in [number for number in self._games if number < generation]:
            del self._games[number]

    def _of(self, generation: int, num_segments: int | None) -> list[_Game]:
        games = self._games.get(generation, [])
        if num_segments is None:
            return games
        return [game for game in games if game.segment < num_segments]


def last_models(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Returns the last model that each game was played with, ``[games] int64``.

    Args:
        columns: As ``SegmentReader.game_columns``.
    """
    models = columns["model"].astype(np.int64)
    ends = np.cumsum(columns["num_switches"].astype(np.int64))
    has_switched = columns["num_switches"] > 0
    models[has_switched] = columns["switch_model"][ends[has_switched] - 1]
    return models


def rows_by_game(columns: Mapping[str, NDArray[Any]]) -> NDArray[np.int64]:
    """Returns the number of training rows of each game, ``[games] int64``.

    Args:
        columns: As ``SegmentReader.game_columns``.
    """
    game_of_ply = np.repeat(
        np.arange(len(columns["num_plies"])), columns["num_plies"].astype(np.int64)
    )
    is_row = (columns["policy_weight"] > 0) | (columns["value_weight"] > 0)
    return np.bincount(game_of_ply[is_row], minlength=len(columns["num_plies"])).astype(
        np.int64
    )
