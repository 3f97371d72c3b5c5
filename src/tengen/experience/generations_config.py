"""Which generations of self-play are learned from, and how much of each."""

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
    """A share of the newest generations, once, after each of them.

    A game is of the generation of the last model that it was played with. Once a
    generation has ``min_games`` games there is one pass: over ``share`` of the rows of
    ``min_games`` games, drawn anew in each pass, of each of the newest
    ``num_generations`` that have so many.

    Source: MLPerf training v2.1, reinforcement learning (minigo).
    """

    kind: Literal["generations"] = "generations"
    """Tells this config from those of other experience."""

    num_generations: int = bounded(5, 1, _MAX_GENERATIONS, "5 is the benchmark's")
    """Generations in a pass, the newest, at least 1."""

    min_games: int = bounded(8192, 1, _MAX_GAMES, "8192 is the benchmark's")
    """Games that a generation needs before it is learned from, at least 1, and games of
    each that a pass has."""

    share: float = bounded(0.3, 0, 1, "0.3 is the benchmark's", above=True)
    """Share of a generation's rows that a pass has, drawn evenly, in (0, 1]."""

    imported: str = ""
    """A folder of ``tengen data import-minigo --examples``: generations that come
    before the run's own. Empty for none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    @property
    def games_of_model(self) -> int:
        """See ExperienceConfig."""
        return self.min_games

    def checked(self, task: str) -> GenerationsConfig:
        """Returns the config with ``imported`` as a full path; see ExperienceConfig.

        Of the files only what they say of themselves is read, as the data of a
        benchmark is not to be touched before its clock begins.
        """
        if not self.imported:
            return self
        # A config imports nothing that is slow.
        from tengen.experience.generations.imported import checked_files

        path = str(Path(self.imported).resolve())
        found = dataclasses.replace(self, imported=path)
        try:
            checked_files(task, found)
        except RunError as error:
            # Nothing runs yet: it is what was typed that is at fault.
            raise UsageError(
                f"store.imported ({path}) cannot be used: {error}"
            ) from error
        return found
