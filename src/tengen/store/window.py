"""The self-play window: the newest games of a run, sampled evenly by row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.games import core_game, make
from tengen.store.batch import Batch
from tengen.store.core_errors import core_errors
from tengen.store.leases import Leases
from tengen.store.limiter import SamplesPerInsert
from tengen.store.manifest import Manifest, SegmentEntry
from tengen.store.segment import GAME_COLUMNS
from tengen.store.window_config import WindowConfig

__all__ = ["GameWindow"]

# What rows are made of; the rest of a segment is for people.
_FOR_PEOPLE = ("game_index", "model", "num_simulations")
_ROW_COLUMNS = tuple(
    name for name in GAME_COLUMNS if name not in _FOR_PEOPLE and "switch" not in name
)


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
        auxiliary: Whether batches have the targets of auxiliary heads too.

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
        auxiliary: bool = False,
    ) -> None:
        self.game = game
        self._auxiliary = auxiliary
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
        return self.config.window_rows(self.num_rows)

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
            1] to play, and value_weight ``[B] float32``; and those of auxiliary heads
            (`tengen.learners.AlphaZeroLoss`) where they were asked for.

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
        probabilities = np.full(num_samples, 1 / size)
        return Batch(lease, keys, probabilities, columns, size, self._ack)

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

    def trim(self, state: Mapping[str, Any]) -> int:
        """Removes nothing: games stay, for people and for later windows."""
        return 0

    def describe(self) -> dict[str, int]:
        """Returns ``num_games``, ``num_rows`` and ``window_rows``."""
        return {
            "num_games": self.num_games,
            "num_rows": self.num_rows,
            "window_rows": self.window_rows,
        }

    def close(self) -> None:
        """Frees the games that are held. A second call does nothing."""
        self._rows.drop_before(self.num_rows)

    def _restore(self, state: Mapping[str, Any]) -> None:
        self._manifest = Manifest.from_dict(
            self._manifest.experience, state["manifest"]
        )
        num_rows = self._manifest.num_rows
        first = num_rows - self.config.window_rows(num_rows)
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
        if self._auxiliary:
            columns |= self._auxiliary_columns(size)
        with core_errors():
            rows.fill(keys, symmetries, **columns)
        return columns

    def _auxiliary_columns(self, size: int) -> dict[str, NDArray[Any]]:
        rows = self._rows
        shapes: dict[str, tuple[int, ...]] = {
            "reply": (size, rows.num_actions),
            "reply_weight": (size,),
            "horizons": (size, _core.NUM_HORIZONS),
        }
        if rows.max_score > 0:
            shapes |= {
                "ownership": (size, rows.height, rows.width),
                "score": (size,),
                "final_weight": (size,),
            }
        return {name: np.empty(shape, np.float32) for name, shape in shapes.items()}

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        self._leases.take_back(lease)
