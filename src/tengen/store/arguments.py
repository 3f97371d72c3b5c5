"""Argument checks for the calls of local and remote stores."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.cgroups import memory_limit_bytes
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.store.configs.table_config import TableConfig

_MAX_SAMPLES = 1 << 16
_MAX_AHEAD = 1024


def check_batch(config: TableConfig, num_samples: int, num_ahead: int) -> None:
    """Checks that a batch size is in its range and fits into the host's memory.

    Args:
        config: The table's config.
        num_samples: Number of samples in a batch.
        num_ahead: Number of batches sampled in advance.

    Raises:
        UsageError: A number is out of its range, or a batch would exceed the memory.
    """
    check_range("num_samples", num_samples, 1, _MAX_SAMPLES, "request fewer")
    check_range("num_ahead", num_ahead, 0, _MAX_AHEAD)
    memory_bytes = memory_limit_bytes()
    check(
        num_samples * config.item_bytes <= memory_bytes,
        "num_samples",
        num_samples,
        f"must give a batch smaller than this host's memory ({memory_bytes} bytes), at "
        f"{config.item_bytes} bytes per sample; request fewer",
    )


def whole(name: str, value: Any) -> int:
    """Converts ``value``, an integer of Python or NumPy, to an int.

    Raises:
        UsageError: ``value`` is not an integer.
    """
    try:
        return operator.index(value)
    except TypeError as error:
        raise UsageError(
            f"{name} ({value}) must be a whole number; round it"
        ) from error


def vector_of(name: str, values: Any) -> NDArray[np.float64]:
    """Returns ``values`` as a contiguous array ``[N] float64``.

    Raises:
        UsageError: ``values`` are not numbers, or do not have exactly one axis.
    """
    try:
        vector = np.ascontiguousarray(values, np.float64)
    except (TypeError, ValueError) as error:
        raise UsageError(f"{name} ({error}) must be numbers; convert them") from error
    check(
        vector.ndim == 1,
        name,
        f"shape {list(vector.shape)}",
        "must have one axis; flatten them",
    )
    return vector
