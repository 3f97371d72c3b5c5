"""Selects the rows of a batch to learn from, for one or several learners."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tengen.learners.group import Group
from tengen.learners.update import Update
from tengen.store import Batch

__all__ = ["LearnedRows", "rows_to_learn"]


class LearnedRows(NamedTuple):
    """The rows of a batch to learn from."""

    arrays: dict[str, Any]
    """The columns of this learner's rows, arrays of shape ``[rows, ...]``."""
    num_rows: int
    """Number of rows of all learners."""
    metrics: dict[str, float]
    """``lag_steps`` and ``too_old`` over all learners' rows, if rows have versions."""


def rows_to_learn(
    batch: Batch, update: Update, group: Group, num_steps: int
) -> LearnedRows:
    """Returns the rows of a batch that are not too old, with importance weights.

    Args:
        batch: This learner's part of the batch.
        update: The update, whose ``max_lag`` and ``importance_exponent`` are used.
        group: The learners that have the other parts.
        num_steps: Number of learner steps so far.

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
        # Scaled so that the maximum weight of the complete batch is 1.
        weights = batch.importance_weights(exponent, float(each[:, 4].max()))
        if is_new is not None:
            weights = weights[is_new]
        arrays["importance_weight"] = weights.astype(np.float32)
    return LearnedRows(arrays, num_rows, metrics)
