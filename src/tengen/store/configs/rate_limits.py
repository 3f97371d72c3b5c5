"""The config of a table's rate limiter, which bounds samples per insert."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native


def _bound() -> Any:
    rule = "must be finite; leave it out for no bound"
    return bounded(None, -math.inf, math.inf, above=True, below=True, rule=rule)


@dataclass(frozen=True, kw_only=True)
class RateLimits:
    """Limits on how far samples may be ahead of inserts, and inserts ahead of samples.

    ``inserts * samples_per_insert - samples`` stays between ``min_cursor`` and
    ``max_cursor``. While the table has fewer than ``min_size`` items, inserts are not
    limited and samples wait.

    Source: Cassirer et al. 2021, "Reverb: a framework for experience replay",
    section 3.3.
    """

    samples_per_insert: float = bounded(
        1.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be finite and above 0; set how often each item is sampled",
    )
    """Number of samples that one insert allows, above 0."""

    min_size: int = bounded(1, 1, 2**62)
    """Minimum number of items in the table before the first sample, at least 1."""

    min_cursor: float | None = _bound()
    """Minimum of ``inserts * samples_per_insert - samples``; a sample that would go
    below it waits. None: no bound."""

    max_cursor: float | None = _bound()
    """Maximum of ``inserts * samples_per_insert - samples``; an insert that would go
    above it waits. None: no bound."""

    def __post_init__(self) -> None:
        check_fields(self)
        if self.min_cursor is not None and self.max_cursor is not None:
            room = max(1.0, self.samples_per_insert)
            check(
                self.max_cursor - self.min_cursor >= room,
                "max_cursor",
                self.max_cursor,
                f"must be at least {room:g} above min_cursor ({self.min_cursor:g}), to "
                "allow one insert and one sample; raise it, or error_buffer",
            )

    @classmethod
    def ratio(
        cls, samples_per_insert: float, *, min_size: int, error_buffer: float
    ) -> RateLimits:
        """Returns limits that keep the ratio of samples to inserts near a given value.

        Args:
            samples_per_insert: The ratio of samples to inserts, above 0.
            min_size: Minimum number of items in the table before the first sample.
            error_buffer: Number of samples by which samples or inserts may be ahead of
                the ratio when the table has at least ``min_size`` items.
        """
        middle = min_size * samples_per_insert
        return cls(
            samples_per_insert=samples_per_insert,
            min_size=min_size,
            min_cursor=middle - error_buffer,
            max_cursor=middle + error_buffer,
        )

    @classmethod
    def queue(cls, size: int) -> RateLimits:
        """Returns limits that allow at most ``size`` items that are not sampled yet.

        Inserts wait at this limit, and samples wait if all items have been sampled.
        With ``max_times_sampled=1`` and a ``fifo`` sampler, the table is a queue.
        """
        return cls(min_cursor=0.0, max_cursor=float(size))

    @classmethod
    def of_native(cls, native: _core.RateLimits) -> RateLimits:
        """Returns the limits given by the core's struct ``native``."""
        return cls(
            samples_per_insert=native.samples_per_insert,
            min_size=native.min_size,
            min_cursor=None if math.isinf(native.min_cursor) else native.min_cursor,
            max_cursor=None if math.isinf(native.max_cursor) else native.max_cursor,
        )

    def native(self) -> _core.RateLimits:
        """Returns the core's struct for these limits."""
        return fill_native(
            self,
            _core.RateLimits(),
            min_cursor=-math.inf if self.min_cursor is None else self.min_cursor,
            max_cursor=math.inf if self.max_cursor is None else self.max_cursor,
        )
