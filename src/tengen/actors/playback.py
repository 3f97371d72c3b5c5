"""Plays recorded episodes through an actor's port, which writes their steps."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.actors.actions import Slots
from tengen.actors.block import StepBlock
from tengen.actors.environment import EnvironmentPort
from tengen.envs import ActionSpec, Arrays, EnvSpec, Step
from tengen.experience import Episode
from tengen.tensors import Signature

NO_MODEL = -1
"""The ``model_version`` of steps in which no model acted."""


def play_back(
    spec: EnvSpec,
    episodes: Iterable[Episode],
    signature: Signature,
    block: StepBlock,
    write: Callable[[Arrays, Arrays], int],
    num_blocks: int,
) -> None:
    """Writes the steps of episodes in blocks, as an actor with one copy does.

    Network inputs, rewards and flags are those that an actor writes. The recurrent
    state is always zero, because no network acts.

    Args:
        spec: The environment.
        episodes: The episodes. After the last one, the first one follows again.
        signature: The network's signature, including its state.
        block: The block that collects the steps, of one copy.
        write: See ``EnvironmentPort``.
        num_blocks: Number of blocks to write.
    """

    def write_block(columns: Arrays, state: Arrays) -> int:
        columns["model_version"][:] = NO_MODEL
        return write(columns, state)

    player: Any = _Player(spec, _endless(episodes))
    port = EnvironmentPort(
        player, player, signature, block, write_block, seed=0, turn_blocks=num_blocks
    )
    port.begin(0)
    while port.next():
        port.done()


def _endless(episodes: Iterable[Episode]) -> Iterator[Episode]:
    while True:
        yield from episodes


class _Player:
    """Recorded episodes as one copy of an ``Env``, and as the ``Policy`` that acts."""

    num_envs = 1

    def __init__(self, spec: EnvSpec, episodes: Iterator[Episode]) -> None:
        self.spec = spec
        self._names = list(spec.observation_tensors)
        self._episodes = episodes

    def reset(self) -> Arrays:
        self._episode, self._time = next(self._episodes), 0
        return self._seen()

    def step(self, actions: NDArray[Any]) -> Step:
        episode, t = self._episode, self._time
        no = np.zeros(1, np.bool_)
        has_lives = "life_lost" in episode
        if t == len(episode["reward"]):
            none = np.zeros(1, np.float32)
            return Step(self.reset(), none, no, no, ~no, no if has_lives else None)
        self._time += 1
        reward, terminated, truncated = (
            episode[name][t : t + 1] for name in ("reward", "terminated", "truncated")
        )
        lost = episode["life_lost"][t : t + 1] if has_lives else None
        return Step(self._seen(), reward, terminated, truncated, no, lost)

    def num_uniforms(self, actions: ActionSpec) -> int:
        return 1

    def act(
        self,
        outputs: Arrays,
        actions: ActionSpec,
        uniforms: NDArray[np.float64],
        slots: Slots,
    ) -> Arrays:
        # A reset step ignores its action.
        action = self._episode["action"]
        t = min(self._time, len(action) - 1)
        return {"action": action[t : t + 1]}

    def _seen(self) -> Arrays:
        now = slice(self._time, self._time + 1)
        return {name: self._episode[name][now] for name in self._names}
