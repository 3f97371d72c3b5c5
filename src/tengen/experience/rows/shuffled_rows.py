"""Reads batches from ``RUN/shuffled`` for a learner, in the order of the shuffler."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError, TengenWarning, UsageError
from tengen.experience.games.manifest import Manifest, SegmentEntry
from tengen.experience.rows.ordered import OrderedExperience, Rows
from tengen.experience.rows.shuffled_files import (
    VALIDATION,
    ShardRows,
    ShuffledTurn,
    read_shard,
    read_turn,
    shard_name,
)
from tengen.run import NumberedFolder


class _Place(NamedTuple):
    """The position of a batch in ``RUN/shuffled``."""

    turn: int
    """The shuffle turn that contains the batch's first row."""
    row: int
    """Index of the batch's first row in the turn."""
    num_rows: int
    """Number of rows in the batch."""


class _Span(NamedTuple):
    """Consecutive rows of one shard."""

    turn: int
    shard: int
    first: int
    last: int


class ShuffledRows(OrderedExperience[_Place]):
    """Rows sampled by the role shuffle, as ``Experience`` that uses each row once.

    The shuffler applies the rate limit, so the learner may use all rows in the files.
    If learner and shuffler have the same batch size, batches are bit-identical to those
    of a ``GameWindow``. A turn whose folder was removed is skipped with a warning.
    Memory holds one shard at a time. Not thread-safe.

    Args:
        game: The game's name for `tengen.games.open_game`.
        folder: ``RUN/shuffled``.
        state: A result of the method ``state``, to restore; None for a new learner.

    Raises:
        RunError: A turn is damaged.
    """

    def __init__(
        self, game: str, folder: NumberedFolder, state: Mapping[str, Any] | None = None
    ) -> None:
        self.game = game
        self._folder = folder
        self._turns: dict[int, ShuffledTurn] = {}
        self._shard: tuple[int, int, ShardRows] | None = None
        # Position of the next unused row: its turn and its index in the turn.
        self._next = (0, 0)
        num_batches = 0
        if state is not None:
            self._next = (int(state["turn"]), int(state["row"]))
            num_batches = int(state["num_batches"])
            if self._next != (0, 0):
                self._see_turns()
        super().__init__(Manifest(folder.path), num_batches)

    @property
    def generation(self) -> int:
        """The newest generation that the shuffler has read; 0 if there is none."""
        return self._newest.generation if self._newest else 0

    @property
    def _newest(self) -> ShuffledTurn | None:
        return self._turns[max(self._turns)] if self._turns else None

    def refresh(self) -> int:
        """Reads the summaries of the turns that were published since the last call.

        Returns:
            The number of rows that the shuffler's window gained in these turns.

        Raises:
            UsageError: A turn has a newer schema or is of a different game.
            RunError: A turn is missing or damaged.
        """
        for number in [number for number in self._turns if number < self._next[0]]:
            del self._turns[number]
        return sum(turn.num_new for turn in self._see_turns())

    def available(self) -> int:
        """Returns the number of shuffled rows that have not been used yet."""
        first, row = self._next
        return sum(
            max(0, sum(turn.shard_rows) - (row if number == first else 0))
            for number, turn in self._turns.items()
            if number >= first
        )

    def lacks(self, num_samples: int) -> str:
        """Returns why no batch can be sampled; see ``Experience.lacks``."""
        available = self.available()
        if available >= num_samples:
            return ""
        return (
            f"shuffled samples ({available}) must be at least learner.batch_size "
            f"({num_samples}); run tengen shuffle"
        )

    def take_in(self, entries: Sequence[SegmentEntry]) -> int:
        """Loads nothing and returns 0, because the learner reads shards, not games."""
        return 0

    def follow(self, shared: Mapping[str, Any]) -> bool:
        """Returns False: the caller must open ``ShuffledRows`` with the new state."""
        return False

    def next_draw(self, num_samples: int) -> _Place:
        """See ``OrderedExperience.next_draw``.

        Raises:
            RunError: Fewer than ``num_samples`` unused rows are left.
        """
        available = self.available()
        if num_samples > available:
            raise RunError(
                f"num_samples ({num_samples}) must be at most {available}, the "
                "shuffled rows not used yet; run tengen shuffle"
            )
        place = _Place(*self._next, num_samples)
        spans = self._spans(place)
        before = sum(self._turns[spans[-1].turn].shard_rows[: spans[-1].shard])
        self._next = (spans[-1].turn, before + spans[-1].last)
        return place

    def rows_of(self, draw: _Place, first: int, last: int) -> Rows:
        """See ``OrderedExperience.rows_of``; reads all shards that the batch spans.

        Raises:
            RunError: A shard is damaged.
        """
        spans = self._spans(draw)
        parts = [self._read(span) for span in spans]
        keys = np.concatenate([part.keys for part in parts])[first:last]
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])[first:last]
            for name in parts[0].columns
        }
        return keys, columns, self._turns[spans[-1].turn].window_rows

    def validation(self, num_rows: int) -> dict[str, NDArray[Any]] | None:
        """Returns columns of validation rows; see ``GameWindow.validation``."""
        newest = self._newest
        if newest is None or not newest.has_validation:
            return None
        path = self._folder.entry(max(self._turns)) / VALIDATION
        columns = read_shard(path, self.game).columns
        return {name: column[:num_rows] for name, column in columns.items()}

    def order_state(self, lent: Sequence[_Place]) -> dict[str, Any]:
        """Returns the turn and index of the first row that is not acknowledged."""
        turn, row = lent[0][:2] if lent else self._next
        return {"turn": turn, "row": row}

    def describe(self) -> dict[str, int]:
        """Returns the counts of ``GameWindow.describe`` when the newest turn began."""
        newest = self._newest
        names = ("num_games", "num_rows", "window_rows", "window_bytes")
        return {name: getattr(newest, name) if newest else 0 for name in names}

    def close(self) -> None:
        """Frees the memory of the cached shard. A second call does nothing."""
        self._shard = None

    def _see_turns(self) -> list[ShuffledTurn]:
        """Returns the summaries of turns published since the last call, in order."""
        seen = []
        numbers = self._folder.numbers()
        if not self._turns and self._next == (0, 0) and numbers:
            # A new learner begins with the oldest turn that still exists.
            self._next = (numbers[0], 0)
        for number in numbers:
            if number < self._next[0] or number in self._turns:
                continue
            if number > max(self._turns, default=self._next[0] - 1) + 1:
                warn(
                    f"shuffled turn ({number}) follows a turn that is missing from "
                    f"{self._folder.path}; its rows are skipped",
                    TengenWarning,
                    stacklevel=2,
                )
            turn = read_turn(self._folder, number)
            if turn.game != self.game:
                raise UsageError(
                    f"shuffled turn ({self._folder.entry(number)}) must be for "
                    f"{self.game}, not {turn.game}; choose another --out"
                )
            self._turns[number] = turn
            seen.append(turn)
        return seen

    def _draw_of(self, values: Sequence[Any]) -> _Place:
        place = _Place(*values)
        self._next = (place.turn, place.row)
        self._see_turns()
        return place

    def _spans(self, place: _Place) -> list[_Span]:
        """Returns the spans of rows that form the batch at ``place``, in order."""
        spans: list[_Span] = []
        skipped, missing = place.row, place.num_rows
        for number in sorted(self._turns):
            if number < place.turn:
                continue
            for shard, num_rows in enumerate(self._turns[number].shard_rows):
                first = min(skipped if number == place.turn else 0, num_rows)
                skipped -= first
                last = min(first + missing, num_rows)
                if first < last:
                    spans.append(_Span(number, shard, first, last))
                    missing -= last - first
                if missing == 0:
                    return spans
        raise RunError(
            f"shuffled turn ({place.turn}) must have the rows of a batch, but its "
            "folder or a later one was removed; restore it"
        )

    def _read(self, span: _Span) -> ShardRows:
        """Returns the rows of a span; caches the shard for the next call."""
        if self._shard is None or self._shard[:2] != span[:2]:
            path = self._folder.entry(span.turn) / shard_name(span.shard)
            self._shard = (span.turn, span.shard, read_shard(path, self.game))
        rows, part = self._shard[2], slice(span.first, span.last)
        columns = {name: column[part] for name, column in rows.columns.items()}
        return ShardRows(rows.keys[part], columns)
