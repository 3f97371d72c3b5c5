"""The size of the self-play window: how many of the newest rows are sampled."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.experience.config import ExperienceConfig
from tengen.experience.limiter import SamplesPerInsertConfig

__all__ = ["WindowConfig"]


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ExperienceConfig):
    """How many of the newest rows are sampled, and how often."""

    kind: Literal["window"] = "window"
    """Tells this config from those of other experience."""

    min_rows: int = bounded(2_000, 1, hint="raise it")
    """Nothing is sampled before there are so many; at least 1."""

    max_rows: int = 20_000_000
    """The window grows no larger; at least ``min_rows``."""

    taper_exponent: float = bounded(
        0.65, 0, 1, above=True, rule="must lie in (0, 1]; KataGo uses 0.65"
    )
    """The window grows like the number of rows to this power, above 0, at most 1."""

    taper_scale_rows: int | None = bounded(None, 1, hint="leave it out for min_rows")
    """Rows over which the taper sets in, at least 1; None: ``min_rows``."""

    expand_per_row: float = bounded(
        0.4,
        0,
        1,
        above=True,
        rule="must lie in (0, 1]; above 1 the window would take back rows it dropped",
    )
    """Growth of the window by the first row beyond ``min_rows``, in (0, 1]."""

    drawn_by: Literal["learn", "shuffle"] = "learn"
    """Who draws the rows: the learner itself, or the role shuffle, which writes them to
    ``RUN/shuffled``, for learners on other hosts and games whose rows take long."""

    with_replacement: bool = True
    """Whether each draw has all rows of the window to choose from. If not, a pass over
    the window has each row once, in a random order; a new one begins as games arrive,
    and where fewer rows are left than a batch has (KataGo's no-repeat-files)."""

    validation_share: float = bounded(
        0.0, 0, 0.5, rule="must lie in [0, 0.5]; use 0 for none"
    )
    """Share of the games that are kept from learning, by a hash of their numbers, in
    [0, 0.5]; each turn of learning tells the loss on them (KataGo keeps 0.05)."""

    limiter: SamplesPerInsertConfig = field(default_factory=SamplesPerInsertConfig)
    """How often a row is used."""

    def __post_init__(self) -> None:
        check_fields(self)
        check(
            self.max_rows >= self.min_rows,
            "max_rows",
            self.max_rows,
            f"must be at least min_rows ({self.min_rows}); raise it",
        )

    def window_rows(self, num_rows: int) -> int:
        """Returns how many of ``num_rows`` rows, the newest, the window holds.

        ``W(N) = min_rows + expand * ((N - min_rows + s)^e - s^e) / (e * s^(e - 1))``
        where s is ``taper_scale_rows``, e ``taper_exponent`` and expand
        ``expand_per_row``, between ``min_rows`` and ``max_rows``, and all rows while
        there are fewer than ``min_rows``. The slope at ``min_rows`` is
        ``expand_per_row``, at most 1, and falls from there: so the window never
        reaches back to rows that it has left behind.

        Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565),
        training details; the form with a scale is of KataGo's python/shuffle.py.
        Differs: rows of random play count as any others.

        Args:
            num_rows: All rows so far, N.
        """
        law = _core.PowerLaw()
        law.min_items = self.min_rows
        law.max_items = self.max_rows
        law.exponent = self.taper_exponent
        law.scale = float(self.taper_scale_rows or self.min_rows)
        law.expand_per_item = self.expand_per_row
        return law.window(num_rows)
