"""Signatures: the named inputs, outputs and state tensors of a network.

Ports, backends, messages, the recurrent state and the columns of experience derive
their names and shapes from a ``Signature``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_literals, check_range, check_whole

ACTION_MASK = "action_mask"
"""Name of the column ``[A]`` bool with the legal choices of a discrete action: the
choices of all components, concatenated. Networks do not receive it as an input; their
outputs for illegal choices are replaced by ``ILLEGAL``."""

AGENT_ID = "agent_id"
"""Name of the input with an agent's index in its environment, a one-hot vector. With
it, agents that share a network can act differently."""

GLOBAL_STATE = "global_state"
"""Name of the column with the global state of an environment with several agents. Only
learners receive it; it is no input of a network that acts."""

ILLEGAL = -1e30
"""The value that replaces a network's output for an illegal choice. The softmax of this
logit is 0, and this action value is below all others."""

FRAMES = "frames/"
"""Name prefix of state tensors with the previous values of an input, ``[S - 1, ...]``,
newest last. If the inputs are stored, these tensors can be recomputed."""

QUANTILES = "quantiles"
"""Name of the output ``[K, A]`` with K quantiles of the return of each of A actions, at
the midpoints of K equal fractions."""

CHOICE_OUTPUTS = frozenset(
    {"policy", "q", "advantage", "intrinsic_q", "intrinsic_advantage", QUANTILES}
)
"""Names of the outputs whose last axis has one entry for each choice, in the order of
``ACTION_MASK``. Masks apply to these outputs only, whatever the shapes of others."""

SCALED_POLICY = "scaled_policy"
"""Name of the output ``[2 K]`` with the means and log standard deviations of a
continuous action's K components. Components with bounds far from -1 and 1 are scaled so
that the bounds are -2 and 2; the others are in the environment's units."""

OBSERVATION = "observation"
"""Name of the input with the environment's observation; if the observation has several
parts, ``OBSERVATION/PART`` for each."""

POLICY = "policy_number"
"""Name of an input ``[P]``, the one-hot number of one of P policies, which an actor
chooses for each episode. Evaluation and play use policy 0."""

EMBEDDING = "embedding"
"""Name of the output ``[D]`` with features of the part of the observation that depends
on actions. A network with this output also has ``NOVELTY``."""

NOVELTY = "novelty"
"""Name of the output ``[]``: 1 for an observation of average novelty over the run, plus
1 for each standard deviation above it."""

FRACTIONS = "fractions"
"""Name of an input ``[M]`` that is not part of signatures. With it a learner requests
``QUANTILES`` ``[M, A]`` at M fractions in (0, 1)."""

_MAX_AXES = 8
_MAX_SCORE = 10_000

PolicyLayout: TypeAlias = Literal["cells", "cells_and_pass", "columns", "flat"]


@dataclass(frozen=True, kw_only=True)
class TensorSpec:
    """The dtype and shape of one row of a tensor."""

    dtype: str = "float32"
    """The name of a bool, integer or float type of numpy."""
    shape: tuple[int, ...] = ()
    """The shape of one row; () for a single number."""

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
        """Number of entries in one row."""
        return math.prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Size of one row in bytes."""
        return self.num_entries * np.dtype(self.dtype).itemsize

    def zeros(self, *rows: int) -> NDArray[np.generic]:
        """Returns an array of zeros, ``[*rows, *shape]``."""
        return np.zeros((*rows, *self.shape), self.dtype)


@dataclass(frozen=True, kw_only=True)
class BoardSpec:
    """The shapes of a board game's positions and actions."""

    num_planes: int
    """Number of planes C of an observation. Plane 0 is 1 on the board and 0 outside."""
    height: int
    """Number of rows H of a plane."""
    width: int
    """Number of columns W of a plane."""
    num_actions: int
    """Number of actions A, and of policy logits."""
    policy_layout: PolicyLayout = "flat"
    """How actions map to the board. ``cells``: one action per cell, row * width +
    column; ``cells_and_pass``: also a pass, last; ``columns``: one per column;
    ``flat``: none."""
    max_score: int = 0
    """A margin in points that few games exceed; 0 for games without a score."""

    def __post_init__(self) -> None:
        """Checks that the fields are valid and consistent.

        Raises:
            UsageError: A count is not positive, or A contradicts the layout.
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
        """The signature for a search: planes as input, policy and value as outputs.

        ``policy`` ``[A]`` contains logits, ``value`` ``[]`` is p(win) - p(loss) in [-1,
        1], for the side to move.
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
    """The named tensors of a network, with the dtype and row shape of each tensor."""

    inputs: dict[str, TensorSpec]
    """The input tensors by name."""
    outputs: dict[str, TensorSpec]
    """The output tensors by name."""
    state: dict[str, TensorSpec] = field(default_factory=dict)
    """The recurrent state, kept from one row to the next row of the same slot, and zero
    at the start of an episode. Empty for a network without memory, and in an agent's
    signature, because the network decides whether it has memory."""
    board: BoardSpec | None = None
    """The board game of the network; None for environments."""

    def __post_init__(self) -> None:
        """Checks the tensor names.

        Raises:
            UsageError: Inputs or outputs are missing, or a name is used twice.
        """
        check(bool(self.inputs), "inputs", "none", "must be at least one; add one")
        check(bool(self.outputs), "outputs", "none", "must be at least one; add one")
        names = [*self.inputs, *self.outputs, *self.state]
        twice = sorted({name for name in names if names.count(name) > 1})
        check(not twice, "signature", ", ".join(twice), "has a name twice; rename one")
