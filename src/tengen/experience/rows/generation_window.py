"""The newest generations of self-play games as ``Experience``.

Source: MLPerf training v2.1, reinforcement learning (minigo), for the size of the
window, the fraction of its rows that is used, and one pass over these rows per model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError, UsageError
from tengen.experience.config import GenerationsConfig
from tengen.experience.games.manifest import SegmentEntry
from tengen.experience.rows.generations import GenerationPass, GenerationStock
from tengen.experience.rows.ordered import WRONG_FORM, OrderedExperience, Rows


class _Place(NamedTuple):
    """The start of a batch in a pass over generations."""

    whole: GenerationPass
    """The pass that the batch belongs to."""
    offset: int
    """Number of rows of the pass before the batch."""
    oldest: int
    """The oldest of the run's own generations that this or a later pass may need."""


class GenerationWindow(OrderedExperience[_Place]):
    """Experience with one pass over the newest generations for each new generation.

    Batches are a pure function of the seed, the pass and the manifest, so that a
    restored window continues with the same batches. The last rows of a pass are skipped
    if they do not fill a batch. Not thread-safe.

    Args:
        game: The game's name for `tengen.games.open_game`.
        experience: ``RUN/experience``.
        config: The numbers of generations, games and rows that a pass samples.
        seed: Seed of the random generator.
        batch_size: Number of rows in every batch.
        state: A result of the method ``state``, to restore; None for a new window.

    Raises:
        UsageError: The game is unknown, or imported generations are of a different one.
        RunError: A segment or an imported generation is missing or damaged.
    """

    def __init__(
        self,
        game: str,
        experience: Path,
        config: GenerationsConfig,
        seed: int,
        batch_size: int,
        state: Mapping[str, Any] | None = None,
    ) -> None:
        self.game = game
        self.config = config
        self._batch_size = batch_size
        self._stock = GenerationStock(game, experience, config, seed)
        # The current or last pass, its oldest generation, its row indices, and the
        # number of rows already sampled from it.
        self._pass: GenerationPass | None = None
        self._oldest = 0
        self._selected: NDArray[np.int64] = np.zeros(0, np.int64)
        self._offset = 0
        num_batches = 0
        if state is not None:
            try:
                num_batches = int(state["num_batches"])
                self._restore(state)
            except WRONG_FORM as error:
                raise RunError(
                    f"window's state ({type(error).__name__} in it) is damaged; resume "
                    "from an earlier checkpoint"
                ) from error

        super().__init__(self._stock.manifest, num_batches)

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """See ``OrderedExperience.take_in``."""
        return self._stock.take_in(entries)

    def available(self) -> int:
        """Returns the number of rows left in this pass; if 0, that of the next pass."""
        if left := self._left():
            return left
        place = self._next()
        return 0 if place is None else self._whole(len(self._stock.rows_of_pass(place)))

    def lacks(self, num_samples: int) -> str:
        """Returns why no batch can be sampled; see ``Experience.lacks``.

        Raises:
            UsageError: The next pass has fewer rows than a batch. More games do not
                help, because a pass uses only ``store.min_games`` games of a
                generation, and only a new model begins a new generation.
        """
        if self.available() >= num_samples:
            return ""
        newest = max(self._stock.generations(), default=0)
        num_games = self._stock.num_games(newest)
        if num_games < self.config.min_games:
            return (
                f"games of generation {newest} ({num_games}) must be at least "
                f"store.min_games ({self.config.min_games}); play more games"
            )
        if self._is_done(newest):
            return f"generation ({newest}) was learned already; play with a newer model"
        place = self._next()
        assert place is not None
        num_rows = len(self._stock.rows_of_pass(place))
        raise UsageError(
            f"learner.batch_size ({num_samples}) must be at most the {num_rows} rows "
            f"of a pass over generation {newest}, which more games do not increase; "
            "lower it, or raise store.share or store.min_games"
        )

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """See ``Followed.follow``; False if the leader has restored an older pass."""
        place = None if shared["pass"] is None else shared["pass"][0]
        is_behind = self._pass is not None and (
            place is None or place[0] < self._pass.number
        )
        return not is_behind and super().follow(shared)

    def validation(self, num_rows: int) -> None:
        """Returns None, because no games are held out for validation."""

    def order_state(self, lent: Sequence[_Place]) -> dict[str, Any]:
        """See ``OrderedExperience.order_state``."""
        place = None
        if self._pass is not None:
            place = _Place(self._pass, self._offset, self._oldest)
        if lent:
            place = lent[0]
        return {
            **self._stock.state(),
            "pass": None if place is None else [list(place.whole), *place[1:]],
        }

    def describe(self) -> dict[str, int]:
        """Returns counts of the games in memory and of the current or last pass.

        ``num_games``, ``num_rows`` and ``window_bytes`` describe all games.
        ``window_rows`` is the number of rows in the pass, and ``pass_left`` the number
        of these rows in batches that are not acknowledged yet. ``pass_generation`` is
        the newest generation of the pass, and ``pass_games`` the number of games that
        this generation had when the pass began.
        """
        found = {
            "num_games": self.manifest.num_games,
            "num_rows": self._stock.num_rows,
            "window_rows": len(self._selected),
            "window_bytes": self._stock.num_bytes,
        }
        if (place := self._pass) is not None:
            found["pass_left"] = self._unlearned()
            found["pass_generation"] = place.generation
            found["pass_games"] = self._stock.num_games(
                place.generation, place.num_segments
            )
        return found

    def close(self) -> None:
        """Frees the memory of the games. A second call does nothing."""
        self._stock.close()

    def next_draw(self, num_samples: int) -> _Place:
        """See ``OrderedExperience.next_draw``.

        Raises:
            RunError: No generation has enough games, or the pass has too few samples
                left.
        """
        if num_samples != self._batch_size or num_samples > self.available():
            raise RunError(
                f"num_samples ({num_samples}) must be learner.batch_size "
                f"({self._batch_size}) and at most {self.available()}, the rows left; "
                "play more games"
            )
        if not self._left():
            following = self._next()
            assert following is not None
            self._begin(following)
        assert self._pass is not None
        place = _Place(self._pass, self._offset, self._oldest)
        self._offset += num_samples
        return place

    def rows_of(self, draw: _Place, first: int, last: int) -> Rows:
        """Returns rows ``[first, last)`` of a batch; derives only these rows."""
        if draw.whole != self._pass:
            self._begin(draw.whole)
        size = len(self._selected)
        places, symmetries = self._stock.order(
            draw.whole, draw.offset, self._batch_size, size
        )
        # Slice the complete batch, because the index in it determines the symmetry.
        keys = self._selected[places[first:last]]
        return keys, self._stock.derive(keys, symmetries[first:last]), size

    def _draw_of(self, values: Sequence[Any]) -> _Place:
        whole, offset, oldest = values
        return _Place(GenerationPass(*whole), offset, oldest)

    def _begin(self, place: GenerationPass) -> None:
        self._selected = self._stock.rows_of_pass(place)
        self._pass = place
        self._offset = 0
        self._oldest = self._stock.forget(place)

    def _is_done(self, generation: int) -> bool:
        return self._pass is not None and generation <= self._pass.generation

    def _next(self) -> GenerationPass | None:
        """Returns the next pass; None if no newer generation has enough games."""
        number = 0 if self._pass is None else self._pass.number + 1
        for generation in sorted(self._stock.generations(), reverse=True):
            if self._is_done(generation):
                return None
            if self._stock.num_games(generation) >= self.config.min_games:
                num_segments = len(self.manifest)
                return GenerationPass(number, generation, num_segments)
        return None

    def _whole(self, num_rows: int) -> int:
        return num_rows - num_rows % self._batch_size

    def _left(self) -> int:
        return self._whole(max(0, len(self._selected) - self._offset))

    def _unlearned(self) -> int:
        return self._left() + self._batch_size * len(self._lent)

    def _restore(self, state: Mapping[str, Any]) -> None:
        if state["pass"] is None:
            self._stock.restore(state, 0)
            return
        given, offset, oldest = state["pass"]
        place = GenerationPass(*map(int, given))
        aside = self._stock.restore(state, int(oldest))
        # Excluded segments reduce the pass's number of segments, but not its offset.
        num_gone = sum(gone < place.num_segments for gone in aside)
        place = place._replace(num_segments=place.num_segments - num_gone)
        self._begin(place)
        self._offset = int(offset)
