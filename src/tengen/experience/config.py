"""The configs of experience: how much is kept, and how often the learner uses it."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_whole
from tengen.errors import RunError, UsageError
from tengen.experience.rows.imported import newest_files
from tengen.open_config import OpenConfig
from tengen.store import RateLimits, Selector

__all__ = [
    "ExperienceConfig",
    "GenerationsConfig",
    "ReplayConfig",
    "SamplesPerInsertConfig",
    "WindowConfig",
]

_MAX_GAMES = 10_000_000
_MAX_GENERATIONS = 1000
_MAX_ITEMS = 2**28 - 1


class ExperienceConfig(OpenConfig, package="tengen.experience"):
    """What a run keeps of its experience, and how often the learner uses it.

    The agent decides which kind of config it accepts, and opens the experience.
    """

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once and then removed."""
        return False

    @property
    def games_of_model(self) -> int:
        """Games each model must play before the learner makes the next; 0: none."""
        return 0

    def starting_with(self, num_rows: int) -> Self:
        """Returns the config where learning may begin after so many rows.

        Args:
            num_rows: Rows of the first generation, at least 1. The config never waits
                for more rows than before.
        """
        return self

    def checked(self, task: str) -> ExperienceConfig:
        """Returns the config with full paths of the files that it names, after checks.

        Called before a run begins.

        Args:
            task: The run's task.

        Raises:
            UsageError: A file does not exist or cannot be used.
        """
        return self


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
        path = str(Path(self.imported).resolve())
        found = dataclasses.replace(self, imported=path)
        try:
            found.imported_files(task)
        except RunError as error:
            # A UsageError, because nothing runs yet: the path that was typed is wrong.
            raise UsageError(
                f"store.imported ({path}) cannot be used: {error}"
            ) from error
        return found

    def imported_files(self, task: str) -> list[Path]:
        """Returns the imported files that a run learns from; see ``newest_files``.

        Args:
            task: The run's game.
        """
        if not self.imported:
            return []
        folder = Path(self.imported)
        return newest_files(folder, task, self.num_generations, self.min_games)


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
