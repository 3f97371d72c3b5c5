"""The settings of a table of steps: a queue of unrolls, or a replay."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_whole
from tengen.experience.config import ExperienceConfig
from tengen.store import RateLimits, Selector

__all__ = ["ReplayConfig"]

_MAX_ITEMS = 2**28 - 1


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(ExperienceConfig):
    """How a table of steps samples items, how many it keeps, how often each is used.

    With the sampler ``fifo`` the table is a queue: every item is learned from once, the
    oldest first, and actors wait while the queue is full. With the other samplers the
    table is a replay, which keeps items for many uses and survives a kill.
    """

    kind: Literal["table"] = "table"
    """The kind of experience."""
    sampler: Literal["fifo", "uniform", "prioritized"] = "fifo"
    """How an item is sampled: the oldest one, any with equal probability, or with a
    probability by its priority."""
    max_items: int = bounded(64, 1, _MAX_ITEMS)
    """The most items that the table keeps, 1 to 2^28 - 1. A full replay removes its
    oldest items; a full queue lets actors wait."""
    memory_bytes: int = bounded(0, 0, 2**62)
    """The most memory for the steps of a replay, in bytes, 0 to 2^62. If this is too
    little, memory holds the steps used last, and the disk holds all. 0: half of the
    memory that the process may use. Must be 0 for ``fifo``, which is always in
    memory."""
    min_items: int = 1
    """Items that must be in the table before any is sampled, 1 to ``max_items``; 1 for
    ``fifo``."""
    samples_per_item: float = bounded(
        1.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; say how often an item is to be drawn",
    )
    """How often an item is sampled on average, above 0; 1 for ``fifo``. A larger number
    learns more from each step, at more time per step."""
    max_ahead: int = bounded(0, 0, _MAX_ITEMS)
    """The most items of a replay that actors may insert ahead of the learner, 0 to 2^28
    - 1. Then actors wait until the learner has drawn ``samples_per_item`` samples for
    each. 0: the items of two turns of all actors."""
    priority_exponent: float = bounded(
        0.6, 0, math.inf, below=True, rule="must be at least 0; 0 is uniform"
    )
    """For ``prioritized``: items are drawn in proportion to their priority to this
    power, at least 0. 0 draws uniformly; a larger power favours large priorities."""
    importance_exponent: float = bounded(0.4, 0, 1)
    """For ``prioritized``: how much importance weights in the loss correct the bias of
    drawing by priority, from 0 (not at all) to 1 (fully)."""
    timeout_s: float = bounded(
        300.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; allow an unroll's time",
    )
    """Seconds that an insert or a sample may wait, above 0; then it fails."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_whole("min_items", self.min_items, 1, self.max_items)
        for name in ("max_ahead", "memory_bytes"):
            value = getattr(self, name)
            check(
                not self.is_queue or value == 0,
                name,
                value,
                f"must be 0 where the sampler is fifo; set store.{name}=0",
            )
        for name in ("min_items", "samples_per_item"):
            value = getattr(self, name)
            check(
                not self.is_queue or value == 1,
                name,
                value,
                f"must be 1 where the sampler is fifo; set store.{name}=1",
            )

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once and then removed."""
        return self.sampler == "fifo"

    @property
    def importance_exponent_of_draws(self) -> float | None:
        """Exponent of the importance weights; None where draws are even."""
        return self.importance_exponent if self.sampler == "prioritized" else None

    @property
    def selector(self) -> Selector:
        """The store's sampler for these settings."""
        return Selector(kind=self.sampler, exponent=self.priority_exponent)

    @property
    def limits(self) -> RateLimits:
        """The store's rate limits, by which inserts and samples wait.

        A replay never draws more than ``samples_per_item`` samples for each item beyond
        ``min_items``, and inserts are at most ``max_ahead`` items ahead of the samples.
        """
        if self.is_queue:
            return RateLimits.queue(self.max_items)
        least = self.min_items * self.samples_per_item
        ahead = max(1.0, self.samples_per_item, self.max_ahead * self.samples_per_item)
        return RateLimits(
            samples_per_insert=self.samples_per_item,
            min_size=self.min_items,
            min_cursor=least,
            max_cursor=least + ahead if self.max_ahead else None,
        )

    def num_available(self, num_inserts: int, num_samples: int, num_items: int) -> int:
        """Returns how many samples the limits allow now, computed as the store does.

        Args:
            num_inserts: Items inserted so far.
            num_samples: Samples drawn so far.
            num_items: Items that may be drawn.
        """
        if self.is_queue:
            return num_items
        if num_items < self.min_items:
            return 0
        # The operations of core/store/state/rate_limiter.h, so that both round alike.
        cursor = num_inserts * self.samples_per_item - num_samples
        return max(0, math.floor(cursor - self.min_items * self.samples_per_item))
