"""Named tensors: the inputs, outputs and state of a network, declared once.

Ports, backends, the wire, the recurrent state and the columns of experience are made
from a ``Signature``, so shapes and names are derived from it everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_literals, check_range, check_whole

__all__ = [
    "FRACTIONS",
    "FRAMES",
    "QUANTILES",
    "SCALED_POLICY",
    "BoardSpec",
    "PolicyLayout",
    "Signature",
    "TensorSpec",
]

FRAMES = "frames/"
"""Prefix of the names of states that hold the last values of an input, ``[S - 1, ...]``
with the newest last. Where the inputs are stored, such a state need not be."""

QUANTILES = "quantiles"
"""The output ``[K, A]`` with K quantiles of the return of each of A actions, at the
midpoints of K equal fractions."""

SCALED_POLICY = "scaled_policy"
"""The output ``[2 K]`` with means and logarithms of deviations of K real numbers. Those
with bounds far from -1 and 1 are on a scale where their bounds are -2 and 2, the others
in the environment's units."""

FRACTIONS = "fractions"
"""An input ``[M]`` that no signature names: a learner may ask for ``QUANTILES`` ``[M,
A]`` at these fractions, in (0, 1)."""

_MAX_AXES = 8
_MAX_SCORE = 10_000

PolicyLayout: TypeAlias = Literal["cells", "cells_and_pass", "columns", "flat"]


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """The dtype and shape of one row of a tensor."""

    dtype: str = "float32"
    """The name of numpy's bool type, or of one of its integer or float types."""
    shape: tuple[int, ...] = ()
    """The shape of a row, without the axis of rows; () is a single number."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: The dtype is not numeric, or an axis is empty.
        """
        try:
            kind = np.dtype(self.dtype).kind
        except TypeError:
            kind = "O"
        check(
            kind in "biuf",
            "dtype",
            self.dtype,
            "must be a bool, integer or float type of numpy; convert the tensor",
        )
        object.__setattr__(self, "dtype", np.dtype(self.dtype).name)
        check(
            len(self.shape) <= _MAX_AXES,
            "shape",
            self.shape,
            f"must have at most {_MAX_AXES} axes; flatten some",
        )
        for length in self.shape:
            check_whole("shape", length, 1, 2**31)

    @property
    def num_entries(self) -> int:
        """How many numbers one row has."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes of one row."""
        return self.num_entries * np.dtype(self.dtype).itemsize

    def zeros(self, *rows: int) -> NDArray[np.generic]:
        """Returns zeros ``[*rows, *shape]``."""
        return np.zeros((*rows, *self.shape), self.dtype)


@dataclass(frozen=True, kw_only=True)
class BoardSpec:
    """What a signature says of a board game's positions and actions beyond shapes."""

    num_planes: int
    """Planes C of an observation; plane 0 is 1 on the board and 0 beyond it."""
    height: int
    """Rows H of a plane."""
    width: int
    """Columns W of a plane."""
    num_actions: int
    """Policy logits A."""
    policy_layout: PolicyLayout = "flat"
    """How actions map to the board: one for each cell (row * width + column), cells and
    a last action for pass, one for each column, or no relation (flat)."""
    max_score: int = 0
    """A bound of the points by which a game is won, rarely exceeded; 0 for games
    without a score and owners of cells."""

    def __post_init__(self) -> None:
        """Checks the fields against each other.

        Raises:
            UsageError: A count is not positive, or the layout does not give A.
        """
        check_literals(self)
        check_range("max_score", self.max_score, 0, _MAX_SCORE)
        for name in ("num_planes", "height", "width", "num_actions"):
            value = getattr(self, name)
            check(value >= 1, name, value, "must be at least 1; correct the game")
        cells = self.height * self.width
        expected = {
            "cells": cells,
            "cells_and_pass": cells + 1,
            "columns": self.width,
        }.get(self.policy_layout, self.num_actions)
        check(
            self.num_actions == expected,
            "num_actions",
            self.num_actions,
            f"must be {expected} for policy_layout {self.policy_layout}; "
            "change one of them",
        )

    @property
    def signature(self) -> Signature:
        """The signature that search needs: planes in, policy and value out.

        ``policy`` ``[A]`` are logits, ``value`` ``[]`` is p(win) - p(loss) in [-1, 1],
        for the side to move.
        """
        shape = (self.num_planes, self.height, self.width)
        return Signature(
            inputs={"planes": TensorSpec(shape=shape)},
            outputs={
                "policy": TensorSpec(shape=(self.num_actions,)),
                "value": TensorSpec(),
            },
            board=self,
        )


@dataclass(frozen=True, kw_only=True)
class Signature:
    """Named tensors, each a dtype and a shape a row."""

    inputs: dict[str, TensorSpec]
    """The inputs of a row."""
    outputs: dict[str, TensorSpec]
    """The outputs of a row."""
    state: dict[str, TensorSpec] = field(default_factory=dict)
    """What a network keeps from one row to the next row of the same slot; zeros where
    an episode begins. Empty for a network without memory. Also empty in the signature
    that an agent asks for, since the network decides whether it has memory."""
    board: BoardSpec | None = None
    """What a board game's network needs besides; None elsewhere."""

    def __post_init__(self) -> None:
        """Checks the names.

        Raises:
            UsageError: Inputs or outputs are missing, or a name is used twice.
        """
        check(bool(self.inputs), "inputs", "none", "must be at least one; name them")
        check(bool(self.outputs), "outputs", "none", "must be at least one; name them")
        names = [*self.inputs, *self.outputs, *self.state]
        twice = sorted({name for name in names if names.count(name) > 1})
        check(not twice, "signature", ", ".join(twice), "must name each tensor once")
