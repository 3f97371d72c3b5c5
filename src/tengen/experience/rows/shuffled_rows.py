"""The learner's side of ``RUN/shuffled``: batches in the order they were drawn in."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any
from warnings import warn

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError, TengenWarning, UsageError
from tengen.experience.divided import Divided
from tengen.experience.leases import Leases
from tengen.experience.rows.shuffled_files import (
    VALIDATION,
    ShardRows,
    ShuffledTurn,
    read_shard,
    read_turn,
    shard_name,
)
from tengen.run import NumberedFolder
from tengen.store.batch import Batch

__all__ = ["ShuffledRows"]


class ShuffledRows:
    """The rows that the role shuffle has drawn, as ``Experience``; each is used once.

    The shuffler applies the rate limit, so that all rows it wrote may be used. If the
    learner's batch size is the shuffler's, batches are to the bit those of a
    ``GameWindow``. A turn whose folder was removed is left out, with a warning. Reads
    one shard at a time. Not thread-safe.

    Args:
        game: The name, as `tengen.games.open_game` takes it.
        folder: ``RUN/shuffled``.
        state: What ``state`` returned, to continue from; None to start anew.

    Raises:
        RunError: A turn is damaged.
    """

    def __init__(
        self, game: str, folder: NumberedFolder, state: Mapping[str, Any] | None = None
    ) -> None:
        self.game = game
        self._folder = folder
        self._turns: dict[int, ShuffledTurn] = {}
        self._leases: Leases[tuple[int, int]] = Leases()
        self._shard: tuple[int, int, ShardRows] | None = None
        # The next row, as its turn and its place in the turn.
        self._next = (0, 0)
        # The same for the first row that is not acknowledged.
        self._used = (0, 0)
        if state is not None:
            self._next = self._used = (int(state["turn"]), int(state["row"]))
            self._leases = Leases(int(state["num_batches"]))
            if self._next != (0, 0):
                self._see_turns()

    @property
    def is_durable(self) -> bool:
        """True: games are files before they are taken in."""
        return True

    @property
    def generation(self) -> int:
        """The newest generation that rows were drawn from, 0 before the first."""
        return self._newest.generation if self._newest else 0

    @property
    def _newest(self) -> ShuffledTurn | None:
        return self._turns[max(self._turns)] if self._turns else None

    def refresh(self) -> int:
        """Takes in the turns that were published since the last call.

        Returns:
            How many rows were new to the window in these turns.

        Raises:
            UsageError: A turn is of a newer schema, or of another game.
            RunError: A turn is missing or damaged.
        """
        for number in [number for number in self._turns if number < self._used[0]]:
            del self._turns[number]
        return sum(turn.num_new for turn in self._see_turns())

    def available(self) -> int:
        """Returns how many rows were drawn but not learned from yet."""
        first, row = self._next
        return sum(
            max(0, sum(turn.shard_rows) - (row if number == first else 0))
            for number, turn in self._turns.items()
            if number >= first
        )

    def lacks(self, num_samples: int) -> str:
        """Returns what is missing for a batch; see ``Experience.lacks``."""
        available = self.available()
        if available >= num_samples:
            return ""
        return (
            f"shuffled samples ({available}) must be at least learner.batch_size "
            f"({num_samples}); run tengen shuffle"
        )

    def sample(self, num_samples: int) -> Batch:
        """Returns the next rows; never waits.

        Args:
            num_samples: B, at most ``available``.

        Returns:
            The batch, as ``GameWindow.sample``.

        Raises:
            RunError: There are fewer rows, or a shard is damaged.
        """
        available = self.available()
        if num_samples > available:
            raise RunError(
                f"num_samples ({num_samples}) must be at most the {available} that "
                f"were shuffled and not used; run tengen shuffle"
            )
        keys, columns, size = self._rows_of(num_samples)
        lease = self._leases.lend(self._next)
        probabilities = np.full(num_samples, 1 / size)
        return Batch(lease, keys, probabilities, columns, size, self._ack)

    def divide(self, num_samples: int, first: int, last: int) -> Divided:
        """See ``Divisible.divide``: each learner reads the shard and takes its rows."""
        order = {"next": list(self._next)}
        return Divided(order, lambda: _sliced(self.sample(num_samples), first, last))

    def shared(self, *, begins: bool) -> dict[str, Any]:
        """See ``Divisible.shared``: the state."""
        return self.state()

    def part(
        self, place: tuple[int, int], num_samples: int, first: int, last: int
    ) -> Batch:
        """Returns rows ``[first, last)`` of a batch that another learner draws.

        Args:
            place: The batch's first row, as its turn and its place in the turn.
            num_samples: Rows B of the whole batch.
            first: The first row of the part.
            last: One past the last row of the part.
        """
        self._next = self._used = (place[0], place[1])
        self.refresh()
        batch = self.sample(num_samples)
        batch.ack()
        return dataclasses.replace(
            _sliced(batch, first, last), _ack=lambda lease, priorities: None
        )

    def _rows_of(
        self, num_samples: int
    ) -> tuple[NDArray[np.int64], dict[str, NDArray[Any]], int]:
        """Returns keys and columns of the next rows, and the size of the window."""
        parts: list[ShardRows] = []
        missing = num_samples
        size = 0
        while missing > 0:
            part, size = self._take(missing)
            parts.append(part)
            missing -= len(part.keys)
        keys = np.concatenate([part.keys for part in parts])
        columns = {
            name: np.concatenate([part.columns[name] for part in parts])
            for name in parts[0].columns
        }
        return keys, columns, size

    def validation(self, num_rows: int) -> dict[str, NDArray[Any]] | None:
        """Returns columns of rows that are never learned from; see ``GameWindow``."""
        newest = self._newest
        if newest is None or not newest.has_validation:
            return None
        path = self._folder.entry(max(self._turns)) / VALIDATION
        columns = read_shard(path, self.game).columns
        return {name: column[:num_rows] for name, column in columns.items()}

    def state(self) -> dict[str, Any]:
        """Returns JSON values that restore the place in ``RUN/shuffled``.

        Batches not acknowledged count as never drawn.
        """
        turn, row = self._used
        return {"turn": turn, "row": row, "num_batches": self._leases.num_returned}

    def describe(self) -> dict[str, int]:
        """Returns the counts of ``GameWindow.describe``, as of the newest turn."""
        newest = self._newest
        names = ("num_games", "num_rows", "window_rows", "window_bytes")
        return {name: getattr(newest, name) if newest else 0 for name in names}

    def close(self) -> None:
        """Frees the shard that is held. A second call does nothing."""
        self._shard = None

    def _see_turns(self) -> list[ShuffledTurn]:
        """Reads the turns that it has not read yet, in order."""
        seen = []
        numbers = self._folder.numbers()
        if not self._turns and self._next == (0, 0) and numbers:
            # A learner that has used no turn yet begins with the oldest one left.
            self._next = self._used = (numbers[0], 0)
        for number in numbers:
            if number < self._next[0] or number in self._turns:
                continue
            if number > max(self._turns, default=self._next[0] - 1) + 1:
                warn(
                    f"shuffled turn ({number}) does not follow the one before it, "
                    f"which is not in {self._folder.path}; its rows are left out",
                    TengenWarning,
                    stacklevel=2,
                )
            turn = read_turn(self._folder, number)
            if turn.game != self.game:
                raise UsageError(
                    f"shuffled turn ({self._folder.entry(number)}) must be of "
                    f"{self.game}, not of {turn.game}; choose another --out"
                )
            self._turns[number] = turn
            seen.append(turn)
        return seen

    def _take(self, wanted: int) -> tuple[ShardRows, int]:
        """Returns at most ``wanted`` rows of one shard, and the size of the window."""
        number, row = self._next
        if number not in self._turns or row >= sum(self._turns[number].shard_rows):
            number, row = min(n for n in self._turns if n > number), 0
        turn = self._turns[number]
        index, first = 0, 0
        while first + turn.shard_rows[index] <= row:
            first += turn.shard_rows[index]
            index += 1
        if self._shard is None or self._shard[:2] != (number, index):
            path = self._folder.entry(number) / shard_name(index)
            self._shard = (number, index, read_shard(path, self.game))
        rows = self._shard[2]
        start = row - first
        end = min(start + wanted, turn.shard_rows[index])
        self._next = (number, row + end - start)
        columns = {name: column[start:end] for name, column in rows.columns.items()}
        return ShardRows(rows.keys[start:end], columns), turn.window_rows

    def _ack(self, lease: int, priorities: NDArray[np.float64] | None) -> None:
        if priorities is not None:
            raise UsageError(
                "priorities (given) must be None, rows are drawn evenly; leave them out"
            )
        self._used = self._leases.take_back(lease)


def _sliced(batch: Batch, first: int, last: int) -> Batch:
    """Returns rows ``[first, last)`` of a batch, which is acknowledged as a whole."""
    return dataclasses.replace(
        batch,
        keys=batch.keys[first:last],
        probabilities=batch.probabilities[first:last],
        columns={name: column[first:last] for name, column in batch.columns.items()},
    )
