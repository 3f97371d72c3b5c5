"""The network's inputs and state for copies of an environment, a row for each copy.

Actors, evaluations and players all fill a network's inputs by this module, so that
the network sees the same everywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.actors.actions import encode_actions
from tengen.envs import ActionSpec, Arrays
from tengen.errors import RunError
from tengen.inference import RowArrays
from tengen.tensors import SCALED_POLICY, Signature

__all__ = ["LAST_ACTION", "LAST_REWARD", "EnvironmentRows"]

LAST_ACTION = "last_action"
"""Name of the input that holds the action before: choices one-hot, real numbers clipped
to their bounds; zeros at the first step of an episode. With ``SCALED_POLICY`` all
numbers that have bounds are scaled to [-1, 1]."""
LAST_REWARD = "last_reward"
"""Name of the input that holds the reward before; 0 at an episode's first step."""


class EnvironmentRows:
    """Writes N rows of inputs, and reads the answers of inference to them.

    Attributes:
        arrays: The rows that inference reads and fills. The state of a row is zero
            where its episode begins.
    """

    def __init__(
        self,
        signature: Signature,
        actions: ActionSpec,
        num_rows: int,
        arrays: RowArrays | None = None,
    ) -> None:
        """Makes rows of zeros.

        Args:
            signature: The network's signature, its state included.
            actions: The environment's action space.
            num_rows: N, at least 1.
            arrays: Memory for the rows; None for memory of this process.
        """
        self._actions = actions
        self.arrays = arrays or RowArrays(signature, num_rows)
        self._is_scaled = SCALED_POLICY in signature.outputs

    @property
    def inputs(self) -> Arrays:
        """The network's inputs, ``[N, ...]`` each, which inference reads."""
        return self.arrays.inputs

    @property
    def outputs(self) -> Arrays:
        """The network's outputs, ``[N, ...]`` each, which inference fills."""
        return self.arrays.outputs

    @property
    def state(self) -> Arrays:
        """The recurrent state, ``[N, ...]`` each, which inference reads and writes."""
        return self.arrays.state

    def begin(self, observation: Arrays) -> None:
        """Fills the rows with first observations: every row begins an episode.

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
        """Fills the rows with the results of a step.

        Args:
            observation: ``[N, ...]`` each, the observations reached.
            action: ``[N, ...]`` the actions as chosen, perhaps out of bounds.
            reward: ``[N]`` float32, the rewards of these actions.
            is_first: ``[N]`` bool, rows that begin an episode: their last action, last
                reward and state are zero.
        """
        self._write(observation)
        if LAST_ACTION in self.inputs:
            told = encode_actions(self._actions, action, is_scaled=self._is_scaled)
            self.inputs[LAST_ACTION][:] = told * ~is_first[:, None]
        if LAST_REWARD in self.inputs:
            self.inputs[LAST_REWARD][:] = reward * ~is_first
        for array in self.state.values():
            array[is_first] = 0
        self.arrays.is_first[:] = is_first

    def check_answers(self, model: str) -> None:
        """Checks that every answer is a finite number.

        Args:
            model: The model that answered, for the message.

        Raises:
            RunError: An answer is infinite or not a number.
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
