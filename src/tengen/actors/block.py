"""Blocks of steps: K steps of N copies of an environment, before they are stored.

A block of K steps has these columns, in time order t = 0 to K - 1::

    the network's inputs   [N, K, ...]  as the network saw them
    action                 [N, K, ...]  int64 choices or float32 numbers
    reward                 [N, K]       float32, of action t
    terminated             [N, K]       uint8, action t ended the task
    truncated              [N, K]       uint8, a limit cut the episode short after t
    is_reset               [N, K]       uint8, no transition, see below
    model_version          [N, K]       int64, of the model that chose action t
    the agent's own        [N, K, ...]

The observation of step t + 1 is always the one that action t reached, so that the final
observation of an episode is stored and a truncated episode can be bootstrapped from it.
The step that begins with a final observation is marked ``is_reset``: its action did
nothing, it leads to the first observation of the next episode, and nothing is learned
from it.

A step that is both ``truncated`` and ``is_reset`` is no step of the environment. It
marks that from here on another inference server answers, whose memory of the episode is
empty. The episode goes on after it, from the same observation, as if it began there.

A closed block has one more step, which holds the inputs that the next block begins
with. Its ``model_version`` is that of the step before, and its other columns are zero.

Where a network sees past inputs, a closed block begins with a copy of the last steps of
the block before it. In the first block these steps are zero and end with a reset.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.envs import ActionSpec, Arrays, Step
from tengen.tensors import TensorSpec

__all__ = ["StepBlock", "step_tensors"]


def step_tensors(
    inputs: Mapping[str, TensorSpec],
    actions: ActionSpec,
    own: Mapping[str, TensorSpec],
) -> dict[str, TensorSpec]:
    """Returns the columns of one step, as the module docstring lists them.

    Args:
        inputs: The network's inputs.
        actions: The environment's action space.
        own: The agent's own columns.
    """
    flags = dict.fromkeys(
        ("terminated", "truncated", "is_reset"), TensorSpec(dtype="uint8")
    )
    return {
        **inputs,
        "action": actions.tensor,
        "reward": TensorSpec(),
        **flags,
        "model_version": TensorSpec(dtype="int64"),
        **own,
    }


class StepBlock:
    """A block that grows by one step of every copy at a time."""

    def __init__(
        self,
        tensors: Mapping[str, TensorSpec],
        num_slots: int,
        num_steps: int,
        *,
        is_closed: bool,
        num_before: int = 0,
    ) -> None:
        """Makes an empty block.

        Args:
            tensors: The columns of one step.
            num_slots: Copies N.
            num_steps: Steps K of a block, at least 1.
            is_closed: Whether a block ends with a step for its inputs alone.
            num_before: Steps of the block before that a closed block begins with.
        """
        self._tensors = tensors
        self._num_slots = num_slots
        self._length = num_steps
        self._is_closed = is_closed
        self._num_before = num_before if is_closed else 0
        self._begin()
        for column in self._columns.values():
            column[:, : self._num_before] = 0
        if self._num_before:
            self._columns["is_reset"][:, self._num_before - 1] = 1

    @property
    def is_empty(self) -> bool:
        """Whether the next step is a block's first."""
        return self._num_steps == 0

    @property
    def is_full(self) -> bool:
        """Whether all K steps are there."""
        return self._num_steps == self._length

    @property
    def is_nearly_full(self) -> bool:
        """Whether the next step is a block's last."""
        return self._num_steps == self._length - 1

    def append(self, inputs: Arrays, chosen: Arrays, step: Step, version: int) -> None:
        """Adds a step of every copy.

        Args:
            inputs: ``[N, ...]`` each, which the network saw.
            chosen: ``[N, ...]`` each, the action and the agent's own columns.
            step: The result of the actions.
            version: The version of the model that chose them, at least 0.

        Raises:
            CoreError: An array has another dtype or shape than its column.
        """
        rows: dict[str, Any] = {
            **inputs,
            **chosen,
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
            "is_reset": step.is_reset,
            "model_version": version,
        }
        self._writer.put(
            self._num_before + self._num_steps, [rows[name] for name in self._tensors]
        )
        self._num_steps += 1

    def take(self, inputs: Arrays) -> Arrays:
        """Returns the columns of a full block, and begins the next one.

        Args:
            inputs: ``[N, ...]`` each, the inputs of the step that follows.
        """
        columns = self._columns
        self._begin()
        if self._is_closed:
            for name, array in inputs.items():
                columns[name][:, -1] = array
            columns["model_version"][:, -1] = columns["model_version"][:, -2]
        if self._num_before:
            last = slice(self._length, self._length + self._num_before)
            for name, column in columns.items():
                self._columns[name][:, : self._num_before] = column[:, last]
        return columns

    def _begin(self) -> None:
        self._num_steps = 0
        # The axis of copies comes first, so that one copy's steps are contiguous.
        length = self._num_before + self._length + self._is_closed
        self._columns: dict[str, NDArray[Any]] = {
            name: np.empty((self._num_slots, length, *spec.shape), spec.dtype)
            for name, spec in self._tensors.items()
        }
        if self._is_closed:
            for column in self._columns.values():
                column[:, -1] = 0
        self._writer = _core.StepColumns(
            list(self._columns), list(self._columns.values())
        )
