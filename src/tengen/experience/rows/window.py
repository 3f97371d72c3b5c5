"""The window of a run's newest self-play rows, from which batches are sampled."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.cgroups import available_memory_bytes
from tengen.config import check
from tengen.errors import RunError
from tengen.experience.config import WindowConfig
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.rows.derived_rows import (
    DerivedRows,
    WindowDraw,
    WindowPass,
    is_validation,
    select_games,
)
from tengen.experience.rows.ordered import WRONG_FORM, OrderedExperience, Rows


class GameWindow(OrderedExperience[WindowDraw]):
    """Self-play games as ``Experience``; samples uniformly from the newest rows.

    A row is a searched ply with a target. Planes and targets are derived when the row
    is sampled, under a random symmetry. Batches are a pure function of the seed, the
    index of the batch and the manifest, so that a restored window continues with the
    same batches. Not thread-safe, except for ``derive``.

    Args:
        game: The game's name for `tengen.games.open_game`.
        experience: ``RUN/experience``.
        config: The settings of the window and of its rate limiter.
        seed: Seed of the random generator.
        state: A result of the method ``state``, to restore; None for a new window.
        auxiliary: Whether batches also have the targets of auxiliary heads.

    Attributes:
        game: The name of the game.
        config: The settings of the window.
        rows: The training rows.
        validation_rows: The rows of validation games.

    Raises:
        UsageError: The game is unknown, or a game in Python breaks the protocol.
        RunError: A segment that the window needs is missing or damaged.
    """

    def __init__(
        self,
        game: str,
        experience: Path,
        config: WindowConfig,
        seed: int,
        state: Mapping[str, Any] | None = None,
        auxiliary: bool = False,
    ) -> None:
        self.game = game
        self.config = config
        self._seed = seed
        # The current pass, if rows are sampled without replacement.
        self._pass: WindowPass | None = None
        manifest, left = Manifest(experience), 0
        num_learned: list[int] = []
        num_batches, level = 0, 0.0
        if state is not None:
            try:
                num_batches = int(state["num_batches"])
                # States written by earlier versions have no "pass".
                if (place := state.get("pass")) is not None:
                    self._pass = WindowPass(*map(int, place))
                manifest, num_learned = _segments_of(experience, state)
                left = _num_left(config, num_learned)
                level = float(state["limiter_level"])
            except WRONG_FORM as error:
                raise RunError(
                    f"window's state ({type(error).__name__} in it) is damaged; resume "
                    "from an earlier checkpoint"
                ) from error
        super().__init__(manifest, num_batches)
        # Number of training rows in each segment.
        self._num_learned = num_learned[:left]
        entries = list(manifest)
        num_dropped = sum(entry.num_rows for entry in entries[:left])
        num_rows = sum(self._num_learned)
        self.rows = DerivedRows(game, auxiliary, num_rows)
        self.validation_rows = DerivedRows(game, auxiliary, num_dropped - num_rows)
        # For each segment in memory: the indices after its last training row and after
        # its last validation row.
        self._ends: deque[tuple[int, int]] = deque()
        for entry in entries[left:]:
            self._load(entry)
        # Fill level of the rate limiter's bucket, in samples.
        self._level = level

    @property
    def num_rows(self) -> int:
        """Number of training rows in all segments, including dropped segments."""
        return self.rows.num_rows

    @property
    def num_games(self) -> int:
        """Number of games in all segments of the manifest."""
        return self.manifest.num_games

    @property
    def window_rows(self) -> int:
        """Current number of rows in the window."""
        return self.config.window_rows(self.num_rows)

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """See ``OrderedExperience.take_in``; validation rows are not counted."""
        before = self.num_rows
        limiter = self.config.limiter
        for entry in entries:
            filled = self._level + self._load(entry) * limiter.samples_per_row
            self._level = min(filled, float(limiter.max_samples))
        return self.num_rows - before

    def available(self) -> int:
        """Returns the number of samples allowed now; 0 below ``min_rows`` rows."""
        if self.num_rows < self.config.min_rows:
            return 0
        return max(0, math.floor(self._level))

    def lacks(self, num_samples: int) -> str:
        """Returns why no batch can be sampled; see ``Experience.lacks``."""
        if self.num_rows < self.config.min_rows:
            return (
                f"rows ({self.num_rows}) must be at least store.min_rows "
                f"({self.config.min_rows}); play more games"
            )
        available = self.available()
        if available >= num_samples:
            return ""
        return (
            f"samples ({available}) that store.limiter allows must be at least "
            f"learner.batch_size ({num_samples}); play more, or raise "
            "store.limiter.samples_per_row"
        )

    def next_draw(self, num_samples: int) -> WindowDraw:
        """See ``OrderedExperience.next_draw``.

        Raises:
            RunError: The window has too few rows, or the rate limiter allows fewer than
                ``num_samples`` samples.
        """
        if num_samples > self.available():
            raise RunError(
                f"num_samples ({num_samples}) must be at most {self.available()}, what "
                f"{self.num_rows} rows allow now; play more games or raise "
                "limiter.samples_per_row"
            )
        size = self.window_rows
        first_row = self.num_rows - size
        place = None
        if not self.config.with_replacement:
            place = self._place(num_samples, first_row, size)
            self._pass = place._replace(offset=place.offset + num_samples)
        self._level -= num_samples
        return WindowDraw(self.num_drawn, num_samples, first_row, size, place)

    def rows_of(self, draw: WindowDraw, first: int, last: int) -> Rows:
        """Returns rows ``[first, last)`` of a batch; derives only these rows."""
        keys, symmetries = self.rows.draw(self._seed, draw)
        keys, symmetries = keys[first:last], symmetries[first:last]
        return keys, self.rows.derive(keys, symmetries), draw.size

    def derive(
        self, draw: WindowDraw
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Returns keys and columns of a batch that was lent since the last ``refresh``.

        Thread-safe, except while a thread adds games with ``refresh``.
        """
        return self.rows_of(draw, 0, draw.num_rows)[:2]

    def validation(self, num_rows: int) -> dict[str, NDArray[Any]] | None:
        """Returns columns of validation rows, in the format of ``sample``.

        Samples from the window's validation games; returns None if there are none.

        Args:
            num_rows: Maximum number B of rows.
        """
        size = self.validation_rows.num_rows - self.validation_rows.oldest_row
        if size == 0:
            return None
        total = self.validation_rows.num_rows
        draw = WindowDraw(total, min(num_rows, size), total - size, size, None)
        keys, symmetries = self.validation_rows.draw(self._seed, draw)
        return self.validation_rows.derive(keys, symmetries)

    def order_state(self, lent: Sequence[WindowDraw]) -> dict[str, Any]:
        """See ``OrderedExperience.order_state``."""
        place = lent[0].place if lent else self._pass
        return {
            "manifest": self.manifest.to_dict(),
            "segment_rows": list(self._num_learned),
            "limiter_level": self._level + sum(draw.num_rows for draw in lent),
            "pass": None if place is None else list(place),
        }

    def describe(self) -> dict[str, int]:
        """Returns ``num_games``, ``num_rows``, ``window_rows`` and ``window_bytes``."""
        return {
            "num_games": self.num_games,
            "num_rows": self.num_rows,
            "window_rows": self.window_rows,
            "window_bytes": self.rows.num_bytes + self.validation_rows.num_bytes,
        }

    def close(self) -> None:
        """Frees the memory of the games. A second call does nothing."""
        self._drop_before(self.num_rows, self.validation_rows.num_rows)

    def _place(self, num_samples: int, first_row: int, size: int) -> WindowPass:
        """Returns the start of the next batch, in the current pass or in a new one.

        Raises:
            UsageError: A batch has more rows than a pass.
        """
        check(
            num_samples <= size,
            "num_samples",
            num_samples,
            f"must be at most {size}, the window's rows, without replacement; lower it",
        )
        place = self._pass
        if (
            place is not None
            and (place.first_row, place.size) == (first_row, size)
            and place.offset + num_samples <= size
        ):
            return place
        return WindowPass(self.num_drawn, first_row, size, 0)

    def _draw_of(self, values: Sequence[Any]) -> WindowDraw:
        draw = WindowDraw._make(values)
        if draw.place is None:
            return draw
        return draw._replace(place=WindowPass._make(draw.place))

    def _load(self, entry: SegmentEntry) -> int:
        """Loads a segment, and drops the segments that have left the window.

        Returns:
            The number of training rows in the segment.

        Raises:
            UsageError: The segment has a newer schema or is of a different game.
            RunError: The segment is damaged, or a move or a result is wrong.
        """
        share = self.config.validation_share
        with self.manifest.opened(entry, self.game) as reader:
            columns = reader.game_columns()
            if share > 0:
                kept = is_validation(entry.generation, columns["game_index"], share)
                self.validation_rows.add(select_games(columns, kept))
                columns = select_games(columns, ~kept)
            num_new = self.rows.add(columns)
        self._num_learned.append(num_new)
        self._ends.append((self.num_rows, self.validation_rows.num_rows))
        first_row = self.num_rows - self.window_rows
        while self._ends and self._ends[0][0] <= first_row:
            self._drop_before(*self._ends.popleft())
        return num_new

    def _drop_before(self, row: int, validation_row: int) -> None:
        """Frees segments that end before ``row`` (training) or ``validation_row``."""
        self.rows.drop_before(row)
        self.validation_rows.drop_before(validation_row)


def _segments_of(
    experience: Path, state: Mapping[str, Any]
) -> tuple[Manifest, list[int]]:
    """Returns the segments of a window's state, and their numbers of training rows.

    Raises:
        LookupError, TypeError, ValueError, AttributeError: The state has a wrong form.
    """
    manifest = Manifest.from_dict(experience, state["manifest"])
    num_listed = len(manifest)
    aside = manifest.set_aside()
    num_learned = [int(state["segment_rows"][i]) for i in range(num_listed)]
    return manifest, [num for i, num in enumerate(num_learned) if i not in aside]


def _num_left(config: WindowConfig, num_learned: Sequence[int]) -> int:
    """Returns the number of segments that are older than the window.

    Args:
        config: The window's config.
        num_learned: The number of training rows in each segment.
    """
    num_rows = sum(num_learned)
    first_row, end = num_rows - config.window_rows(num_rows), 0
    for place, num in enumerate(num_learned):
        end += num
        if end > first_row:
            return place
    return len(num_learned)


def predicted_window_bytes(
    game: str, experience: Path, config: WindowConfig, state: Mapping[str, Any] | None
) -> int:
    """Returns a window's size in memory, extrapolated from its newest segment.

    Args:
        game: The game's name.
        experience: ``RUN/experience``.
        config: The window's config.
        state: A result of ``GameWindow.state``; None for a new window. The estimate
            includes segments sealed after this state.

    Raises:
        RunError: The newest segment is missing or damaged.
    """
    manifest = _manifest(experience, state)
    entries = [entry for entry in manifest if entry.num_rows > 0]
    if not entries:
        return 0
    sample = DerivedRows(game, auxiliary=False)
    with entries[-1].open(experience) as reader:
        sample.add(reader.game_columns())
    return sample.num_bytes * config.window_rows(manifest.num_rows) // sample.num_rows


def check_window_memory(
    game: str, experience: Path, config: WindowConfig, state: Mapping[str, Any] | None
) -> None:
    """Checks that a window fits in free memory; see ``predicted_window_bytes``.

    Raises:
        RunError: The window does not fit, or its newest segment is damaged.
    """
    needed = predicted_window_bytes(game, experience, config, state)
    free = available_memory_bytes()
    if needed > free:
        num_rows = _manifest(experience, state).num_rows
        raise RunError(
            f"window ({config.window_rows(num_rows)} rows) needs about "
            f"{needed / 1e9:.1f} GB, and {free / 1e9:.1f} GB of "
            "memory are free; lower --set store.max_rows"
        )


def _manifest(experience: Path, state: Mapping[str, Any] | None) -> Manifest:
    manifest = Manifest(experience)
    if state is not None:
        manifest = Manifest.from_dict(experience, state["manifest"])
        manifest.set_aside()
    manifest.discover()
    return manifest
