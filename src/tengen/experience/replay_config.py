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
    """Which items come next, which leave, and how often each is used.

    ``fifo`` is a queue: every item is learned from once, the oldest first, and actors
    wait while it is full. The others are a replay, which keeps items for many uses and
    survives a kill.
    """

    kind: Literal["table"] = "table"
    """Tells this config from those of other experience."""
    sampler: Literal["fifo", "uniform", "prioritized"] = "fifo"
    """Which item a sample is: the oldest, any, or by its priority."""
    max_items: int = bounded(64, 1, _MAX_ITEMS)
    """Items that are kept at most, 1 to 2^28 - 1; of a replay the oldest leave."""
    memory_bytes: int = bounded(0, 0, 2**62)
    """Memory that the steps of a replay take at most, 0 to 2^62; where that is too
    little for all, those that were used last are there, and all are on the disk. 0:
    half of what the process may use. 0 for ``fifo``, which is in memory as a whole."""
    min_items: int = 1
    """Nothing is sampled while there are fewer items, 1 to ``max_items``; 1 for
    ``fifo``."""
    samples_per_item: float = bounded(
        1.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; say how often an item is to be drawn",
    )
    """How often an item is sampled on average, above 0; 1 for ``fifo``."""
    max_ahead: int = bounded(0, 0, _MAX_ITEMS)
    """Items of a replay that actors may insert before the learner has drawn what they
    are worth, 0 to 2^28 - 1; then they wait for it. 0: two turns of all actors."""
    priority_exponent: float = bounded(
        0.6, 0, math.inf, below=True, rule="must be at least 0; 0 is uniform"
    )
    """Of ``prioritized``: items are drawn by ``priority ** exponent``, at least 0."""
    importance_exponent: float = bounded(0.4, 0, 1)
    """Of ``prioritized``: how much of what uneven draws change is taken back by weights
    in the loss, 0 (nothing) to 1 (all of it)."""
    timeout_s: float = bounded(
        300.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; allow an unroll's time",
    )
    """The longest wait of an insert or a sample, above 0; then it fails."""

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
        """Whether every item is used once, and none is kept for later."""
        return self.sampler == "fifo"

    @property
    def importance_exponent_of_draws(self) -> float | None:
        """Of the weights in the loss; None where draws are even and need none."""
        return self.importance_exponent if self.sampler == "prioritized" else None

    @property
    def selector(self) -> Selector:
        """Which item a sample is, as the store has it."""
        return Selector(kind=self.sampler, exponent=self.priority_exponent)

    @property
    def limits(self) -> RateLimits:
        """When inserts and samples wait.

        Samples of a replay are never ahead of ``samples_per_item`` for each item beyond
        ``min_items``, and inserts never more than ``max_ahead`` items ahead of them.
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
        """Returns how many samples the limits allow now, as the store reckons it.

        Args:
            num_inserts: Items inserted so far.
            num_samples: Samples drawn so far.
            num_items: Items that may be drawn.
        """
        if self.is_queue:
            return num_items
        if num_items < self.min_items:
            return 0
        # In the order of core/store/state/rate_limiter.h, so that both round alike.
        cursor = num_inserts * self.samples_per_item - num_samples
        return max(0, math.floor(cursor - self.min_items * self.samples_per_item))
