"""Selects the rows of a batch that are learned from, over one learner or several."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tengen.learners.group import Group
from tengen.learners.update import Update
from tengen.store import Batch

__all__ = ["LearnedRows", "rows_to_learn"]


class LearnedRows(NamedTuple):
    """The rows of a batch that are learned from."""

    arrays: dict[str, Any]
    """The columns of this learner's rows, ``[rows, ...]`` each."""
    num_rows: int
    """Rows of all learners."""
    metrics: dict[str, float]
    """``lag_steps`` and ``too_old`` of all learners' rows, where they have them."""


def rows_to_learn(
    batch: Batch, update: Update, group: Group, num_steps: int
) -> LearnedRows:
    """Returns the rows of a batch that are not too old, with their weights.

    Args:
        batch: This learner's part of the batch.
        update: The agent's update, whose ``max_lag`` and ``importance_exponent`` count.
        group: The learners that hold the other parts.
        num_steps: Steps that the learners have made.

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
        # Scaled so that the greatest weight of the whole batch is 1, not of each part.
        weights = batch.importance_weights(exponent, float(each[:, 4].max()))
        if is_new is not None:
            weights = weights[is_new]
        arrays["importance_weight"] = weights.astype(np.float32)
    return LearnedRows(arrays, num_rows, metrics)
