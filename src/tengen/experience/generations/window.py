"""Self-play games as ``Experience`` that goes by generations.

Source: MLPerf training v2.1, reinforcement learning (minigo): the window, the share of
its examples, and one pass over them between two models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import from_dict, to_dict
from tengen.errors import RunError, UsageError
from tengen.experience.divided import Divided
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.generations.games import GenerationGames, last_models
from tengen.experience.generations.imported import ImportedGenerations
from tengen.experience.generations.passes import (
    GenerationPass,
    chosen_games,
    sampled_rows,
)
from tengen.experience.generations_config import GenerationsConfig
from tengen.experience.leases import Leases
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.store.batch import Batch

__all__ = ["GenerationWindow"]


class GenerationWindow:
    """Passes over the newest generations, one after each; see ``GenerationsConfig``.

    Draws are a pure function of the seed, the pass and the manifest, so that a restored
    window continues as if never stopped. Rows that do not fill a batch at the end of a
    pass are left out. Not thread-safe.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        experience: ``RUN/experience``.
        config: Which generations, and how much of them.
        seed: Of the draws.
        batch_size: Rows of every batch.
        state: What ``state`` returned, to continue from; None to start anew.

    Raises:
        UsageError: The game is unknown, or what was imported is of another.
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
        self._seed = seed
        self._batch_size = batch_size
        self._manifest = Manifest(experience)
        self._imported = ImportedGenerations(game, config)
        self._games = GenerationGames()
        # The newest generation that a game of each segment is of.
        self._newest: list[int] = []
        self._leases: Leases[tuple[GenerationPass, int, int]] = Leases()
        # The pass that goes on or was the last, its rows, and how many were drawn.
        self._pass: GenerationPass | None = None
        self._selected: NDArray[np.int64] = np.zeros(0, np.int64)
        self._offset = 0
        # A pass that may begin, and its rows.
        self._prepared: tuple[GenerationPass, NDArray[np.int64]] | None = None
        # Segments that the learners know which draw their parts of a batch.
        self._num_shared = 0
        held: list[int] = []
        given: tuple[GenerationPass, int] | None = None
        if state is not None:
            try:
                held, given = self._take_back(state)
            # Another version, or another program, wrote the state.
            except (LookupError, TypeError, ValueError, AttributeError) as error:
                raise RunError(
                    f"window's state ({type(error).__name__} in it) is damaged; "
                    f"go on from an earlier one"
                ) from error
        self._rows = DerivedRows(game, False, self._imported.num_rows)
        for place, entry in enumerate(self._manifest):
            if place in held:
                self._load(place, entry)
        if given is not None:
            self._begin(given[0])
            self._offset = given[1]

    @property
    def num_rows(self) -> int:
        """Rows of all segments so far, and of what was imported."""
        return self._imported.num_rows + self._manifest.num_rows

    @property
    def num_games(self) -> int:
        """Games of all segments in the manifest."""
        return self._manifest.num_games

    @property
    def generation(self) -> int:
        """The newest number of a segment, 0 before the first."""
        return max((entry.generation for entry in self._manifest), default=0)

    @property
    def is_between(self) -> bool:
        """Whether no pass goes on: the next batch would be the first of one."""
        return self._left() == 0

    def refresh(self) -> int:
        """Takes in the segments that were sealed since the last call.

        Returns:
            How many rows they have.

        Raises:
            UsageError: A segment is of a newer schema or of another game.
            RunError: A segment is damaged.
        """
        return self._load_all(self._manifest.discover())

    def available(self) -> int:
        """Returns how many samples the pass has left, or the next one if it is due."""
        if left := self._left():
            return left
        place = self._next()
        return 0 if place is None else self._whole(len(self._rows_of_pass(place)))

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch; see ``Experience.lacks``."""
        if self.available() >= num_samples:
            return ""
        newest = max(self._known_generations(), default=0)
        num_games = self._num_games(newest)
        if num_games < self.config.min_games:
            return (
                f"games of generation {newest} ({num_games}) must be at least "
                f"store.min_games ({self.config.min_games}); play more"
            )
        if self._is_done(newest):
            return f"generation ({newest}) is learned from; play with the newer model"
        return (
            f"rows of a pass ({self.available()}) must be at least "
            f"learner.batch_size ({num_samples}); raise store.share or store.min_games"
        )

    def sample(self, num_samples: int) -> Batch:
        """Draws a batch; never waits.

        Args:
            num_samples: B, the batch size, at most ``available``.

        Returns:
            The batch; keys are row numbers, and the columns are those of
            ``GameWindow.sample``, without those of auxiliary heads.

        Raises:
            RunError: No generation has enough games for it.
        """
        place, lease = self._lend(num_samples)
        return self._batch(place, self._offset - num_samples, (0, num_samples), lease)

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Divisible.divide``: all learners make the draw, and derive their rows.

        Raises:
            RunError: As ``sample``.
        """
        place, lease = self._lend(num_samples)
        offset = self._offset - num_samples
        new = list(self._manifest)[self._num_shared :]
        self._num_shared += len(new)
        order = {
            "pass": list(place),
            "offset": offset,
            "segments": [to_dict(entry) for entry in new],
        }
        return Divided(order, lambda: self._batch(place, offset, (first, last), lease))

    def draw_part(
        self, order: Mapping[str, Any], first: int, last: int, ack: Any
    ) -> Batch:
        """Returns a part of a batch that another learner's window has begun.

        Args:
            order: Of ``divide``.
            first: The first row.
            last: The one behind the last.
            ack: Takes the batch back.
        """
        self.take_in(order["segments"])
        place = GenerationPass._make(order["pass"])
        if place != self._pass:
            self._begin(place)
        keys, columns = self._derive(order["offset"], (first, last))
        probabilities = np.full(len(keys), 1 / len(self._selected))
        return Batch(0, keys, probabilities, columns, len(self._selected), ack)

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Divisible.shared``: the window's state."""
        if begins:
            self._num_shared = len(self._manifest)
        return self.state()

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Takes in what another learner's window has more than this one.

        Args:
            shared: Of the other's ``shared``.

        Returns:
            Whether the other went on from what this one has; nothing is done if not.
        """
        own = self._manifest.to_dict()["segments"]
        segments = shared["manifest"]["segments"]
        place = None if shared["pass"] is None else shared["pass"][0]
        is_behind = self._pass is not None and (
            place is None or place[0] < self._pass.number
        )
        if is_behind or segments[: len(own)] != own:
            return False
        self.take_in(segments[len(own) :])
        return True

    def take_in(self, segments: Sequence[Mapping[str, Any]]) -> None:
        """Takes in segments that another learner met, in its order.

        Args:
            segments: As they are in its state.

        Raises:
            RunError: As ``refresh``.
            UsageError: As ``refresh``.
        """
        entries = [from_dict(SegmentEntry, one, "segment") for one in segments]
        self._manifest.append(entries)
        self._load_all(entries)

    def take_back(
        self, lease: int, priorities: NDArray[np.float64] | None = None
    ) -> None:
        """Ends a loan; see ``Batch.ack``."""
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        self._leases.take_back(lease)

    def validation(self, num_rows: int) -> None:
        """Returns None: all games are learned from."""

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the window.

        Batches not acknowledged count as never drawn.
        """
        place, offset = self._pass, self._offset
        if lent := self._leases.outstanding():
            place, offset, _ = lent[0]
        return {
            "manifest": self._manifest.to_dict(),
            "newest": list(self._newest),
            "num_batches": self._leases.num_returned,
            "pass": None if place is None else [list(place), offset],
        }

    def describe(self) -> dict[str, int]:
        """Returns what is held, and of the pass that goes on, or was the last.

        ``num_games``, ``num_rows`` and ``window_bytes``; ``window_rows``, the rows of
        the pass, and its ``pass_generation``, and the ``pass_games`` that this
        generation had when the pass began.
        """
        found = {
            "num_games": self.num_games,
            "num_rows": self.num_rows,
            "window_rows": len(self._selected),
            "window_bytes": self._rows.num_bytes,
        }
        if (place := self._pass) is not None:
            found["pass_generation"] = place.generation
            found["pass_games"] = self._num_games(place.generation, place.num_segments)
        return found

    def close(self) -> None:
        """Frees the games that are held. A second call does nothing."""
        self._rows.drop_before(self._rows.num_rows)
        self._imported.close()

    def _lend(self, num_samples: int) -> tuple[GenerationPass, int]:
        if num_samples != self._batch_size or num_samples > self.available():
            raise RunError(
                f"num_samples ({num_samples}) must be learner.batch_size "
                f"({self._batch_size}) and at most the {self.available()} that are "
                f"left; play more games"
            )
        if not self._left():
            place = self._next()
            assert place is not None
            self._begin(place)
        assert self._pass is not None
        lease = self._leases.lend((self._pass, self._offset, num_samples))
        self._offset += num_samples
        return self._pass, lease

    def _batch(
        self, place: GenerationPass, offset: int, part: tuple[int, int], lease: int
    ) -> Batch:
        assert place == self._pass
        keys, columns = self._derive(offset, part)
        size = len(self._selected)
        probabilities = np.full(len(keys), 1 / size)
        return Batch(lease, keys, probabilities, columns, size, self.take_back)

    def _derive(
        self, offset: int, part: tuple[int, int]
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]]]:
        """Returns keys and columns of a part of the batch at a place of the pass."""
        assert self._pass is not None
        places, symmetries = self._pass.order(
            self._seed,
            offset,
            self._batch_size,
            len(self._selected),
            self._rows.num_symmetries,
        )
        # Of the whole batch: a row's symmetry goes by its place there.
        places, symmetries = places[slice(*part)], symmetries[slice(*part)]
        keys = self._selected[places]
        is_imported = keys < self._imported.num_rows
        if not is_imported.any():
            return keys, self._rows.derive(keys, symmetries)
        own = self._rows.derive(keys[~is_imported], symmetries[~is_imported])
        theirs = self._imported.columns(keys[is_imported], symmetries[is_imported])
        columns = {}
        for name, column in own.items():
            joined = np.empty((len(keys), *column.shape[1:]), column.dtype)
            joined[~is_imported] = column
            joined[is_imported] = theirs[name]
            columns[name] = joined
        return keys, columns

    def _begin(self, place: GenerationPass) -> None:
        self._selected = self._rows_of_pass(place)
        self._pass = place
        self._offset = 0
        self._forget()

    def _rows_of_pass(self, place: GenerationPass) -> NDArray[np.int64]:
        """Returns the rows of a pass, not yet in its order."""
        known = self._prepared
        if known is not None and known[0] == place:
            return known[1]
        rows = [np.zeros(0, np.int64)]
        for age, generation in enumerate(
            self._window(place.generation, place.num_segments)
        ):
            chosen = chosen_games(
                self._seed,
                place.number,
                age,
                self._num_games(generation, place.num_segments),
                self.config.min_games,
            )
            of_games = (
                self._imported.rows(generation, chosen)
                if generation < 0
                else self._games.rows(generation, place.num_segments, chosen)
            )
            share = self.config.share
            rows.append(sampled_rows(self._seed, place.number, age, share, of_games))
        selected = np.concatenate(rows)
        self._prepared = place, selected
        return selected

    def _forget(self) -> None:
        """Frees the games that neither this pass nor a later one has."""
        assert self._pass is not None
        oldest = self._window(self._pass.generation, self._pass.num_segments)[-1]
        if oldest < 0:
            return
        self._games.forget_before(oldest)
        self._rows.drop_before(self._games.first_row(oldest))

    def _known_generations(self) -> list[int]:
        return [*self._imported.generations(), *self._games.generations()]

    def _window(self, newest: int, num_segments: int) -> list[int]:
        """Returns the generations of a pass, the newest first.

        One that has too few games counts for nothing, as one whose model was soon
        followed by another.
        """
        whole = [
            number
            for number in self._known_generations()
            if number <= newest
            and self._num_games(number, num_segments) >= self.config.min_games
        ]
        return sorted(whole, reverse=True)[: self.config.num_generations]

    def _num_games(self, generation: int, num_segments: int | None = None) -> int:
        if generation < 0:
            return self._imported.num_games(generation)
        return self._games.num_games(generation, num_segments)

    def _next(self) -> GenerationPass | None:
        """Returns the pass that would begin now, if one is due."""
        generation = self._due()
        if generation is None:
            return None
        number = 0 if self._pass is None else self._pass.number + 1
        return GenerationPass(number, generation, len(self._manifest))

    def _is_done(self, generation: int) -> bool:
        return self._pass is not None and generation <= self._pass.generation

    def _due(self) -> int | None:
        """Returns the newest generation that a pass may begin with, if there is one."""
        for generation in sorted(self._known_generations(), reverse=True):
            if self._is_done(generation):
                return None
            if self._num_games(generation) >= self.config.min_games:
                return generation
        return None

    def _whole(self, num_rows: int) -> int:
        return num_rows - num_rows % self._batch_size

    def _left(self) -> int:
        return self._whole(max(0, len(self._selected) - self._offset))

    def _take_back(
        self, state: Mapping[str, Any]
    ) -> tuple[list[int], tuple[GenerationPass, int] | None]:
        """Takes a state, but for the games.

        Returns:
            The places of the segments that are needed, and the pass with its place.
        """
        self._manifest = Manifest.from_dict(
            self._manifest.experience, state["manifest"]
        )
        self._leases = Leases(int(state["num_batches"]))
        newest = [int(number) for number in state["newest"]]
        given = None
        if state["pass"] is not None:
            place, offset = state["pass"]
            given = GenerationPass(*map(int, place)), int(offset)
        aside = self._manifest.set_aside()
        if given is not None and aside:
            # The pass is of what is left; where it goes on is another place of it.
            num_gone = sum(place < given[0].num_segments for place in aside)
            whole = given[0]
            given = (
                whole._replace(num_segments=whole.num_segments - num_gone),
                given[1],
            )
        self._newest = [n for place, n in enumerate(newest) if place not in aside]
        last = max(self._newest, default=0)
        oldest = last if given is None else min(last, given[0].generation)
        # A generation may have no game: older segments are then loaded for nothing.
        distinct = sorted({n for n in self._newest if n <= oldest}, reverse=True)
        first = distinct[: self.config.num_generations + 1][-1] if distinct else 0
        return [p for p, n in enumerate(self._newest) if n >= first], given

    def _load_all(self, entries: Sequence[SegmentEntry]) -> int:
        before = self._rows.num_rows
        first = len(self._manifest) - len(entries)
        for place, entry in enumerate(entries, first):
            self._newest.append(self._load(place, entry))
        return self._rows.num_rows - before

    def _load(self, place: int, entry: SegmentEntry) -> int:
        """Loads a segment; returns the newest generation of its games."""
        with entry.open(self._manifest.experience) as reader:
            if reader.meta["game"] != self.game:
                raise UsageError(
                    f"segment ({reader.path}) must be of {self.game}, not of "
                    f"{reader.meta['game']}; choose another --out"
                )
            try:
                columns = reader.game_columns()
                first_row = self._rows.num_rows
                self._rows.add(columns)
                self._games.add(place, first_row, columns)
                return int(last_models(columns).max(initial=0))
            except RunError as error:
                raise RunError(
                    f"segment ({reader.path}) is refused: {error}"
                ) from error
