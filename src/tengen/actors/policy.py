"""The interface by which an environment actor gets actions from a network's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.envs import ActionSpec, Arrays

__all__ = ["Policy", "Slots"]


@dataclass(frozen=True)
class Slots:
    """Which of the run's copies of the environment belong to an actor."""

    first: int
    """The number of the actor's first copy, counted over all actors."""
    count: int
    """Number N of the actor's copies."""
    total: int
    """Number of copies of all actors."""


class Policy(Protocol):
    """Turns a network's answers into actions, as pure functions, from any thread."""

    def num_uniforms(self, actions: ActionSpec) -> int:
        """Returns how many uniform random numbers U one row's action needs."""

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """Returns the actions to take, and the columns to store with them.

        Args:
            outputs: ``[N, ...]`` each, the network's answers.
            actions: The environment's action space.
            uniforms: ``[N, U]`` float64 in [0, 1).
            slots: Which copies these rows are.

        Returns:
            ``action`` ``[N, ...]`` as ``actions`` says, and ``[N, ...]`` each of the
            agent's own columns.
        """

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns ``action`` ``[N, ...]`` alone: the one the network holds best."""
