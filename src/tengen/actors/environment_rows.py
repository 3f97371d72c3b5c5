"""The network's inputs and state for an environment, one row per copy and agent.

Actors, evaluations and players all use this module, so that a network gets the same
inputs in training, evaluation and play.
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
from tengen.tensors import (
    ACTION_MASK,
    CHOICE_OUTPUTS,
    GLOBAL_STATE,
    ILLEGAL,
    POLICY,
    SCALED_POLICY,
    Signature,
)

LAST_ACTION = "last_action"
"""Name of the network input with the previous action, as ``encode_actions`` encodes it;
zero at an episode's first step. With the output ``SCALED_POLICY``, bounded numbers are
scaled to [-1, 1]."""
LAST_REWARD = "last_reward"
"""Name of the network input with the previous reward; 0 at an episode's first step."""


class EnvironmentRows:
    """Writes the network's inputs for N rows, and checks the outputs of inference.

    Attributes:
        arrays: The rows that inference reads and writes. The state of a row is zero at
            the start of an episode.
        mask: ``[N, A]`` bool, the legal choices of each row; None if the environment
            has no action mask.
        global_state: The global state, a row per copy; None if there is none.
    """

    def __init__(
        self,
        signature: Signature,
        actions: ActionSpec,
        num_rows: int,
        arrays: RowArrays | None = None,
    ) -> None:
        """Fills all rows with zeros, and ``POLICY`` with policy 0.

        Args:
            signature: The network's signature, including its state.
            actions: The environment's action space.
            num_rows: Number N of rows, at least 1.
            arrays: The arrays of the rows; None to allocate private memory.
        """
        self._actions = actions
        self.arrays = arrays or RowArrays(signature, num_rows)
        self.mask: NDArray[np.bool_] | None = None
        self.global_state: NDArray[np.float32] | None = None
        self._masked = CHOICE_OUTPUTS & signature.outputs.keys()
        self._is_scaled = SCALED_POLICY in signature.outputs
        if POLICY in self.inputs:
            self.inputs[POLICY][:, 0] = 1

    @property
    def inputs(self) -> Arrays:
        """The network's inputs, arrays ``[N, ...]``, which inference reads."""
        return self.arrays.inputs

    @property
    def outputs(self) -> Arrays:
        """The network's outputs, arrays ``[N, ...]``, which inference writes."""
        return self.arrays.outputs

    @property
    def state(self) -> Arrays:
        """The recurrent state, arrays ``[N, ...]``, read and written by inference."""
        return self.arrays.state

    @property
    def observed(self) -> Arrays:
        """The inputs, and ``ACTION_MASK`` and ``GLOBAL_STATE`` if they exist."""
        others = {ACTION_MASK: self.mask, GLOBAL_STATE: self.global_state}
        known = {name: array for name, array in others.items() if array is not None}
        return {**self.inputs, **known}

    def begin(self, observation: Arrays) -> None:
        """Writes the inputs for the first step of an episode in every row.

        Args:
            observation: The first observations, arrays ``[N, ...]``.
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
        """Writes the network's inputs for the next step, given the results of a step.

        Args:
            observation: The observations after the step, arrays ``[N, ...]``.
            action: ``[N, ...]``, the actions before clipping to their bounds.
            reward: ``[N]`` float32, the rewards of these actions.
            is_first: ``[N]`` bool, whether a row begins an episode; then last action,
                last reward and state are set to zero.
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

    def take_answers(self, model: str) -> None:
        """Checks that all outputs are finite, and masks those of illegal choices.

        Args:
            model: A description of the model, for the error message.

        Raises:
            RunError: An output is infinite or NaN.
        """
        place = _core.first_not_finite(list(self.outputs.values()))
        if place < len(self.outputs):
            raise RunError(
                f"{list(self.outputs)[place]} (model {model}) must be finite; lower "
                "the learning rate, and resume from an older model"
            )
        if self.mask is not None:
            is_illegal = ~self.mask
            for name in self._masked:
                output = self.outputs[name]
                # ``QUANTILES`` have an axis before the choices.
                where = is_illegal[:, None] if output.ndim == 3 else is_illegal
                np.copyto(output, ILLEGAL, where=where)

    def _write(self, observation: Arrays) -> None:
        for name, array in observation.items():
            if name == ACTION_MASK:
                self.mask = array
            elif name == GLOBAL_STATE:
                self.global_state = array
            else:
                self.inputs[name][:] = array
