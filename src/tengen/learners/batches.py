"""A learner's batches: sampling in advance, and selection of the rows to learn from."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen.learners.group import Group
from tengen.learners.update import Update
from tengen.store import Batch

__all__ = [
    "BatchAhead",
    "LearnedRows",
    "placed",
    "rows_to_learn",
]


class BatchAhead:
    """Samples batches in sequence, at most one in advance. Not thread-safe.

    Args:
        sample: Samples a batch; called on this object's own thread.
    """

    def __init__(self, sample: Callable[[], Batch]) -> None:
        self._sample = sample
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._next: Future[Batch] | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a batch is being sampled or has been sampled but not taken."""
        return self._next is not None

    def take(self) -> Batch:
        """Returns the batch under way, or samples one if there is none. Blocks."""
        future = self._next or self._pool.submit(self._sample)
        self._next = None
        return future.result()

    def begin(self) -> None:
        """Starts to sample the next batch; a batch must not be under way."""
        self._next = self._pool.submit(self._sample)

    def settle(self) -> None:
        """Blocks until the batch under way, if any, has been sampled."""
        if self._next is not None:
            wait([self._next])

    def close(self) -> None:
        """Ends the thread. Blocks until the batch under way has been sampled."""
        self._pool.shutdown()


class LearnedRows(NamedTuple):
    """The rows of a batch to learn from."""

    arrays: dict[str, Any]
    """The columns of this learner's rows, arrays ``[rows, ...]``."""
    num_rows: int
    """Number of rows of all learners together."""
    metrics: dict[str, float]
    """``lag_steps`` and ``too_old`` over the rows of all learners, if defined."""


def rows_to_learn(
    batch: Batch, update: Update, group: Group, num_steps: int
) -> LearnedRows:
    """Returns the rows of a batch that are not too old, with importance weights.

    Args:
        batch: This learner's part of the batch.
        update: The agent's update; defines ``max_lag`` and ``importance_exponent``.
        group: The learners that have the other parts of the batch.
        num_steps: Number of steps made so far.

    Raises:
        GroupLost: See ``Group``.
    """
    arrays: dict[str, Any] = dict(batch.columns)
    metrics: dict[str, float] = {}
    lag = is_new = None
    if "model_version" in arrays:
        lag = num_steps - arrays["model_version"]
        if update.max_lag is not None:
            is_new = lag.max(axis=1) <= update.max_lag
            if not is_new.all():
                arrays = {name: column[is_new] for name, column in arrays.items()}
                lag = lag[is_new]
    exponent = update.importance_exponent
    num_given, num_rows = len(batch.keys), len(batch.keys)
    if lag is not None:
        num_rows = len(lag)
    greatest = None if exponent is None else batch.greatest_weight(exponent)
    lag_sum, lag_size = (0.0, 0) if lag is None else (float(lag.sum()), lag.size)
    each = group.gather([num_given, num_rows, lag_sum, lag_size, greatest or 0.0])
    num_given, num_rows = int(each[:, 0].sum()), int(each[:, 1].sum())
    if is_new is not None:
        metrics["too_old"] = 1.0 - num_rows / num_given
    if lag is not None and num_rows > 0:
        metrics["lag_steps"] = float(each[:, 2].sum() / each[:, 3].sum())
    if exponent is not None:
        # Scaled so that the maximum weight is 1 over all parts of the batch.
        weights = batch.importance_weights(exponent, float(each[:, 4].max()))
        if is_new is not None:
            weights = weights[is_new]
        arrays["importance_weight"] = weights.astype(np.float32)
    return LearnedRows(arrays, num_rows, metrics)


def placed(column: NDArray[np.generic], device: torch.device) -> Tensor:
    """Returns a column on a device; on the CPU it may share the column's memory."""
    # Copied if read-only, as views of shared memory are, because torch warns about
    # read-only arrays.
    tensor = torch.from_numpy(column if column.flags.writeable else column.copy())
    if device.type != "cuda":
        return tensor.to(device)
    # Pinned memory, so that this thread does not wait for the GPU at each column.
    return tensor.pin_memory().to(device, non_blocking=True)
