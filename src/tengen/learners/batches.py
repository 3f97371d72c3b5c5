"""Samples a learner's batches in advance, and selects the rows to train on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tengen.learners.group import Group
from tengen.learners.update import Update
from tengen.store import Batch


class BatchAhead:
    """Samples batches in sequence, at most one in advance. Not thread-safe.

    Args:
        sample: Samples the batch of a number of learner steps.
        has_thread: Whether ``sample`` is called on this object's own thread, instead of
            the caller's. The order of all calls is the same.
    """

    def __init__(self, sample: Callable[[int], Batch], *, has_thread: bool) -> None:
        self._sample = sample
        self._pool: ThreadPoolExecutor | None = None
        if has_thread:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="learner-sample")
        self._next: Future[Batch] | Batch | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether a batch is being sampled, or is sampled and not taken yet."""
        return self._next is not None

    def take(self, num_steps: int = 1) -> Batch:
        """Returns the batch sampled in advance, or samples one. Blocks."""
        found = self._next or self._begun(num_steps)
        self._next = None
        return found.result() if isinstance(found, Future) else found

    def begin(self, num_steps: int) -> None:
        """Starts to sample the next batch; ``is_under_way`` must be false."""
        self._next = self._begun(num_steps)

    def settle(self) -> None:
        """Blocks until no batch is being sampled."""
        if isinstance(self._next, Future):
            wait([self._next])

    def close(self) -> None:
        """Ends the sampling thread, after completing a batch that has begun. Blocks."""
        if self._pool is not None:
            self._pool.shutdown()

    def _begun(self, num_steps: int) -> Future[Batch] | Batch:
        if self._pool is None:
            return self._sample(num_steps)
        return self._pool.submit(self._sample, num_steps)


class LearnedRows(NamedTuple):
    """The rows of a batch that the learner trains on."""

    arrays: dict[str, Any]
    """The columns of this learner's rows by name, arrays ``[rows, ...]``."""
    num_rows: int
    """Total number of rows over all learners of the group."""
    metrics: dict[str, float]
    """``lag_steps`` and ``too_old`` over all learners' rows, if the agent uses them."""


def rows_to_learn(
    batch: Batch, update: Update, group: Group, num_steps: int
) -> LearnedRows:
    """Returns a batch's rows within ``max_lag``, with importance weights if requested.

    Args:
        batch: This learner's part of the batch.
        update: The agent's update; defines ``max_lag`` and ``importance_exponent``.
        group: The group of learners that share the batch.
        num_steps: Number of learner steps so far.

    Raises:
        GroupLost: See ``Group``.
    """
    arrays: dict[str, Any] = dict(batch.columns)
    metrics: dict[str, float] = {}
    lag = is_new = None
    lag_sum, lag_size = 0.0, 0
    if "model_version" in arrays:
        lag = num_steps - arrays["model_version"]
        if update.max_lag is not None:
            is_new = lag.max(axis=1) <= update.max_lag
            if not is_new.all():
                arrays = {name: column[is_new] for name, column in arrays.items()}
                lag = lag[is_new]
        # No model acted in demonstrations, whose version is -1.
        of_models = lag[lag <= num_steps]
        lag_sum, lag_size = float(of_models.sum()), of_models.size
    exponent = update.importance_exponent
    num_given, num_rows = len(batch.keys), len(batch.keys)
    if lag is not None:
        num_rows = len(lag)
    greatest = None if exponent is None else batch.greatest_weight(exponent)
    each = group.gather([num_given, num_rows, lag_sum, lag_size, greatest or 0.0])
    num_given, num_rows = int(each[:, 0].sum()), int(each[:, 1].sum())
    if is_new is not None:
        metrics["too_old"] = 1.0 - num_rows / num_given
    if lag is not None and each[:, 3].sum() > 0:
        metrics["lag_steps"] = float(each[:, 2].sum() / each[:, 3].sum())
    if exponent is not None:
        # Scale the weights so that the maximum over all learners' rows is 1.
        weights = batch.importance_weights(exponent, float(each[:, 4].max()))
        if is_new is not None:
            weights = weights[is_new]
        arrays["importance_weight"] = weights.astype(np.float32)
    return LearnedRows(arrays, num_rows, metrics)


def placed(column: NDArray[np.generic], device: torch.device) -> Tensor:
    """Returns a column as a tensor on a device; a CPU tensor may share its memory."""
    # Copy read-only arrays, such as views of shared memory: torch warns about them.
    tensor = torch.from_numpy(column if column.flags.writeable else column.copy())
    if device.type == "cpu":
        return tensor  # ``to`` releases the GIL, which takes longer than a small layer
    if device.type != "cuda":
        return tensor.to(device)
    # Pinned memory allows an asynchronous copy, so this thread need not wait.
    return tensor.pin_memory().to(device, non_blocking=True)


def joined_priorities(
    priorities: Sequence[Tensor | None],
) -> NDArray[np.float64] | None:
    """Returns the priorities ``[B]`` of all parts' items; None if there are none."""
    found = [each for each in priorities if each is not None]
    if not found:
        return None
    return torch.cat(found).detach().cpu().double().numpy()
