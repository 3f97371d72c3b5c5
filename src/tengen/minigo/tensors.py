"""Where named tensors of TensorFlow come from: the seam between files and weights."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.minigo.wire import Message

__all__ = ["DTYPES", "TensorFile", "read_shape"]

DTYPES: dict[int, np.dtype[np.generic]] = {1: np.dtype("<f4"), 9: np.dtype("<i8")}
"""By TensorFlow's number of a type; those of others are not read."""

_MAX_AXES = 8
_MAX_ENTRIES = 1 << 26


class TensorFile(Protocol):
    """A file of named tensors, each read when it is asked for.

    Attributes:
        name: What messages call the file, with its path.
        shapes: Of each tensor of a type in ``DTYPES``.
    """

    name: str
    shapes: dict[str, tuple[int, ...]]

    def read(self, name: str) -> NDArray[np.generic]:
        """Returns a tensor that ``shapes`` has.

        Raises:
            RunError: It is damaged.
        """


def read_shape(message: Message) -> tuple[int, ...]:
    """Returns what a ``TensorShapeProto`` says.

    Raises:
        ValueError: It is of unknown size, or of more than tensors have.
    """
    axes = tuple(axis.whole(1) for axis in message.messages(2))
    # A size that is not known is -1, which is a great number here.
    if len(axes) > _MAX_AXES or math.prod(axes) > _MAX_ENTRIES:
        raise ValueError("a tensor in it has no size, or too great a one")
    return axes
