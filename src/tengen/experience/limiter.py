"""The rate limiter of games: how many samples may be drawn per inserted row."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields

__all__ = ["SamplesPerInsert", "SamplesPerInsertConfig"]


@dataclass(frozen=True, kw_only=True)
class SamplesPerInsertConfig:
    """A rate limiter as a bucket, which new rows fill and training drains.

    However fast the learner is, it uses a row at most ``samples_per_row`` times on
    average. KataGo calls this number max-train-bucket-per-new-data, Reverb samples per
    insert.
    """

    kind: Literal["samples_per_insert"] = "samples_per_insert"
    """The kind of rate limiter."""

    samples_per_row: float = bounded(
        4.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; KataGo uses 4 to 8",
    )
    """Samples that the learner may draw for each new row, above 0. A larger number
    learns more from each game, and overfits sooner."""

    max_samples: int = bounded(1_000_000, 1, hint="allow a batch or more")
    """The bucket's size, at least 1: the most samples that a learner may catch up on
    after it was away."""

    def __post_init__(self) -> None:
        check_fields(self)


class SamplesPerInsert:
    """The bucket's level, in samples.

    Args:
        config: The bucket's rate and size.
        level: The level to start from: 0, or the level in a checkpoint.
    """

    def __init__(self, config: SamplesPerInsertConfig, level: float = 0.0) -> None:
        self.config = config
        self.level = level

    def insert(self, num_rows: int) -> None:
        """Fills the bucket for new rows; what exceeds its size is lost."""
        filled = self.level + num_rows * self.config.samples_per_row
        self.level = min(filled, float(self.config.max_samples))

    def samples_available(self) -> int:
        """Returns how many samples may be taken now."""
        return max(0, math.floor(self.level))

    def sample(self, num_samples: int) -> None:
        """Drains the bucket; ``num_samples`` is at most ``samples_available``."""
        self.level -= num_samples
