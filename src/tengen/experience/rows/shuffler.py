"""Samples batches in advance and writes them to files, for the role shuffle."""

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

_TARGET_BYTES = 512
"""Estimated size in bytes of a packed row without its planes, on a large board."""
NUM_VALIDATION_ROWS = 1024
"""Number of rows on which the learner computes the validation loss in each turn."""


class ShufflingStopped(Exception):
    """A turn of the role shuffle was stopped, and has published nothing."""


class Shuffler:
    """Publishes the batches that the learner would sample from the window.

    Each turn publishes a folder with all samples that the rate limiter allows at that
    time, at most ``max_samples``. The next turn begins when the learner has begun to
    use this folder, and folders that no checkpoint needs are removed. With three
    checkpoints, the disk stores at most four folders. Memory contains the games of the
    window, and two to three shards per thread. A killed turn publishes nothing; a
    restart repeats it with the same result unless there are new games.

    Args:
        folder: ``RUN/shuffled``; this process is its only writer.
        open_window: Restores the window from a state, or opens a new window for None.
        batch_size: Number of rows in a batch, which should be the learner's.
        first_turn: Number of the next turn if ``folder`` is empty. It must be above the
            numbers of removed turns that a learner has read.
        num_threads: Number of threads that derive rows; use 1 for a game in Python.

    Raises:
        RunError: The newest turn or a segment is damaged.

    Attributes:
        shard_bytes: Approximate size in bytes of a shard's planes; a shard contains
            whole batches. Each thread has a shard in memory, and so has the learner.
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
        # Number of rows that the window has gained since the newest turn.
        self._num_new = 0

    @property
    def newest(self) -> int:
        """Number of the newest published turn; ``first_turn`` - 1 if there is none."""
        return self._number

    def turn(self, stop: threading.Event) -> ShuffledTurn | None:
        """Publishes all samples that are available. Blocks until they are durable.

        After an error this object must not be used again, because it counts samples as
        used that were not published.

        Args:
            stop: An event that stops the turn when it is set.

        Returns:
            The summary of the published turn; None if no batch can be sampled yet.

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
        """Frees the memory of the window's games."""
        self.window.close()

    def _check_room(self, num_rows: int) -> None:
        """Raises DiskFullError if the disk has no space for ``num_rows`` rows."""
        rows = self.window.rows
        layout = _core.RowLayout(rows.shape, rows.is_native)
        needed = num_rows * (layout.num_bytes + _TARGET_BYTES)
        free = shutil.disk_usage(self._folder.path).free
        if free < needed:
            raise DiskFullError(
                f"disk ({free / 1e6:.0f} MB free at {self._folder.path}) must "
                f"have {needed / 1e6:.0f} MB for {num_rows} shuffled rows; free "
                "some space, or lower store.limiter.max_samples",
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
