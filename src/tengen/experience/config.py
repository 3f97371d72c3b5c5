"""Experience configs: how much experience a run stores, and how often it is sampled."""

from __future__ import annotations

import dataclasses
import math
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, Self

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_whole
from tengen.errors import RunError, UsageError
from tengen.experience.rows.imported import newest_files
from tengen.open_config import OpenConfig
from tengen.store import RateLimits, Selector

_MAX_GAMES = 10_000_000
_MAX_GENERATIONS = 1000
_MAX_ITEMS = 2**28 - 1


class ExperienceConfig(OpenConfig, package="tengen.experience"):
    """How much experience a run stores, and how often the learner uses it.

    The agent decides which subclass it accepts, and opens the experience.
    """

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once and then removed from the table."""
        return False

    @property
    def games_of_model(self) -> int:
        """Minimum number of games of a model before the next is trained; 0 for none."""
        return 0

    def starting_with(self, num_rows: int) -> Self:
        """Returns a config with which learning begins after at most ``num_rows`` rows.

        Args:
            num_rows: Number of rows of the first generation, at least 1. The new config
                never requires more rows than this config.
        """
        return self

    def checked(self, task: str) -> ExperienceConfig:
        """Checks the files named in the config; returns a config with absolute paths.

        Called before a run begins.

        Args:
            task: The run's task.

        Raises:
            UsageError: A file does not exist or cannot be used.
        """
        return self


@dataclass(frozen=True, kw_only=True)
class SamplesPerInsertConfig:
    """A token bucket: a new row adds ``samples_per_row`` tokens, a sample takes one.

    The learner therefore uses a row at most ``samples_per_row`` times on average.
    KataGo calls this setting max-train-bucket-per-new-data; Reverb, samples per insert.
    """

    kind: Literal["samples_per_insert"] = "samples_per_insert"
    """The kind of rate limiter."""

    samples_per_row: float = bounded(
        4.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; use 4 to 8, as in KataGo",
    )
    """Maximum number of samples per new row, above 0. With a larger number, the learner
    learns more from each game, but overfits sooner."""

    max_samples: int = bounded(1_000_000, 1, hint="raise it to a batch or more")
    """Capacity of the bucket in samples, at least 1. It limits how many samples a
    learner takes without new rows after a pause."""

    def __post_init__(self) -> None:
        check_fields(self)


@dataclass(frozen=True, kw_only=True)
class WindowConfig(ExperienceConfig):
    """Settings of the window of the newest rows, and of how often rows are sampled."""

    kind: Literal["window"] = "window"
    """The kind of experience."""

    min_rows: int = bounded(2_000, 1, hint="raise it")
    """Minimum number of rows before the learner samples, at least 1. It is also the
    minimum size of the window."""

    max_rows: int = 20_000_000
    """Maximum size of the window in rows; at least ``min_rows``."""

    taper_exponent: float = bounded(
        0.65, 0, 1, above=True, rule="must be in (0, 1]; use 0.65, as in KataGo"
    )
    """Exponent of the power law by which the window grows with the run's rows, above 0,
    at most 1. With a smaller exponent, the window drops old rows sooner."""

    taper_scale_rows: int | None = bounded(None, 1, hint="leave it out to use min_rows")
    """Number of rows beyond ``min_rows`` at which growth begins to slow, at least 1. A
    larger number keeps growth linear for longer. None: ``min_rows``."""

    expand_per_row: float = bounded(
        0.4,
        0,
        1,
        above=True,
        rule="must be in (0, 1], or the window would need dropped rows; lower it",
    )
    """Number of rows by which the window grows per new row just beyond ``min_rows``,
    above 0, at most 1."""

    drawn_by: Literal["learn", "shuffle"] = "learn"
    """The role that samples the rows: ``learn``, or ``shuffle``, which writes the rows
    to ``RUN/shuffled``. Use ``shuffle`` for learners on other hosts, and for games with
    rows that are slow to derive."""

    with_replacement: bool = True
    """Whether rows are sampled with replacement. If not, rows are sampled in passes: a
    pass contains each row of the window once, in random order. A new pass begins when
    new games arrive, or when fewer rows are left in the pass than a batch needs
    (KataGo's no-repeat-files)."""

    validation_share: float = bounded(
        0.0, 0, 0.5, rule="must be in [0, 0.5]; use 0 for none"
    )
    """Fraction of games that are validation games, in [0, 0.5] (0.05 in KataGo), chosen
    by a hash of the game's generation and index. The learner never trains on validation
    games, and reports the loss on them in each turn."""

    limiter: SamplesPerInsertConfig = field(default_factory=SamplesPerInsertConfig)
    """The rate limiter, which limits how often the learner uses a row on average."""

    def __post_init__(self) -> None:
        check_fields(self)
        check(
            self.max_rows >= self.min_rows,
            "max_rows",
            self.max_rows,
            f"must be at least min_rows ({self.min_rows}); raise it",
        )

    def starting_with(self, num_rows: int) -> Self:
        """Returns a copy with ``min_rows`` at most ``num_rows``."""
        return dataclasses.replace(self, min_rows=min(self.min_rows, num_rows))

    def window_rows(self, num_rows: int) -> int:
        """Returns the window's size in rows when the run has ``num_rows`` rows.

        ``W(N) = min_rows + expand * ((N - min_rows + s)^e - s^e) / (e * s^(e - 1))``
        where s is ``taper_scale_rows``, e is ``taper_exponent`` and expand is
        ``expand_per_row``. The result lies between ``min_rows`` and ``max_rows``; if
        there are fewer than ``min_rows`` rows, it is ``num_rows``. The slope is
        ``expand_per_row`` at ``min_rows`` and decreases from there. Because the slope
        is at most 1, the window's oldest row never moves back to dropped rows.

        Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565),
        training details; the formula with a scale is from KataGo's python/shuffle.py.
        Differs from the source: rows of random play count like other rows.

        Args:
            num_rows: Number of rows of the run so far, N.
        """
        if num_rows <= self.min_rows:
            return num_rows
        scale = float(self.taper_scale_rows or self.min_rows)
        exponent = self.taper_exponent
        grown = (num_rows - self.min_rows + scale) ** exponent - scale**exponent
        # An exponent can be so small that both numbers are 0.
        slope = exponent * scale ** (exponent - 1.0)
        growth = self.expand_per_row * grown / slope if slope > 0.0 else 0.0
        return min(num_rows, self.max_rows, int(self.min_rows + growth))


@dataclass(frozen=True, kw_only=True)
class GenerationsConfig(ExperienceConfig):
    """Settings of one training pass over recent generations, after each generation.

    A game belongs to the generation of the last model that played it. When a generation
    has ``min_games`` games, the learner makes one pass over the newest
    ``num_generations`` generations with at least ``min_games`` games. From each
    generation, the pass samples ``min_games`` games, and the fraction ``share`` of the
    rows of these games.

    Source: MLPerf training v2.1, reinforcement learning (minigo).
    """

    kind: Literal["generations"] = "generations"
    """The kind of experience."""

    num_generations: int = bounded(5, 1, _MAX_GENERATIONS, "5 is the benchmark's")
    """Number of newest generations from which a pass samples, at least 1."""

    min_games: int = bounded(8192, 1, _MAX_GAMES, "8192 is the benchmark's")
    """Minimum number of games of a generation before the learner uses it, at least 1. A
    pass samples this number of games from each generation."""

    share: float = bounded(0.3, 0, 1, "0.3 is the benchmark's", above=True)
    """Fraction of the sampled games' rows that a pass uses, in (0, 1]."""

    imported: str = ""
    """Folder written by ``tengen data import-minigo --examples``. Its generations count
    as older than the run's own. Empty for none."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_fields(self)

    @property
    def games_of_model(self) -> int:
        """``min_games``; see ``ExperienceConfig.games_of_model``."""
        return self.min_games

    def checked(self, task: str) -> GenerationsConfig:
        """Checks the files in ``imported``; returns the config with an absolute path.

        Reads only the files' metadata, because MLPerf's rules forbid access to the data
        before its clock starts.
        """
        if not self.imported:
            return self
        path = str(Path(self.imported).resolve())
        found = dataclasses.replace(self, imported=path)
        try:
            found.imported_files(task)
        except RunError as error:
            # Raise a UsageError, because the user passed a wrong path.
            raise UsageError(
                f"store.imported ({path}) cannot be used: {error}"
            ) from error
        return found

    def imported_files(self, task: str) -> list[Path]:
        """Returns the files in ``imported`` that a run uses; see ``newest_files``.

        Args:
            task: The run's game.
        """
        if not self.imported:
            return []
        folder = Path(self.imported)
        return newest_files(folder, task, self.num_generations, self.min_games)


@dataclass(frozen=True, kw_only=True)
class ReplayConfig(ExperienceConfig):
    """Settings of a table of steps: sampler, capacity, and how often items are sampled.

    With the sampler ``fifo``, the table is a queue: every item is used once, oldest
    first, and actors wait while the queue is full. With other samplers, the table is a
    replay, which is durable and whose items are sampled repeatedly.
    """

    kind: Literal["table"] = "table"
    """The kind of experience."""
    sampler: Literal["fifo", "uniform", "prioritized"] = "fifo"
    """How items are sampled: oldest first, with equal probability, or with a
    probability that depends on their priority."""
    max_items: int = bounded(64, 1, _MAX_ITEMS)
    """Maximum number of items in the table, 1 to 2^28 - 1. A full replay removes its
    oldest items; a full queue makes actors wait."""
    memory_bytes: int = bounded(0, 0, 2**62)
    """Maximum memory for the steps of a replay, in bytes, 0 to 2^62. If the steps need
    more, memory holds the most recently used steps, and the disk holds all. 0: half of
    the memory that the process may use. Must be 0 for ``fifo``, which is always in
    memory."""
    min_items: int = 1
    """Minimum number of items in the table before sampling begins, 1 to ``max_items``;
    1 for ``fifo``."""
    samples_per_item: float = bounded(
        1.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; set how often each item is sampled",
    )
    """Average number of times that an item is sampled, above 0; 1 for ``fifo``. With a
    larger number, the learner learns more from each step, but takes more time for it.
    """
    max_ahead: int = bounded(0, 0, _MAX_ITEMS)
    """Maximum number of items, beyond ``min_items``, by which inserts into a replay may
    be ahead of sampling, 0 to 2^28 - 1. The learner catches up on an item with
    ``samples_per_item`` samples. 0: the items of two turns of all actors."""
    priority_exponent: float = bounded(
        0.6, 0, math.inf, below=True, rule="must be at least 0; use 0 for uniform"
    )
    """For ``prioritized``: items are sampled in proportion to their priority raised to
    this power, at least 0. 0 is uniform; a larger power favours high priorities."""
    importance_exponent: float = bounded(0.4, 0, 1)
    """For ``prioritized``: how much importance weights in the loss correct the bias of
    prioritized sampling, from 0 (not at all) to 1 (fully)."""
    demos: str = ""
    """Folder of demonstrations, see ``tengen demos``, which the agent also learns from.
    They are copied into the run when it begins. Empty for none. Stored as a full
    path."""
    demo_share: float = bounded(0.25, 0, 1, "use 0.25", above=True, below=True)
    """Probability that an element of a batch is a demonstration, in (0, 1), if there
    are ``demos``. The learner makes ``1 / (1 - demo_share)`` times as many optimizer
    steps, because ``samples_per_item`` applies only to the other elements."""
    timeout_s: float = bounded(
        300.0,
        0,
        math.inf,
        above=True,
        below=True,
        rule="must be above 0; use at least the time of an unroll",
    )
    """Maximum seconds that an insert or a sample waits before it fails, above 0."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        check_fields(self)
        check_whole("min_items", self.min_items, 1, self.max_items)
        for name in ("max_ahead", "memory_bytes"):
            value = getattr(self, name)
            check(
                not self.is_queue or value == 0,
                name,
                value,
                f"must be 0 with the fifo sampler; set store.{name}=0",
            )
        for name in ("min_items", "samples_per_item"):
            value = getattr(self, name)
            check(
                not self.is_queue or value == 1,
                name,
                value,
                f"must be 1 with the fifo sampler; set store.{name}=1",
            )

    def checked(self, task: str) -> ReplayConfig:
        """Returns the config with an absolute path of ``demos``, with its symlinks."""
        path = os.path.abspath(self.demos) if self.demos else ""
        return dataclasses.replace(self, demos=path)

    @property
    def is_queue(self) -> bool:
        """Whether every item is used once and then removed from the table."""
        return self.sampler == "fifo"

    @property
    def importance_exponent_of_draws(self) -> float | None:
        """Exponent of the importance weights; None unless sampling is prioritized."""
        return self.importance_exponent if self.sampler == "prioritized" else None

    @property
    def selector(self) -> Selector:
        """The sampler of the store's table for these settings."""
        return Selector(kind=self.sampler, exponent=self.priority_exponent)

    @property
    def limits(self) -> RateLimits:
        """The table's rate limits, which make inserts and samples wait.

        A replay returns at most ``samples_per_item`` samples per item beyond
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
        """Returns the number of samples that the table's rate limits allow now.

        Args:
            num_inserts: Number of items inserted so far.
            num_samples: Number of samples taken so far.
            num_items: Number of items in the table that can be sampled.
        """
        if self.is_queue:
            return num_items
        if num_items < self.min_items:
            return 0
        # Use the formula of core/store/state/rate_limiter.h, to get the same rounding.
        cursor = num_inserts * self.samples_per_item - num_samples
        return max(0, math.floor(cursor - self.min_items * self.samples_per_item))
