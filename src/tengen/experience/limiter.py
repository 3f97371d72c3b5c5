"""How often experience may be used: samples per insert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields

__all__ = ["SamplesPerInsert", "SamplesPerInsertConfig"]


@dataclass(frozen=True, kw_only=True)
class SamplesPerInsertConfig:
    """A bucket that new rows fill and training drains.

    The number that KataGo calls max-train-bucket-per-new-data and Reverb samples per
    insert: however fast the learner is, a row is used so often on average and no more.
    """

    kind: Literal["samples_per_insert"] = "samples_per_insert"
    """Tells limiters apart."""

    samples_per_row: float = bounded(
        4.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; KataGo uses 4 to 8",
    )
    """Samples that one new row allows, above 0."""

    max_samples: int = bounded(1_000_000, 1, hint="allow a batch or more")
    """The bucket's size, at least 1: what a learner that was away may catch up on."""

    def __post_init__(self) -> None:
        check_fields(self)


class SamplesPerInsert:
    """The bucket's level, in samples.

    Args:
        config: Its rate and size.
        level: To start from: 0, or what ``level`` was when a checkpoint was made.
    """

    def __init__(self, config: SamplesPerInsertConfig, level: float = 0.0) -> None:
        self.config = config
        self.level = level

    def insert(self, num_rows: int) -> None:
        """Fills the bucket for new rows; what is above its size is lost."""
        filled = self.level + num_rows * self.config.samples_per_row
        self.level = min(filled, float(self.config.max_samples))

    def samples_available(self) -> int:
        """Returns how many samples may be taken now."""
        return max(0, math.floor(self.level))

    def sample(self, num_samples: int) -> None:
        """Drains the bucket. The caller has asked ``samples_available``."""
        self.level -= num_samples
