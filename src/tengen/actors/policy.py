"""What an actor of environments asks of an agent: actions from a network's answers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from tengen.envs import ActionSpec, Arrays

__all__ = ["Policy", "Slots"]


@dataclass(frozen=True)
class Slots:
    """Which copies of the environment an actor has, of all that are stepped."""

    first: int
    """The number of its first copy."""
    count: int
    """Its copies N."""
    total: int
    """Those of all actors."""


class Policy(Protocol):
    """From answers to actions; a pure function, from any thread."""

    def num_uniforms(self, actions: ActionSpec) -> int:
        """Returns how many uniform numbers U one row's action takes."""

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        """Returns the actions to take, and what is to be stored with them.

        Args:
            outputs: ``[N, ...]`` each, what the network answered.
            actions: What an action is.
            uniforms: ``[N, U]`` float64 in [0, 1).
            slots: Which copies these are.

        Returns:
            ``action`` ``[N, ...]`` as ``actions`` says, and ``[N, ...]`` each of the
            agent's own columns.
        """

    def act_greedily(self, outputs: Arrays, actions: ActionSpec) -> Arrays:
        """Returns ``action`` ``[N, ...]`` alone, the best that the network knows."""
