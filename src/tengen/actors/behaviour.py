"""Behaviour: an actor's state beside the network, such as an episode's memory.

An agent that explores with a family of policies chooses one at the start of every
episode, and rewards itself for states that are new in the episode. Both need state of
each copy of the environment, which lives in the actor::

    inputs = behaviour.begin()                  # policies of the first episodes
    while True:
        outputs = network(observations, inputs)
        outputs |= behaviour.observe(outputs)   # intrinsic rewards, for Policy.act
        inputs = behaviour.step(reward, is_reset)

Legend: N copies, P policies.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.actors.actions import Slots
from tengen.actors.episodic_memory import EpisodicMemory
from tengen.envs import Arrays
from tengen.errors import RunError
from tengen.run.publish import make_directory, publish_file
from tengen.run.reading import read_object
from tengen.tensors import EMBEDDING, NOVELTY, POLICY

INTRINSIC = "intrinsic"
"""Name of the stored column ``[]`` with the novelty of a step's observation, at least
0. It is the intrinsic reward of the action before it."""

# Bounds of the factor by which the novelty over the run scales that in the episode.
_LEAST_FACTOR, _MOST_FACTOR = 1.0, 5.0


class Selector(Protocol):
    """Chooses the policies of the episodes of an actor's copies."""

    def choose(self, row: int) -> int:
        """Returns the number of the policy for the next episode of copy ``row``."""

    def ended(self, row: int, policy: int, episode_return: float) -> None:
        """Takes the undiscounted return of a policy's episode."""

    def state(self) -> list[Any]:
        """Returns what must outlive the process: a JSON value per copy, or nothing."""

    def load_state(self, rows: Sequence[Any]) -> None:
        """Restores a ``state``, possibly that of fewer or of more copies."""


class InTurn(Selector):
    """Chooses policies in turn: episode e of copy i has policy (e + i) modulo P."""

    def __init__(self, slots: Slots, num_policies: int) -> None:
        """Creates a selector for an actor's copies, at their first episodes.

        Args:
            slots: The range of the copies among all copies of the run.
            num_policies: Number P of policies.
        """
        self._next = slots.first + np.arange(slots.count)
        self._num_policies = num_policies

    def choose(self, row: int) -> int:
        """See ``Selector.choose``."""
        policy = int(self._next[row] % self._num_policies)
        self._next[row] += 1
        return policy

    def ended(self, row: int, policy: int, episode_return: float) -> None:
        """Ignores the return; see ``Selector.ended``."""

    def state(self) -> list[Any]:
        """Returns nothing; see ``Selector.state``."""
        return []

    def load_state(self, rows: Sequence[Any]) -> None:
        """Does nothing; see ``Selector.load_state``."""


class Bandit(Selector):
    """A bandit per copy, which prefers policies with high returns in recent episodes.

    It takes policies that its window does not contain first. Then it takes a random
    policy with some probability, and otherwise the one with the highest upper bound
    ``mean + range / sqrt(count)``, over the episodes of the window. The range is the
    greatest minus the least return of the window, or 1 if all are equal.

    Source: Badia et al. 2020, "Agent57" (arXiv:2003.13350), section 3.2; Garivier and
    Moulines 2008, "On Upper-Confidence Bound Policies for Non-Stationary Bandit
    Problems" (arXiv:0805.3415), section 2.
    Differs from the paper: the bonus is in units of the range of returns, because those
    of tasks differ.
    """

    def __init__(
        self,
        slots: Slots,
        num_policies: int,
        *,
        window: int,
        epsilon: float,
        seed: int,
    ) -> None:
        """Creates bandits without episodes.

        Args:
            slots: The range of the copies among all copies of the run.
            num_policies: Number P of policies.
            window: Number of a copy's last episodes that count.
            epsilon: Probability of a random policy, in [0, 1].
            seed: Seed of the random numbers, 0 to 2^64 - 1.
        """
        self._slots = slots
        self._num_policies = num_policies
        self._epsilon = epsilon
        self._seed = seed
        self._num_chosen = np.zeros(slots.count, np.int64)
        self._windows: list[deque[tuple[int, float]]] = [
            deque(maxlen=window) for _ in range(slots.count)
        ]

    def choose(self, row: int) -> int:
        """See ``Selector.choose``."""
        slot, number = self._slots.first + row, int(self._num_chosen[row])
        self._num_chosen[row] += 1
        counts, totals = np.zeros((2, self._num_policies))
        for policy, episode_return in self._windows[row]:
            counts[policy] += 1
            totals[policy] += episode_return
        # Copies begin with different policies.
        order = (slot + np.arange(self._num_policies)) % self._num_policies
        missing = order[counts[order] == 0]
        if len(missing):
            return int(missing[0])
        # The third counter keeps these numbers apart from those for actions.
        key = (self._seed, number)
        [[chance, which]] = _core.uniforms(key, (slot, 0, 1, 0), 1, 2)
        if chance < self._epsilon:
            return int(which * self._num_policies)
        returns = [episode_return for _, episode_return in self._windows[row]]
        spread = (max(returns) - min(returns)) or 1.0
        return int(np.argmax(totals / counts + spread / np.sqrt(counts)))

    def ended(self, row: int, policy: int, episode_return: float) -> None:
        """See ``Selector.ended``."""
        self._windows[row].append((policy, episode_return))

    def state(self) -> list[Any]:
        """Returns each copy's window, as lists of policies and returns."""
        return [[list(entry) for entry in window] for window in self._windows]

    def load_state(self, rows: Sequence[Any]) -> None:
        """See ``Selector.load_state``; leaves out what is no policy's return."""
        for window, entries in zip(self._windows, rows, strict=False):
            window.extend(
                (int(policy), float(episode_return))
                for policy, episode_return in entries
                if 0 <= policy < self._num_policies and math.isfinite(episode_return)
            )


class Behaviour:
    """The policies of N copies, and their rewards for novelty.

    Used by the thread that drives the port of the copies.

    The reward is the novelty in the episode times the network's ``NOVELTY`` over the
    run, clipped to [1, 5].

    Source: Badia et al. 2020, "Never Give Up" (arXiv:2002.06038), equation 1.
    """

    def __init__(
        self,
        selector: Selector,
        memory: EpisodicMemory,
        num_rows: int,
        num_policies: int,
    ) -> None:
        """Creates the state of N copies.

        Args:
            selector: Chooses the policies.
            memory: The memories of the copies.
            num_rows: Number N of copies.
            num_policies: Number P of policies.
        """
        self._selector = selector
        self._memory = memory
        self._policies = np.zeros(num_rows, np.int64)
        self._returns = np.zeros(num_rows)
        self._one_hot = np.eye(num_policies, dtype=np.float32)

    def begin(self) -> Arrays:
        """Begins an episode in all copies; returns inputs as ``step`` does."""
        return self._begun(np.ones(len(self._policies), np.bool_))

    def observe(self, outputs: Arrays) -> Arrays:
        """Returns ``INTRINSIC`` and ``POLICY``, arrays ``[N, ...]`` for ``Policy.act``.

        Args:
            outputs: The network's outputs ``[N, ...]`` for the current observations.
        """
        factor = outputs[NOVELTY].clip(_LEAST_FACTOR, _MOST_FACTOR)
        intrinsic = self._memory.novelty(outputs[EMBEDDING]) * factor
        return {INTRINSIC: intrinsic, POLICY: self._one_hot[self._policies]}

    def step(self, reward: NDArray[np.float32], is_reset: NDArray[np.bool_]) -> Arrays:
        """Returns ``POLICY``, the inputs of the network for the next observations.

        Args:
            reward: ``[N]``, the environment's rewards of a step, before clipping.
            is_reset: ``[N]``, whether the step began the next episode.
        """
        for row in np.flatnonzero(is_reset):
            ended = int(self._policies[row]), float(self._returns[row])
            self._selector.ended(int(row), *ended)
        self._returns += reward
        return self._begun(is_reset)

    def state(self) -> list[Any]:
        """See ``Selector.state``; an episode does not outlive the process."""
        return self._selector.state()

    def load_state(self, rows: Sequence[Any]) -> None:
        """See ``Selector.load_state``."""
        self._selector.load_state(rows)

    def _begun(self, rows: NDArray[np.bool_]) -> Arrays:
        for row in np.flatnonzero(rows):
            self._policies[row] = self._selector.choose(int(row))
        self._returns[rows] = 0.0
        self._memory.clear(rows)
        return {POLICY: self._one_hot[self._policies]}


_SCHEMA = 1
_ADVICE = "remove the file, and the actor forgets the returns of its policies"


class Behaviours:
    """The behaviours of an actor's groups of copies, and the file of their states.

    The file outlives the actor's process. Each update replaces it atomically. A killed
    actor loses the returns of a few seconds, which are soon found again.
    """

    def __init__(self, path: Path, save_s: float) -> None:
        """Creates an empty list of behaviours.

        Args:
            path: The file, which need not exist; the actor is its only writer.
            save_s: Minimum number of seconds between two writes by ``save``.
        """
        self._save_s = save_s
        self._path = path
        self._all: list[Behaviour] = []
        self._num_restored = 0
        # The rows in the file, which may be of more copies than there are now.
        self._saved: list[Any] = []
        self._saved_s = -math.inf

    def add(self, behaviour: Behaviour) -> None:
        """Adds the behaviour of the next group, and restores its state from the file.

        Raises:
            UsageError: The file is of a later version of tengen.
            RunError: The file is damaged.
        """
        # A file that was not yet on the disk in a power failure may be empty.
        if self._path.exists() and self._path.stat().st_size > 0:
            content = read_object(
                self._path, "behaviour", schema=_SCHEMA, advice=_ADVICE
            )
            try:
                rows = content["copies"]
                if not isinstance(rows, list):
                    raise TypeError(f"copies is {type(rows).__name__}, not a list")
                behaviour.load_state(rows[self._num_restored :])
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                raise RunError(
                    f"behaviour ({self._path}) is damaged; {_ADVICE}"
                ) from error
            self._saved = rows
        self._all.append(behaviour)
        self._num_restored += len(behaviour.state())

    def close(self) -> None:
        """Writes the states to the file if they have changed, and forgets them.

        Raises:
            RunError: The file cannot be written.
        """
        try:
            self._write()
        finally:
            self._all, self._num_restored = [], 0

    def save(self) -> None:
        """Writes the states to the file, unless it was written recently.

        Raises:
            RunError: The file cannot be written.
        """
        if time.monotonic() - self._saved_s >= self._save_s:
            self._write()

    def _write(self) -> None:
        rows = [row for behaviour in self._all for row in behaviour.state()]
        rows += self._saved[len(rows) :]
        self._saved_s = time.monotonic()
        if rows != self._saved:
            make_directory(self._path.parent)
            content = json.dumps({"schema": _SCHEMA, "copies": rows})
            publish_file(self._path, content.encode(), is_durable=False)
            self._saved = rows
