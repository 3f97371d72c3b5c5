"""What a network reads and keeps of copies of an environment, a row for each.

An actor, an evaluation and a player show a network the same things in the same way:
this is the one place that says which.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.actors.action_values import encode_actions
from tengen.envs import ActionSpec, Arrays
from tengen.errors import RunError
from tengen.inference import RowArrays
from tengen.tensors import Signature

__all__ = ["LAST_ACTION", "LAST_REWARD", "EnvironmentRows"]

LAST_ACTION = "last_action"
"""Input of a network that is told the action before: choices as one-hot, numbers as
they are; zeros at the first step of an episode."""
LAST_REWARD = "last_reward"
"""Input of a network that is told the reward before; 0 at an episode's first step."""


class EnvironmentRows:
    """Writes N rows, and reads what inference answered to them.

    Attributes:
        arrays: What a runner is bound to. The state of a row is zero where its episode
            begins.
    """

    def __init__(
        self,
        signature: Signature,
        actions: ActionSpec,
        num_rows: int,
        arrays: RowArrays | None = None,
    ) -> None:
        """Takes rows of zeros.

        Args:
            signature: Of the network, its state included.
            actions: What an action is.
            num_rows: N, at least 1.
            arrays: Where the rows are; None for memory of this process.
        """
        self._actions = actions
        self.arrays = arrays or RowArrays(signature, num_rows)

    @property
    def inputs(self) -> Arrays:
        """``[N, ...]`` each, as the signature names them; what inference reads."""
        return self.arrays.inputs

    @property
    def outputs(self) -> Arrays:
        """``[N, ...]`` each; what inference fills."""
        return self.arrays.outputs

    @property
    def state(self) -> Arrays:
        """``[N, ...]`` each; read and written by inference."""
        return self.arrays.state

    def begin(self, observation: Arrays) -> None:
        """Shows first observations: every row begins an episode.

        Args:
            observation: ``[N, ...]`` each.
        """
        self._write(observation)
        lasts = [self.inputs[n] for n in (LAST_ACTION, LAST_REWARD) if n in self.inputs]
        for array in (*lasts, *self.state.values()):
            array[:] = 0
        self.arrays.is_first[:] = True

    def show(
        self,
        observation: Arrays,
        action: NDArray[Any],
        reward: NDArray[np.float32],
        is_first: NDArray[np.bool_],
    ) -> None:
        """Shows what a step led to.

        Args:
            observation: ``[N, ...]`` each, the states reached.
            action: ``[N, ...]`` as it was chosen, perhaps out of its bounds.
            reward: ``[N]`` float32 that the action gave.
            is_first: ``[N]`` bool, rows that begin an episode: they know nothing of
                the one before.
        """
        self._write(observation)
        if LAST_ACTION in self.inputs:
            told = encode_actions(self._actions, action)
            self.inputs[LAST_ACTION][:] = told * ~is_first[:, None]
        if LAST_REWARD in self.inputs:
            self.inputs[LAST_REWARD][:] = reward * ~is_first
        for array in self.state.values():
            array[is_first] = 0
        self.arrays.is_first[:] = is_first

    def check_answers(self, model: str) -> None:
        """Checks that every answer is a number.

        Args:
            model: Which model answered, for the message.

        Raises:
            RunError: One is infinite or none.
        """
        place = _core.first_not_finite(list(self.outputs.values()))
        if place < len(self.outputs):
            raise RunError(
                f"{list(self.outputs)[place]} (model {model}) must be finite; lower "
                f"the learning rate and go on from an older model"
            )

    def _write(self, observation: Arrays) -> None:
        for name, array in observation.items():
            self.inputs[name][:] = array
