"""The config of the self-play window: how many of the newest rows are sampled."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, Self

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.experience.config import ExperienceConfig
from tengen.experience.limiter import SamplesPerInsertConfig

__all__ = ["WindowConfig"]


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ExperienceConfig):
    """How many of the newest rows the learner samples, and how often it uses a row."""

    kind: Literal["window"] = "window"
    """The kind of experience."""

    min_rows: int = bounded(2_000, 1, hint="raise it")
    """Rows that must exist before the learner samples any, at least 1. The window has
    at least this size."""

    max_rows: int = 20_000_000
    """Rows that the window never exceeds; at least ``min_rows``."""

    taper_exponent: float = bounded(
        0.65, 0, 1, above=True, rule="must lie in (0, 1]; KataGo uses 0.65"
    )
    """Power of the number of rows with which the window grows, above 0, at most 1. With
    a smaller power the window drops old rows sooner."""

    taper_scale_rows: int | None = bounded(None, 1, hint="leave it out for min_rows")
    """Rows beyond ``min_rows`` at which the growth begins to slow down, at least 1. A
    larger number keeps growth linear for longer. None: ``min_rows``."""

    expand_per_row: float = bounded(
        0.4,
        0,
        1,
        above=True,
        rule="must lie in (0, 1]; above 1 the window would take back rows it dropped",
    )
    """Rows that the window grows by for each new row just beyond ``min_rows``, above 0,
    at most 1."""

    drawn_by: Literal["learn", "shuffle"] = "learn"
    """Who draws the rows: the learner itself, or the role ``shuffle``, which writes
    them to ``RUN/shuffled``. Use shuffle for learners on other hosts, and for games
    whose rows take long to derive."""

    with_replacement: bool = True
    """Whether each row is drawn from the whole window. If not, rows are drawn in
    passes: a pass has each row of the window once, in random order. A new pass begins
    when new games arrive, or when fewer rows are left than a batch needs (KataGo's
    no-repeat-files)."""

    validation_share: float = bounded(
        0.0, 0, 0.5, rule="must lie in [0, 0.5]; use 0 for none"
    )
    """Share of the games that are validation games, in [0, 0.5] (KataGo: 0.05). They
    are chosen by a hash of their numbers and never learned from; each turn of the
    learner reports the loss on them."""

    limiter: SamplesPerInsertConfig = field(default_factory=SamplesPerInsertConfig)
    """How often a row is used for learning."""

    def __post_init__(self) -> None:
        check_fields(self)
        check(
            self.max_rows >= self.min_rows,
            "max_rows",
            self.max_rows,
            f"must be at least min_rows ({self.min_rows}); raise it",
        )

    def starting_with(self, num_rows: int) -> Self:
        """See ``ExperienceConfig.starting_with``."""
        return dataclasses.replace(self, min_rows=min(self.min_rows, num_rows))

    def window_rows(self, num_rows: int) -> int:
        """Returns how many of ``num_rows`` rows the window holds; it holds the newest.

        ``W(N) = min_rows + expand * ((N - min_rows + s)^e - s^e) / (e * s^(e - 1))``
        where s is ``taper_scale_rows``, e is ``taper_exponent`` and expand is
        ``expand_per_row``. The result is limited to ``min_rows`` to ``max_rows``; while
        there are fewer than ``min_rows`` rows, it is all of them. The slope at
        ``min_rows`` is ``expand_per_row``, at most 1, and falls from there on, so the
        window never takes back rows that it has dropped.

        Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565),
        training details; the form with a scale is that of KataGo's python/shuffle.py.
        Differs from the source: rows of random play count like any others.

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
