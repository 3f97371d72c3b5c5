"""Draws batches ahead of the learner into files, as the role shuffle does."""

from __future__ import annotations

import math
import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tengen import _core
from tengen.errors import DiskFullError
from tengen.experience.rows.derived_rows import WindowDraw
from tengen.experience.rows.shuffled_files import (
    VALIDATION,
    ShuffledTurn,
    read_window_state,
    shard_name,
    write_shard,
    write_turn,
)
from tengen.experience.rows.window import GameWindow
from tengen.run import NumberedFolder, remove_leftovers

__all__ = ["NUM_VALIDATION_ROWS", "Shuffler", "ShufflingStopped"]

_TARGET_BYTES = 512
"""Bytes of a row beside its planes on a large board; on a small board half as many."""
NUM_VALIDATION_ROWS = 1024
"""Validation rows that a turn of the learner computes the loss on."""


class ShufflingStopped(Exception):
    """A stop came before a turn was complete; nothing of the turn counts."""


class Shuffler:
    """Publishes the batches that the learner would draw from the window.

    Each turn publishes a folder with all samples that the rate limiter allows at that
    time. The next turn begins once the learner has begun to use this folder. So the
    disk holds at most four buckets of rows while three checkpoints are kept. Memory
    holds the games of the window, and for each thread two to three times a shard. A
    killed turn leaves nothing and is drawn again: to the same bytes, unless more games
    have arrived.

    Args:
        folder: ``RUN/shuffled``; this process is its only writer.
        open_window: Returns the window for a state, None for a new one.
        batch_size: Rows of a batch, the unit of draws, as for the learner's own.
        first_turn: The number of the first turn where none is published, because a
            learner may have read some that were removed since.
        num_threads: Threads that derive rows; a game in Python uses one.

    Raises:
        RunError: The newest turn or a segment is damaged.

    Attributes:
        shard_bytes: About the bytes of planes in a shard, which holds whole batches.
            Each thread has one shard in memory, and so has the learner.
    """

    shard_bytes = 32 << 20

    def __init__(
        self,
        folder: NumberedFolder,
        open_window: Callable[[Mapping[str, Any] | None], GameWindow],
        batch_size: int,
        num_threads: int,
        first_turn: int = 0,
    ) -> None:
        self._folder = folder
        folder.path.mkdir(exist_ok=True)
        remove_leftovers(folder.path)
        self._batch_size = batch_size
        newest = folder.latest()
        self._number = first_turn - 1 if newest is None else newest
        state = None if newest is None else read_window_state(folder, newest)
        self.window = open_window(state)
        self._num_threads = num_threads
        # Rows that arrived since the newest turn.
        self._num_new = 0

    @property
    def newest(self) -> int:
        """The newest turn that is published; ``first_turn`` - 1 before the first."""
        return self._number

    def turn(self, stop: threading.Event) -> ShuffledTurn | None:
        """Draws all samples that may be drawn. Blocks until they are durable.

        After an error this object must not be used any more, because samples that it
        counted as drawn are not on the disk.

        Args:
            stop: Ends the turn once it is set.

        Returns:
            The turn that was published; None where nothing may be drawn yet.

        Raises:
            ShufflingStopped: ``stop`` was set.
            RunError: A segment is damaged, or the disk is full.
        """
        window = self.window
        self._num_new += window.refresh()
        num_batches = window.available() // self._batch_size
        if num_batches == 0:
            return None
        self._check_room(num_batches * self._batch_size)
        lent = [window.lend(self._batch_size) for _ in range(num_batches)]
        draws = [draw for _, draw in lent]
        batch_bytes = 4 * math.prod(window.rows.shape) * self._batch_size
        size = max(1, self.shard_bytes // batch_bytes)
        shards = [draws[i : i + size] for i in range(0, num_batches, size)]
        validation = window.validation(NUM_VALIDATION_ROWS)
        turn = ShuffledTurn(
            game=window.game,
            generation=window.generation,
            num_new=self._num_new,
            shard_rows=tuple(self._batch_size * len(shard) for shard in shards),
            has_validation=validation is not None,
            **window.describe(),
        )
        for lease, _ in lent:
            window.take_back(lease)

        def write(folder: Path) -> None:
            def write_one(index: int) -> None:
                if not stop.is_set():
                    self._write_shard(folder / shard_name(index), shards[index])

            with ThreadPoolExecutor(self._num_threads) as pool:
                for _ in pool.map(write_one, range(len(shards))):
                    pass
            if stop.is_set():
                raise ShufflingStopped
            if validation is not None:
                keys = np.zeros(len(validation["legal"]), np.int64)
                write_shard(
                    folder / VALIDATION,
                    keys,
                    validation,
                    window.game,
                    window.rows.is_native,
                )
            write_turn(folder, turn, window.state())

        self._folder.publish(self._number + 1, write)
        self._number += 1
        self._num_new = 0
        return turn

    def close(self) -> None:
        """Frees the games that are held."""
        self.window.close()

    def _check_room(self, num_rows: int) -> None:
        """Refuses to fill a disk that has no room for a turn of so many rows."""
        rows = self.window.rows
        layout = _core.RowLayout(rows.shape, rows.is_native)
        needed = num_rows * (layout.num_bytes + _TARGET_BYTES)
        free = shutil.disk_usage(self._folder.path).free
        if free < needed:
            raise DiskFullError(
                f"disk ({free / 1e6:.0f} MB free at {self._folder.path}) must have "
                f"room for {num_rows} shuffled rows, {needed / 1e6:.0f} MB; free some, "
                f"or lower store.limiter.max_samples",
                needed_bytes=needed,
            )

    def _write_shard(self, path: Path, draws: list[WindowDraw]) -> None:
        parts = [self.window.derive(draw) for draw in draws]
        keys = np.concatenate([keys for keys, _ in parts])
        columns = {
            name: np.concatenate([columns[name] for _, columns in parts])
            for name in parts[0][1]
        }
        write_shard(path, keys, columns, self.window.game, self.window.rows.is_native)
