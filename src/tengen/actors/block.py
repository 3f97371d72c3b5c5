"""Blocks of K steps of N environment copies, which an actor writes to the store.

A block of K steps has these columns, in time order t = 0 to K - 1::

    the network's inputs   [N, K, ...]  as the network received them
    action_mask            [N, K, A]    bool, the legal choices, if some may be illegal
    global_state           [N, K, S]    float32, if the agent learns from it
    action                 [N, K, ...]  int64 if discrete, float32 if continuous
    reward                 [N, K]       float32, for action t
    terminated             [N, K]       uint8, whether action t led to a terminal state
    truncated              [N, K]       uint8, whether a limit ended the episode after t
    is_reset               [N, K]       uint8, whether the step is a reset, see below
    model_version          [N, K]       int64, of the model that chose action t
    the agent's columns    [N, K, ...]  such as log-probabilities

The observation of step t + 1 is always the result of action t. So the final observation
of an episode is stored, and a truncated episode can be bootstrapped from it. The step
from a final observation to the next episode's first observation is marked ``is_reset``:
the environment ignored its action, and the learner skips the step.

A step with both ``truncated`` and ``is_reset`` is not a transition. It marks a step of
an opponent (``opponents``), or a switch to another inference server, which has no
recurrent state for the episode. In the latter case the episode continues from the same
observation, as if a new episode had begun there.

A closed block has one extra step at the end, with the first inputs of the next block.
This step repeats the previous step's ``model_version``; its other columns are zero.

If an environment has several agents, a slot of the block is either one agent of a copy
(``StepBlock``), or all n agents of a copy (``TeamBlock``). In the latter case the
inputs, the mask, the action and the agent's columns have the shape ``[N, K, n, ...]``,
and there is one more column::

    is_present             [N, K, n]    uint8, whether each agent is in the episode

For a network that reads past inputs, a closed block begins with a copy of the previous
block's last steps. In the first block these steps are zero and end with a reset step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.envs import ActionSpec, Arrays, EnvSpec, Step, joint_step
from tengen.tensors import GLOBAL_STATE, TensorSpec

IS_PRESENT = "is_present"
"""Name of the column ``[n]`` uint8 of a ``TeamBlock``: the agents in the episode."""

# Columns of a ``TeamBlock`` with an entry per copy.
_OF_COPY = frozenset(
    {
        *("reward", "terminated", "truncated", "is_reset", "model_version"),
        *(GLOBAL_STATE, IS_PRESENT),
    }
)


def step_tensors(
    inputs: Mapping[str, TensorSpec],
    actions: ActionSpec,
    own: Mapping[str, TensorSpec],
) -> dict[str, TensorSpec]:
    """Returns the tensor specs of the columns of one step, by name.

    Args:
        inputs: The network's inputs, and ``ACTION_MASK`` if there is an action mask.
        actions: The environment's action space.
        own: The columns that the agent adds.
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


def team_tensors(
    tensors: Mapping[str, TensorSpec], num_agents: int
) -> dict[str, TensorSpec]:
    """Returns the tensor specs of a ``TeamBlock``, with a step of all n agents.

    Args:
        tensors: The tensor specs of one agent's step, from ``step_tensors``.
        num_agents: Number n of agents.
    """
    each = {
        name: spec
        if name in _OF_COPY
        else TensorSpec(dtype=spec.dtype, shape=(num_agents, *spec.shape))
        for name, spec in tensors.items()
    }
    return {**each, IS_PRESENT: TensorSpec(dtype="uint8", shape=(num_agents,))}


class StepBlock:
    """Collects a block of steps; ``append`` adds one step of every slot.

    A slot is a copy of the environment, or one agent of a copy.
    """

    def __init__(
        self,
        tensors: Mapping[str, TensorSpec],
        num_slots: int,
        num_steps: int,
        *,
        is_closed: bool,
        num_before: int = 0,
    ) -> None:
        """Creates an empty block.

        Args:
            tensors: The tensor specs from ``step_tensors``.
            num_slots: Number N of slots.
            num_steps: Number K of steps in a block, at least 1.
            is_closed: Whether a block ends with an extra step that holds only inputs.
            num_before: Number of previous steps with which a closed block begins.
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
        """Whether the block has no steps yet."""
        return self._num_steps == 0

    @property
    def is_full(self) -> bool:
        """Whether the block has all K steps."""
        return self._num_steps == self._length

    @property
    def is_nearly_full(self) -> bool:
        """Whether the block needs only one more step."""
        return self._num_steps == self._length - 1

    def append(self, inputs: Arrays, chosen: Arrays, step: Step, version: int) -> None:
        """Adds one step of every slot.

        Args:
            inputs: The network's inputs, arrays of shape ``[N, ...]``, and possibly
                ``GLOBAL_STATE``, which has a row per copy.
            chosen: The actions and the agent's columns, arrays of shape ``[N, ...]``.
            step: The results of the environment's step with these actions.
            version: Version of the model that chose the actions, at least 0.

        Raises:
            CoreError: An array's dtype or shape differs from that of its column.
        """
        rows: dict[str, Any] = {
            **self._shown(inputs),
            **chosen,
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
            "is_reset": step.is_reset,
            "model_version": version,
        }
        self._put(rows)

    def _put(self, rows: Mapping[str, Any]) -> None:
        self._writer.put(
            self._num_before + self._num_steps, [rows[name] for name in self._tensors]
        )
        self._num_steps += 1

    def take(self, inputs: Arrays) -> Arrays:
        """Returns the columns of a full block and starts the next block.

        Args:
            inputs: The network's inputs of the next step, arrays of shape ``[N, ...]``.
        """
        columns = self._columns
        self._begin()
        if self._is_closed:
            for name, array in self._shown(inputs).items():
                columns[name][:, -1] = array
            columns["model_version"][:, -1] = columns["model_version"][:, -2]
        if self._num_before:
            last = slice(self._length, self._length + self._num_before)
            for name, column in columns.items():
                self._columns[name][:, : self._num_before] = column[:, last]
        return columns

    def _shown(self, inputs: Arrays) -> Arrays:
        """Returns the inputs that are columns, with a row per slot."""
        shown = {name: array for name, array in inputs.items() if name in self._tensors}
        if (state := shown.get(GLOBAL_STATE)) is not None:
            num_agents = self._num_slots // len(state)
            shown[GLOBAL_STATE] = state.repeat(num_agents, axis=0)
        return shown

    def _begin(self) -> None:
        self._num_steps = 0
        # Copies are the first axis, so that the steps of a copy are contiguous.
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


class TeamBlock(StepBlock):
    """A block whose slots are copies, with the steps of all agents of a copy.

    The block is not closed, and its network reads no past inputs.
    """

    def __init__(
        self,
        tensors: Mapping[str, TensorSpec],
        num_slots: int,
        num_steps: int,
        spec: EnvSpec,
    ) -> None:
        """Creates an empty block.

        Args:
            tensors: The tensor specs from ``team_tensors``.
            num_slots: Number N of copies.
            num_steps: Number K of steps in a block, at least 1.
            spec: The environment's spec.
        """
        super().__init__(tensors, num_slots, num_steps, is_closed=False)
        self._spec = spec
        # Whether each row is present after the last step; all rows before any step.
        self._stays = np.ones(num_slots * spec.num_agents, np.bool_)

    def append(self, inputs: Arrays, chosen: Arrays, step: Step, version: int) -> None:
        """Adds one step of every copy; see ``StepBlock.append``.

        Args:
            inputs: Arrays with a row per agent of each copy, and ``GLOBAL_STATE``.
            chosen: The actions and the agent's columns, with a row per agent.
            step: The results, with a row per agent.
            version: See ``StepBlock.append``.
        """
        joint = joint_step(step, self._spec)
        # At a reset step the observations are those of the last episode's end.
        is_end = joint.is_reset.repeat(self._spec.num_agents)
        is_present = np.where(is_end, self._stays, ~step.is_reset)
        self._stays = is_present & ~step.terminated
        each = {**inputs, **chosen, IS_PRESENT: is_present}
        rows: dict[str, Any] = {
            name: array.reshape(self._num_slots, -1, *array.shape[1:])
            for name, array in each.items()
            if name in self._tensors and name != GLOBAL_STATE
        }
        if GLOBAL_STATE in self._tensors:
            rows[GLOBAL_STATE] = inputs[GLOBAL_STATE]
        for name in ("reward", "terminated", "truncated", "is_reset"):
            rows[name] = getattr(joint, name)
        self._put({**rows, "model_version": version})
