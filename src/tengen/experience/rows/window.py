"""The self-play window: the newest games of a run, sampled evenly by row."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.experience.divided import Divided
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.leases import Leases
from tengen.experience.limiter import SamplesPerInsert
from tengen.experience.rows.window_draw import WindowDraw, WindowPass
from tengen.experience.rows.window_segments import (
    MetSegments,
    WindowSegments,
    segments_of_state,
)
from tengen.experience.window_config import WindowConfig
from tengen.store.batch import Batch

__all__ = ["GameWindow"]


class GameWindow:
    """Self-play games as ``Experience``: the newest rows, drawn evenly.

    A row is a searched ply with a target; planes and targets are derived when it is
    drawn, under a random symmetry. Draws are a pure function of the seed, the number of
    the batch and the manifest, so that a restored window continues as if never stopped.
    Not thread-safe, but for ``derive``.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        experience: ``RUN/experience``.
        config: Size of the window and rate of use.
        seed: Seed of the draws.
        state: What ``state`` returned, to continue from; None to start anew.
        auxiliary: Whether batches have the targets of auxiliary heads too.

    Attributes:
        game: As given.
        config: As given.
        rows: The rows to learn from.
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
        self._leases: Leases[WindowDraw] = Leases()
        # The current pass, where rows are drawn without replacement.
        self._pass: WindowPass | None = None
        # Number of segments that the following learners know of.
        self._num_shared = 0
        met = MetSegments(Manifest(experience), [], [])
        level = 0.0
        if state is not None:
            try:
                met = self._take_back(experience, state)
                level = float(state["limiter_level"])
            # Raised where another version or another program wrote the state.
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise RunError(
                    f"window's state ({type(error).__name__} in it) is damaged; "
                    f"go on from an earlier one"
                ) from error
        self._segments = WindowSegments(game, config, auxiliary, met)
        self._manifest = self._segments.manifest
        self.rows = self._segments.rows
        self.validation_rows = self._segments.validation_rows
        # Made after the rows were loaded, which have filled the bucket once already.
        self._limiter = SamplesPerInsert(config.limiter, level)

    @property
    def num_rows(self) -> int:
        """Rows to learn from in all segments so far, also those the window dropped."""
        return self.rows.num_rows

    @property
    def num_games(self) -> int:
        """Games of all segments in the manifest."""
        return self._manifest.num_games

    @property
    def is_durable(self) -> bool:
        """True: games are files before they are taken in."""
        return True

    @property
    def generation(self) -> int:
        """The newest generation that was taken in, 0 before the first."""
        return max((entry.generation for entry in self._manifest), default=0)

    @property
    def window_rows(self) -> int:
        """Number of the newest rows, which are sampled now."""
        return self.config.window_rows(self.num_rows)

    def refresh(self) -> int:
        """Takes in the segments that were sealed since the last call.

        Returns:
            How many rows to learn from they have.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        before = self.num_rows
        for entry in self._manifest.discover():
            self._load(entry)
        return self.num_rows - before

    def available(self) -> int:
        """Returns how many samples may be drawn now; 0 below ``min_rows`` rows."""
        if self.num_rows < self.config.min_rows:
            return 0
        return self._limiter.samples_available()

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch; see ``Experience.lacks``."""
        if self.num_rows < self.config.min_rows:
            return (
                f"rows ({self.num_rows}) must be at least store.min_rows "
                f"({self.config.min_rows}); play more"
            )
        available = self.available()
        if available >= num_samples:
            return ""
        return (
            f"samples ({available}) that store.limiter allows must be at least "
            f"learner.batch_size ({num_samples}); play more, or raise "
            f"store.limiter.samples_per_row"
        )

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch; never waits.

        Args:
            num_samples: B, at most ``available``.

        Returns:
            The batch; keys are row numbers, and the columns are planes ``[B, C, H, W]
            float32``, legal ``[B, A] uint8``, policy ``[B, A] float32`` that sums to 1
            over the legal actions, policy_weight ``[B] float32``, outcome ``[B, 3]
            float32`` (win, draw, loss, to play), search_value ``[B] float32`` in [-1,
            1] to play, and value_weight ``[B] float32``; and those of auxiliary heads
            (`tengen.agents.alphazero_update`) where they were asked for.

        Raises:
            RunError: Too few rows, or the rate limiter allows no more samples.
        """
        draw = self.lend(num_samples)
        keys, columns = self.derive(draw)
        probabilities = np.full(num_samples, 1 / draw.size)
        return Batch(
            draw.lease, keys, probabilities, columns, draw.size, self.take_back
        )

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Divisible.divide``: each learner draws all, and derives its own rows.

        Raises:
            RunError: As ``sample``.
        """
        draw = self.lend(num_samples)
        new = list(self._manifest)[self._num_shared :]
        self._num_shared += len(new)
        order = {"draw": list(draw), "segments": [to_dict(entry) for entry in new]}
        return Divided(order, lambda: self.part(draw, first, last, self.take_back))

    def part(
        self,
        draw: WindowDraw,
        first: int,
        last: int,
        ack: Callable[[int, NDArray[np.float64] | None], None],
    ) -> Batch:
        """Returns rows ``[first, last)`` of a draw, as ``sample`` returns all of them.

        Args:
            draw: The batch.
            first: The first row of the part.
            last: One past the last row of the part.
            ack: Called when the batch is acknowledged.
        """
        keys, symmetries = self.rows.draw(self._seed, draw)
        keys, symmetries = keys[first:last], symmetries[first:last]
        columns = self.rows.derive(keys, symmetries)
        probabilities = np.full(len(keys), 1 / draw.size)
        return Batch(draw.lease, keys, probabilities, columns, draw.size, ack)

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Divisible.shared``: the window's state."""
        if begins:
            self._num_shared = len(self._manifest)
        return self.state()

    def follow(self, manifest: Mapping[str, Any]) -> bool:
        """Takes in the segments that another learner's manifest has beyond this one's.

        Args:
            manifest: The manifest in the other's state.

        Returns:
            Whether the other's manifest begins with this one; if not, nothing is done.
        """
        own = self._manifest.to_dict()["segments"]
        if manifest["segments"][: len(own)] != own:
            return False
        self.take_in(manifest["segments"][len(own) :])
        return True

    def take_in(self, segments: Sequence[Mapping[str, Any]]) -> None:
        """Takes in segments that another learner met, in its order.

        Args:
            segments: The entries of the other learner's state.

        Raises:
            RunError: As ``refresh``.
            UsageError: As ``refresh``.
        """
        entries = [from_dict(SegmentEntry, one, "segment") for one in segments]
        self._manifest.append(entries)
        for entry in entries:
            self._load(entry)

    def lend(self, num_samples: int) -> WindowDraw:
        """Draws a batch without deriving its rows yet.

        Raises:
            RunError: Too few rows, or the rate limiter allows no more samples.
        """
        if num_samples > self.available():
            raise RunError(
                f"num_samples ({num_samples}) must be at most the "
                f"{self.available()} that {self.num_rows} rows allow now; "
                f"play more games or raise limiter.samples_per_row"
            )
        size = self.window_rows
        first_row = self.num_rows - size
        place = None
        if not self.config.with_replacement:
            place = self._place(num_samples, first_row, size)
            self._pass = place._replace(offset=place.offset + num_samples)
        self._limiter.sample(num_samples)
        draw = WindowDraw(self._leases.next, num_samples, first_row, size, place)
        self._leases.lend(draw)
        return draw

    def derive(
        self, draw: WindowDraw
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Returns keys and columns of a batch that was lent since the last refresh.

        Callable from any thread, while no other thread adds games.
        """
        keys, symmetries = self.rows.draw(self._seed, draw)
        return keys, self.rows.derive(keys, symmetries)

    def take_back(
        self, lease: int, priorities: NDArray[np.float64] | None = None
    ) -> None:
        """Ends a loan; see ``Batch.ack``."""
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        self._leases.take_back(lease)

    def validation(self, num_rows: int) -> dict[str, NDArray[Any]] | None:
        """Returns columns of validation rows, as ``sample`` returns them.

        They are drawn from the validation games of the window; None while it has none.

        Args:
            num_rows: The most rows B; fewer where there are fewer.
        """
        size = self.validation_rows.num_rows - self.validation_rows.oldest_row
        if size == 0:
            return None
        total = self.validation_rows.num_rows
        draw = WindowDraw(total, min(num_rows, size), total - size, size, None)
        keys, symmetries = self.validation_rows.draw(self._seed, draw)
        return self.validation_rows.derive(keys, symmetries)

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the window.

        Batches not acknowledged count as never drawn.
        """
        lent = self._leases.outstanding()
        place = lent[0].place if lent else self._pass
        return {
            "manifest": self._manifest.to_dict(),
            "segment_rows": list(self._segments.num_learned),
            "num_batches": self._leases.num_returned,
            "limiter_level": self._limiter.level + sum(draw.num_rows for draw in lent),
            "pass": None if place is None else list(place),
        }

    def describe(self) -> dict[str, int]:
        """Returns ``num_games``, ``num_rows``, ``window_rows`` and ``window_bytes``."""
        return {
            "num_games": self.num_games,
            "num_rows": self.num_rows,
            "window_rows": self.window_rows,
            "window_bytes": self._segments.num_bytes,
        }

    def close(self) -> None:
        """Frees the games that are held. A second call does nothing."""
        self._segments.close()

    def _place(self, num_samples: int, first_row: int, size: int) -> WindowPass:
        """Returns the place of the next rows: in the current pass, or in a new one.

        Raises:
            UsageError: A batch has more rows than a pass.
        """
        check(
            num_samples <= size,
            "num_samples",
            num_samples,
            f"must be at most the window's {size} rows without replacement; lower it",
        )
        place = self._pass
        if (
            place is not None
            and (place.first_row, place.size) == (first_row, size)
            and place.offset + num_samples <= size
        ):
            return place
        return WindowPass(self._leases.next, first_row, size, 0)

    def _take_back(self, experience: Path, state: Mapping[str, Any]) -> MetSegments:
        """Restores a state except its rows; returns the segments that it has."""
        self._leases = Leases(state["num_batches"])
        # States of earlier versions have no pass.
        if (place := state.get("pass")) is not None:
            self._pass = WindowPass(*map(int, place))
        return segments_of_state(experience, self.config, state)

    def _load(self, entry: SegmentEntry) -> None:
        num_new = self._segments.load(entry)
        if num_new is not None:
            self._limiter.insert(num_new)
