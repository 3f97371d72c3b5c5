"""The config of experience by generations: which are learned from, and how much."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.errors import RunError, UsageError
from tengen.experience.config import ExperienceConfig

__all__ = ["GenerationsConfig"]

_MAX_GAMES = 10_000_000
_MAX_GENERATIONS = 1000


@dataclass(frozen=True, kw_only=True)
class GenerationsConfig(ExperienceConfig):
    """One pass over a share of the newest generations, after each generation.

    A game belongs to the generation of the last model that it was played with. Once a
    generation has ``min_games`` games, there is one pass over the newest
    ``num_generations`` generations that have so many. From each of these, the pass
    draws ``min_games`` games, and ``share`` of their rows; each pass draws anew.

    Source: MLPerf training v2.1, reinforcement learning (minigo).
    """

    kind: Literal["generations"] = "generations"
    """The kind of experience."""

    num_generations: int = bounded(5, 1, _MAX_GENERATIONS, "5 is the benchmark's")
    """Number of the newest generations that a pass draws from, at least 1."""

    min_games: int = bounded(8192, 1, _MAX_GAMES, "8192 is the benchmark's")
    """Games that a generation needs before it is learned from, at least 1. A pass draws
    so many games from each generation."""

    share: float = bounded(0.3, 0, 1, "0.3 is the benchmark's", above=True)
    """Share of the rows of these games that a pass draws, evenly, above 0, at most
    1."""

    imported: str = ""
    """Folder written by ``tengen data import-minigo --examples``, with generations that
    count as older than the run's own. Empty for none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    @property
    def games_of_model(self) -> int:
        """See ``ExperienceConfig.games_of_model``."""
        return self.min_games

    def checked(self, task: str) -> GenerationsConfig:
        """Returns the config with ``imported`` as a full path; see ExperienceConfig.

        Only the files' own descriptions are read, because a benchmark forbids touching
        its data before its clock begins.
        """
        if not self.imported:
            return self
        # Imported here, because importing a config must be fast.
        from tengen.experience.generations.imported import checked_files

        path = str(Path(self.imported).resolve())
        found = dataclasses.replace(self, imported=path)
        try:
            checked_files(task, found)
        except RunError as error:
            # A UsageError, because nothing runs yet: the path that was typed is wrong.
            raise UsageError(
                f"store.imported ({path}) cannot be used: {error}"
            ) from error
        return found
