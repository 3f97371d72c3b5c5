"""The self-play window: the newest games of a run, sampled evenly by row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.games import core_game, make
from tengen.store.core_errors import core_errors
from tengen.store.leases import Leases
from tengen.store.limiter import SamplesPerInsert, SamplesPerInsertConfig
from tengen.store.manifest import Manifest, SegmentEntry
from tengen.store.segment import GAME_COLUMNS
from tengen.store.table import Batch

__all__ = ["GameWindow", "WindowConfig", "window_rows"]

# What rows are made of; the rest of a segment is for people.
_ROW_COLUMNS = tuple(
    name
    for name in GAME_COLUMNS
    if name not in ("game_index", "model", "num_simulations")
)


@dataclass(frozen=True, kw_only=True)
class WindowConfig:
    """How many of the newest rows are sampled, and how often."""

    kind: Literal["window"] = "window"
    """Tells tables apart."""

    min_rows: int = 2_000
    """Nothing is sampled before there are so many; at least 1."""

    max_rows: int = 20_000_000
    """The window grows no larger; at least ``min_rows``."""

    taper_exponent: float = 0.65
    """The window grows like the number of rows to this power, above 0, at most 1."""

    taper_scale_rows: int | None = None
    """Rows over which the taper sets in, at least 1; None: ``min_rows``."""

    expand_per_row: float = 0.4
    """Growth of the window by the first row beyond ``min_rows``, in (0, 1]."""

    limiter: SamplesPerInsertConfig = field(default_factory=SamplesPerInsertConfig)
    """How often a row is used."""

    def __post_init__(self) -> None:
        check(
            self.min_rows >= 1,
            "min_rows",
            self.min_rows,
            "must be at least 1; raise it",
        )
        check(
            self.max_rows >= self.min_rows,
            "max_rows",
            self.max_rows,
            f"must be at least min_rows ({self.min_rows}); raise it",
        )
        check(
            0 < self.taper_exponent <= 1,
            "taper_exponent",
            self.taper_exponent,
            "must lie in (0, 1]; KataGo uses 0.65",
        )
        check(
            self.taper_scale_rows is None or self.taper_scale_rows >= 1,
            "taper_scale_rows",
            self.taper_scale_rows,
            "must be at least 1; leave it out for min_rows",
        )
        check(
            0 < self.expand_per_row <= 1,
            "expand_per_row",
            self.expand_per_row,
            "must lie in (0, 1]; above 1 the window would take back rows it dropped",
        )


def window_rows(
    num_rows: int,
    *,
    min_rows: int,
    max_rows: int,
    taper_exponent: float,
    taper_scale_rows: int,
    expand_per_row: float,
) -> int:
    """Returns how many of ``num_rows`` rows, the newest, the window holds.

    ``W(N) = min_rows + expand * ((N - min_rows + s)^e - s^e) / (e * s^(e - 1))``,
    between ``min_rows`` and ``max_rows``, and all rows while there are fewer than
    ``min_rows``. The slope at ``min_rows`` is ``expand_per_row`` and falls from there.

    Source: Wu 2019, "Accelerating self-play learning in Go" (arXiv:1902.10565),
    training details; the form with a scale is of KataGo's python/shuffle.py. Differs:
    rows of random play count as any others.

    Args:
        num_rows: All rows so far, N.
        min_rows: The floor.
        max_rows: The cap.
        taper_exponent: e, in (0, 1].
        taper_scale_rows: s, at least 1.
        expand_per_row: The slope at the floor, in (0, 1]: the window then never
            reaches back to rows that it has left behind.
    """
    if num_rows <= min_rows:
        return num_rows
    scale, exponent = float(taper_scale_rows), float(taper_exponent)
    grown = (num_rows - min_rows + scale) ** exponent - scale**exponent
    rows = min_rows + expand_per_row * grown / (exponent * scale ** (exponent - 1))
    return min(num_rows, max_rows, int(rows))


class GameWindow:
    """A table of self-play games: newest rows, drawn evenly with replacement.

    A row is a searched ply with a target; planes and targets are derived when it is
    drawn, under a random symmetry. Draws are a pure function of the seed, the number of
    the batch and the manifest, so that a restored window continues as if never stopped.
    Not thread-safe.

    Args:
        game: The name, as `tengen.games.make` takes it.
        experience: ``RUN/experience``.
        config: Size of the window and rate of use.
        seed: Of the draws.
        state: What ``state`` returned, to continue from; None to start anew.

    Raises:
        UsageError: The game is unknown, or an own game breaks the protocol.
        RunError: A segment that the window needs is missing or damaged.
    """

    def __init__(
        self,
        game: str,
        experience: Path,
        config: WindowConfig,
        seed: int,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.game = game
        self.config = config
        self._seed = seed
        self._rows = _core.GameRows(core_game(make(game)))
        self._known: set[tuple[str, int]] = set()
        self._manifest = Manifest(experience)
        self._leases: Leases[int] = Leases()
        self._limiter = SamplesPerInsert(config.limiter)
        if state is not None:
            self._restore(state)

    @property
    def num_rows(self) -> int:
        """Rows of all segments so far, also of those that left the window."""
        return int(self._rows.num_rows)

    @property
    def num_games(self) -> int:
        """Games of all segments in the manifest."""
        return self._manifest.num_games

    @property
    def generation(self) -> int:
        """The newest generation taken in, 0 before the first."""
        return max((entry.generation for entry in self._manifest), default=0)

    @property
    def window_rows(self) -> int:
        """Rows that are sampled now, the newest."""
        return self._window_of(self.num_rows)

    @property
    def size_bytes(self) -> int:
        """Memory of the games held."""
        return int(self._rows.size_bytes)

    def refresh(self) -> int:
        """Takes in the segments that were sealed since the last call.

        Returns:
            How many rows they have.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        before = self.num_rows
        for entry in self._manifest.discover():
            self._load(entry)
        return self.num_rows - before

    def insert(
        self, writer: str, sequence: int, columns: Mapping[str, NDArray[Any]]
    ) -> bool:
        """Adds the games of one segment; ``refresh`` calls it for sealed ones.

        Args:
            writer: ``<writer>/<incarnation>``.
            sequence: The generation.
            columns: As ``SegmentReader.game_columns``.

        Returns:
            Whether it was new.

        Raises:
            RunError: A move is illegal or a result wrong: not games of this game.
        """
        if (writer, sequence) in self._known:
            return False
        with core_errors():
            needed = {name: columns[name] for name in _ROW_COLUMNS}
            num_new = self._rows.add_segment(**needed)
        self._known.add((writer, sequence))
        self._limiter.insert(num_new)
        self._rows.drop_before(self.num_rows - self.window_rows)
        return True

    def samples_available(self) -> int:
        """Returns how many samples may be drawn now; 0 below ``min_rows`` rows."""
        if self.num_rows < self.config.min_rows:
            return 0
        return self._limiter.samples_available()

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch; never waits.

        Args:
            num_samples: B, at most ``samples_available``.

        Returns:
            The batch; keys are row numbers, and the columns are planes ``[B, C, H, W]
            float32``, legal ``[B, A] uint8``, policy ``[B, A] float32`` that sums to 1
            over the legal actions, policy_weight ``[B] float32``, outcome ``[B, 3]
            float32`` (win, draw, loss, to play), search_value ``[B] float32`` in [-1,
            1] to play, and value_weight ``[B] float32``.

        Raises:
            RunError: There are not enough rows, or they were used often enough.
        """
        if num_samples > self.samples_available():
            raise RunError(
                f"num_samples ({num_samples}) must be at most the "
                f"{self.samples_available()} that {self.num_rows} rows allow now; "
                f"play more games or raise limiter.samples_per_row"
            )
        size = self.window_rows
        keys, symmetries = _core.draw_rows(
            seed=self._seed,
            step=self._leases.next,
            num_rows=num_samples,
            first_row=self.num_rows - size,
            size=size,
            num_symmetries=self._rows.num_symmetries,
        )
        columns = self._derive(keys, symmetries)
        self._limiter.sample(num_samples)
        lease = self._leases.lend(num_samples)
        return Batch(lease, keys, np.full(num_samples, 1 / size), columns, self._ack)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the window.

        Batches not acknowledged count as never drawn.
        """
        lent = sum(self._leases.outstanding())
        return {
            "manifest": self._manifest.to_dict(),
            "num_batches": self._leases.num_returned,
            "limiter_level": self._limiter.level + lent,
        }

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._manifest = Manifest.from_dict(
            self._manifest.experience, state["manifest"]
        )
        first = self._manifest.num_rows - self._window_of(self._manifest.num_rows)
        end = 0
        for entry in self._manifest:
            end += entry.num_rows
            if end <= first:
                self._rows.skip_rows(entry.num_rows)
                self._known.add(
                    (f"{entry.writer}/{entry.incarnation}", entry.generation)
                )
            else:
                self._load(entry)
        self._leases = Leases(state["num_batches"])
        self._limiter = SamplesPerInsert(self.config.limiter, state["limiter_level"])

    def _load(self, entry: SegmentEntry) -> None:
        with entry.open(self._manifest.experience) as reader:
            if reader.meta["game"] != self.game:
                raise UsageError(
                    f"segment ({reader.path}) must be of {self.game}, not of "
                    f"{reader.meta['game']}; choose another --out"
                )
            try:
                columns = reader.game_columns()
                self.insert(
                    f"{entry.writer}/{entry.incarnation}", entry.generation, columns
                )
            except RunError as error:
                raise RunError(
                    f"segment ({reader.path}) is refused: {error}"
                ) from error

    def _window_of(self, num_rows: int) -> int:
        config = self.config
        return window_rows(
            num_rows,
            min_rows=config.min_rows,
            max_rows=config.max_rows,
            taper_exponent=config.taper_exponent,
            taper_scale_rows=config.taper_scale_rows or config.min_rows,
            expand_per_row=config.expand_per_row,
        )

    def _derive(
        self, keys: NDArray[np.int64], symmetries: NDArray[np.uint8]
    ) -> dict[str, NDArray[Any]]:
        rows, size, num_actions = self._rows, len(keys), self._rows.num_actions
        columns: dict[str, NDArray[Any]] = {
            "planes": np.empty(
                (size, rows.num_planes, rows.height, rows.width), np.float32
            ),
            "legal": np.empty((size, num_actions), np.uint8),
            "policy": np.empty((size, num_actions), np.float32),
            "policy_weight": np.empty(size, np.float32),
            "outcome": np.empty((size, 3), np.float32),
            "search_value": np.empty(size, np.float32),
            "value_weight": np.empty(size, np.float32),
        }
        with core_errors():
            rows.fill(keys, symmetries, **columns)
        return columns

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        self._leases.take_back(lease)
