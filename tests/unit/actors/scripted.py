"""An environment, a policy and a network that do what they are told."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tengen.actors import (
    LAST_ACTION,
    LAST_REWARD,
    EnvironmentPort,
    Slots,
    StepBlock,
    encoded_length,
    step_tensors,
)
from tengen.envs import ActionSpec, EnvSpec, Step
from tengen.tensors import Signature, TensorSpec

CHOICES = ActionSpec(num_choices=(3,))


class ScriptedEnv:
    """N copies whose observations say where they come from.

    ``observation/place`` is [copy, episode, step, last action], ``observation/pixel``
    the sum of it. Episode e of copy i has ``lengths[i][e % len(lengths[i])]`` steps; it
    terminates where e is even and is truncated where e is odd. A step's reward is
    10 * episode + step.
    """

    def __init__(self, lengths, actions=CHOICES, first=0):
        self.spec = EnvSpec(
            name="scripted",
            observations={
                "observation/place": TensorSpec(shape=(4,)),
                "observation/pixel": TensorSpec(dtype="uint8", shape=(1, 1)),
            },
            actions=actions,
            max_episode_steps=None,
            reward_threshold=None,
        )
        self.num_envs = len(lengths)
        self.actions: list[NDArray[Any]] = []
        self._lengths = lengths
        self._places = [[first + i, 0, 0, -1] for i in range(len(lengths))]
        self._is_over = [False] * len(lengths)

    def reset(self):
        return self._observation()

    def step(self, actions):
        self.actions.append(actions.copy())
        flags = np.zeros((3, self.num_envs), np.bool_)
        rewards = np.zeros(self.num_envs, np.float32)
        for i, place in enumerate(self._places):
            if self._is_over[i]:
                self._places[i] = [place[0], place[1] + 1, 0, -1]
                self._is_over[i] = False
                flags[2, i] = True
                continue
            place[2] += 1
            place[3] = int(np.ravel(actions[i])[0])
            rewards[i] = 10 * place[1] + place[2]
            lengths = self._lengths[i]
            if place[2] == lengths[place[1] % len(lengths)]:
                self._is_over[i] = True
                flags[place[1] % 2, i] = True
        return Step(self._observation(), rewards, flags[0], flags[1], flags[2])

    def close(self): ...

    def _observation(self):
        places = np.array(self._places, np.float32)
        pixels = places.sum(axis=1).astype(np.uint8).reshape(-1, 1, 1)
        return {"observation/place": places, "observation/pixel": pixels}


class ScriptedPolicy:
    """Takes a fixed action for each step, or draws one evenly; stores its numbers."""

    own: ClassVar = {"numbers": TensorSpec(dtype="float64", shape=(5,))}

    def __init__(self, script=None):
        self._script = script
        self.num_calls = 0
        self.slots: Slots | None = None

    def num_uniforms(self, actions):
        return 5

    def act(self, outputs, actions, uniforms, slots):
        assert uniforms.shape == (slots.count, 5)
        assert ((uniforms >= 0) & (uniforms < 1)).all()
        self.slots = slots
        if self._script is None:
            action: Any = (uniforms[:, 0] * 3).astype(np.int64)
        else:
            action = np.full(
                (slots.count, *actions.shape),
                self._script(self.num_calls),
                actions.tensor.dtype,
            )
        self.num_calls += 1
        return {"action": action, "numbers": uniforms}

    def act_greedily(self, outputs, actions):
        raise AssertionError


class CountingRunner:
    """A network whose memory counts the rows of an episode that it has seen."""

    def __init__(self, port):
        self._port = port
        self.seen: list[dict[str, NDArray[Any]]] = []
        self.counts: list[NDArray[Any]] = []

    def run(self, num_rows):
        port = self._port
        assert all(len(array) == num_rows for array in port.inputs.values())
        self.seen.append({name: a.copy() for name, a in port.inputs.items()})
        for array in port.state.values():
            array += 1
        for array in port.outputs.values():
            array[:] = 0
        if port.state:
            self.counts.append(port.state["count"].copy())


class Written:
    """Keeps the blocks that a port hands on."""

    def __init__(self):
        self.blocks: list[Mapping[str, NDArray[Any]]] = []
        self.states: list[Mapping[str, NDArray[Any]]] = []
        self.versions: list[int] = []
        self.pause_s = 0.0

    def __call__(self, columns, state):
        time.sleep(self.pause_s)
        self.blocks.append(columns)
        self.states.append(state)
        self.versions.append(int(columns["model_version"][0, 0]))
        return 7

    def joined(self, name):
        """A column of all blocks that are not closed, ``[N, T, ...]``."""
        return np.concatenate([block[name] for block in self.blocks], axis=1)


def make_port(
    lengths,
    *,
    policy=None,
    actions=CHOICES,
    num_steps=4,
    is_closed=False,
    turn_blocks=2,
    seed=0,
    slots=None,
    state=None,
):
    env = ScriptedEnv(lengths, actions, slots.first if slots else 0)
    inputs = {
        **env.spec.observations,
        LAST_ACTION: TensorSpec(shape=(encoded_length(actions),)),
        LAST_REWARD: TensorSpec(),
    }
    signature = Signature(
        inputs=inputs,
        outputs={"policy": TensorSpec(shape=(3,)), "value": TensorSpec()},
        state=dict(state or {}),
    )
    policy = policy or ScriptedPolicy()
    block = StepBlock(
        step_tensors(inputs, actions, policy.own),
        len(lengths),
        num_steps,
        is_closed=is_closed,
    )
    written = Written()
    port = EnvironmentPort(
        env,
        policy,
        signature,
        block,
        written,
        seed=seed,
        turn_blocks=turn_blocks,
        slots=slots,
    )
    return port, written, env
