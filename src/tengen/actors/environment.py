"""The environment actor, which steps environments and writes the steps to a store.

The actor has no network. Its port requests a batch of network outputs for all copies of
the environment, samples actions from the agent's policy, steps the copies, and passes
blocks of steps to an experience writer::

    port = EnvironmentPort(env, policy, signature, writer, ...)
    while not stopped:              # one turn, with many steps and one model
        port.begin(version)
        drive(port, backend.bind(port.inputs, port.outputs, port.state))

Source: Espeholt et al. 2020, "SEED RL", section 3.1 (actors without a network).
Differs from the paper: termination and truncation are distinguished, and the recurrent
state stored with an item is that of the item's first step.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from tengen import _core
from tengen.actors.actions import Policy, Slots, clip_actions
from tengen.actors.behaviour import Behaviour
from tengen.actors.block import StepBlock
from tengen.actors.environment_rows import EnvironmentRows
from tengen.bounds import bounded, check_fields
from tengen.envs import Arrays, Env, GroupEnv, Step, joint_step
from tengen.inference import RowArrays
from tengen.tensors import FRAMES, Signature

_Result = TypeVar("_Result")

# Mean returns cover this many episodes, as Gymnasium's reward thresholds require.
_NUM_RECENT_EPISODES = 100
# Minimum number of episodes for a mean return, in total and per copy. The mean of fewer
# episodes is noisy, and biased towards short episodes, which end first.
_LEAST_EPISODES = 10
_LEAST_OF_A_COPY = 2


@dataclass
class EnvironmentStats:
    """Counters of the ports of an actor since their creation."""

    num_copies: int = 0
    """Number of environment copies that the ports step."""
    num_frames: int = 0
    """Number of environment steps, without reset steps."""
    num_episodes: int = 0
    """Number of ended episodes; an episode is counted when the next one begins."""
    num_items: int = 0
    """Number of items inserted into the store's table."""
    num_batches: int = 0
    """Number of inference batches, each with all rows of a port."""
    write_s: float = 0.0
    """Seconds spent writing blocks to the store, including waits for a full table."""
    step_s: float = 0.0
    """Seconds spent waiting for the environments to step."""
    recent_returns: deque[float] = field(
        default_factory=lambda: deque(maxlen=_NUM_RECENT_EPISODES)
    )
    """Undiscounted returns of the last 100 episodes, oldest first; see ``joint_step``
    for several agents."""
    recent_lengths: deque[int] = field(
        default_factory=lambda: deque(maxlen=_NUM_RECENT_EPISODES)
    )
    """Lengths of the last 100 episodes in steps, oldest first."""

    @property
    def mean_return(self) -> float | None:
        """Mean of ``recent_returns``, or None if too few episodes have ended.

        The mean needs 2 episodes per copy, but at least 10 and at most 100 episodes.
        """
        return self._mean(self.recent_returns)

    @property
    def mean_length(self) -> float | None:
        """Mean of ``recent_lengths``; None if ``mean_return`` is None."""
        return self._mean(self.recent_lengths)

    def _mean(self, recent: Sequence[float]) -> float | None:
        least = max(_LEAST_EPISODES, _LEAST_OF_A_COPY * self.num_copies)
        if len(recent) < min(least, _NUM_RECENT_EPISODES):
            return None
        return sum(recent) / len(recent)


class EnvironmentPort:
    """A ``tengen.inference.Port`` that steps copies of an environment.

    Every batch has N rows, one per copy or, if there are several agents, one per agent
    of each copy, in the order of the copies. One thread drives the port. Episodes
    continue from turn to turn. After a crash, the new port resets all copies, and the
    steps of the unfinished block are lost.

    All actions are a function of the environment's seed, ``seed``, the model versions,
    the models, and the behaviour's state at the start, which is that of its file. The
    random numbers for a row's action at a step are a function of (seed, version, step,
    row), independent of other rows and of the actor.

    Attributes:
        stats: Counters of steps, episodes and times, which the role actor reports.
    """

    def __init__(
        self,
        env: Env | GroupEnv,
        policy: Policy,
        signature: Signature,
        block: StepBlock,
        write: Callable[[Arrays, Arrays], int],
        *,
        seed: int,
        turn_blocks: int,
        slots: Slots | None = None,
        behaviour: Behaviour | None = None,
        arrays: RowArrays | None = None,
        stats: EnvironmentStats | None = None,
    ) -> None:
        """Resets all copies, except those of a ``GroupEnv``.

        Args:
            env: The copies, which the port does not close. For a ``GroupEnv``,
                ``done`` sends the actions and ``next`` receives the results. Between
                these calls, the caller can process another group.
            policy: The policy from which actions are sampled.
            signature: The network's signature, including its state.
            block: The block that collects the steps.
            write: Called with a block's columns and the recurrent state before them;
                returns the number of inserted items. Blocks while the table is full.
            seed: Seed of the random numbers for actions, 0 to 2^64 - 1.
            turn_blocks: Number of blocks in a turn, at least 1.
            slots: The range of these rows among all rows of the run; None if the run
                has no other rows.
            behaviour: The agent's state beside the network; None if it has none.
            arrays: The rows that inference reads and writes; None for private memory.
            stats: Counters to increment, which ports of one thread may share; None to
                create them.
        """
        self.stats = stats or EnvironmentStats()
        num_copies = env.num_envs // env.spec.num_agents
        self.stats.num_copies += num_copies
        self._env = env
        # Call isinstance only once: with a Protocol it is slow (looks up every method).
        self._group = env if isinstance(env, GroupEnv) else None
        self._alone = None if isinstance(env, GroupEnv) else env
        # The columns and model version of a step whose results are not received yet.
        self._sent: tuple[Arrays, int] | None = None
        self._policy = policy
        self._behaviour = behaviour
        self._block = block
        self._write = write
        self._seed = seed
        self._turn_blocks = turn_blocks
        num_rows = env.num_envs
        self._slots = slots or Slots(0, num_rows, num_rows)
        self._num_uniforms = policy.num_uniforms(env.spec.actions)
        self._stop = threading.Event()
        self._blocks_left = 0
        self._step = 0
        self._episodes = _core.EpisodeCounts(num_copies)
        self._rows = EnvironmentRows(signature, env.spec.actions, num_rows, arrays)
        self._state_before: Arrays = {}
        # State tensors to store; past frames are omitted, because steps contain them.
        self._kept = [n for n in signature.state if not n.startswith(FRAMES)]
        self._num_moves = self._rows.arrays.num_moves
        self._has_begun = False
        self._busy_since_s: float | None = None
        if not isinstance(env, GroupEnv):
            self._begin_episodes(env.reset)

    @property
    def frames_per_step(self) -> int:
        """See ``EnvSpec.frames_per_step``."""
        return self._env.spec.frames_per_step

    @property
    def inputs(self) -> Arrays:
        """The network's inputs, arrays ``[N, ...]``, which inference reads."""
        return self._rows.inputs

    @property
    def outputs(self) -> Arrays:
        """The network's outputs, arrays ``[N, ...]``, which inference writes."""
        return self._rows.outputs

    @property
    def state(self) -> Arrays:
        """The recurrent state, arrays ``[N, ...]``, zero at an episode's first step.

        Inference reads the state and replaces it by the next state.
        """
        return self._rows.state

    @property
    def is_stepping(self) -> bool:
        """Whether a ``GroupEnv`` is stepping, so that ``next`` may block."""
        return self._group is not None and (
            self._sent is not None or not self._has_begun
        )

    @property
    def busy_s(self) -> float:
        """Seconds for which the port has been waiting for the environments, or 0.

        Thread-safe. The value grows while an environment hangs.
        """
        since_s = self._busy_since_s
        return 0.0 if since_s is None else time.monotonic() - since_s

    def begin(
        self, version: int | None = None, stop: threading.Event | None = None
    ) -> None:
        """Begins a turn, in which the port fills ``turn_blocks`` blocks.

        Args:
            version: The model version of the turn, at least 0; None if inference sets
                the version with every batch.
            stop: When set, ``next`` returns 0; the next turn resumes the block.
        """
        if version is not None:
            self._rows.arrays.version = version
        self._blocks_left = self._turn_blocks
        self._stop = stop or threading.Event()

    def next(self) -> int:
        """Returns the number N of rows of ``inputs``; 0 if the turn has ended.

        Blocks while a group of copies steps, or while the table is full.

        Raises:
            RunError: The environment or the writer failed.
        """
        if self._group is not None and not self._has_begun:
            self._begin_episodes(self._group.receive_first)
        elif self._group is not None and self._sent is not None:
            sent, self._sent = self._sent, None
            self._take(self._timed(self._group.receive), *sent)
        if self._blocks_left <= 0 or self._stop.is_set():
            return 0
        if self._block.is_empty:
            self._state_before = {name: self.state[name].copy() for name in self._kept}
        self._rows.arrays.wants_state = bool(self._kept) and self._block.is_nearly_full
        return self._slots.count

    def done(self) -> None:
        """Samples actions, steps all copies, and writes the block if it is full.

        Blocks while the environments step or the table is full. For a ``GroupEnv``,
        only sends the actions. Sending blocks only if inference has moved to another
        server, and the step that records this move fills the block.

        Raises:
            RunError: An output is not finite, or the environment or the writer failed.
        """
        version = self._rows.arrays.version
        self._rows.take_answers(f"of version {version}")
        actions = self._env.spec.actions
        uniforms = self._uniforms(version)
        seen = self.outputs
        if self._behaviour is not None:
            seen = {**seen, **self._behaviour.observe(seen)}
        chosen = self._policy.act(seen, actions, uniforms, self._slots)
        if self._num_moves != self._rows.arrays.num_moves:
            self._num_moves = self._rows.arrays.num_moves
            self._cut(chosen, version)
        clipped = clip_actions(actions, chosen["action"])
        if self._group is not None:
            self._group.send(clipped)
            self._sent = chosen, version
            return
        alone = self._alone
        assert alone is not None
        self._take(self._timed(lambda: alone.step(clipped)), chosen, version)

    def _begin_episodes(self, first: Callable[[], Arrays]) -> None:
        self._rows.begin(self._timed(first))
        if self._behaviour is not None:
            self._write_inputs(self._behaviour.begin())
        self._has_begun = True

    def _write_inputs(self, inputs: Arrays) -> None:
        for name, array in inputs.items():
            self.inputs[name][:] = array

    def _timed(self, wait: Callable[[], _Result]) -> _Result:
        """Returns the result of ``wait``; meanwhile ``busy_s`` is the elapsed time."""
        self._busy_since_s = time.monotonic()
        try:
            return wait()
        finally:
            self.stats.step_s += self.busy_s
            self._busy_since_s = None

    def _take(self, step: Step, chosen: Arrays, version: int) -> None:
        """Appends a step to the block and writes the next inputs of the network."""
        reward = self._env.spec.learned(step.reward)
        ended = step.terminated
        if step.life_lost is not None:
            ended = ended | step.life_lost
        learned = step._replace(reward=reward, terminated=ended)
        self._block.append(self._rows.observed, chosen, learned, version)
        self._step += 1
        self._rows.show(step.observation, chosen["action"], reward, step.is_reset)
        if self._behaviour is not None:
            self._write_inputs(self._behaviour.step(step.reward, step.is_reset))
        self._count(step)
        self._hand_on()

    def _cut(self, chosen: Arrays, version: int) -> None:
        """Records that inference has zeroed the recurrent state of every copy.

        Appends a step with ``truncated`` and ``is_reset``, although the episodes
        continue. So no transition crosses this point, and a learner that recomputes the
        recurrent state zeroes it at the same step as inference.
        """
        none = np.zeros(self._slots.count, np.bool_)
        reset = Step({}, none.astype(np.float32), none, ~none, ~none)
        self._block.append(self._rows.observed, chosen, reset, version)
        self._hand_on()
        if self._block.is_empty:
            self._state_before = {
                name: np.zeros_like(self.state[name]) for name in self._kept
            }

    def _hand_on(self) -> None:
        """Writes the block to the store if it is full."""
        if not self._block.is_full:
            return
        columns = self._block.take(self._rows.observed)
        start_s = time.monotonic()
        self.stats.num_items += self._write(columns, self._state_before)
        self.stats.write_s += time.monotonic() - start_s
        self._blocks_left -= 1

    def _uniforms(self, version: int) -> NDArray[np.float64]:
        # Philox yields four numbers per counter value. Each row uses its own counter
        # values, so its numbers do not depend on how rows are divided among actors.
        first = self._slots.first * -(-self._num_uniforms // 4)
        return _core.uniforms(
            (self._seed, version),
            (first, self._step, 0, 0),
            self._slots.count,
            self._num_uniforms,
        )

    def _count(self, step: Step) -> None:
        joint = joint_step(step, self._env.spec)
        num_resets, finished = self._episodes.count(
            joint.reward, joint.terminated, joint.truncated, joint.is_reset
        )
        self.stats.num_batches += 1
        self.stats.num_frames += len(joint.is_reset) - num_resets
        self.stats.num_episodes += num_resets
        for episode_return, length in finished:
            self.stats.recent_returns.append(episode_return)
            self.stats.recent_lengths.append(length)


@dataclass(frozen=True, kw_only=True)
class EnvironmentActorConfig:
    """Settings of an environment actor: its copies, their groups and its turns."""

    num_envs: int = bounded(16, 1, 4096, "8 to 64 suits a CPU")
    """Number of vectorized copies of the environment per actor, 1 to 4096. Each copy is
    a row of the inference batch, or a row per agent, so more copies give larger
    batches."""
    num_groups: int = bounded(2, 1, 8, "use 2")
    """Number of groups into which an actor's copies are divided, 1 to 8, if inference
    runs in another process. One group steps while another waits for inference (double
    buffering)."""
    turn_steps: int = bounded(40, 1, 1_000_000, "use 40")
    """Number of steps per copy in a turn of the actor, which uses one model; 1 to
    1,000,000, rounded up to complete items."""
    step_timeout_s: float = bounded(
        120.0, 0, math.inf, "allow a few times the slowest step", above=True, below=True
    )
    """Maximum time of a step or a reset of the copies in seconds, above 0. An actor
    whose environment takes longer is restarted."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_fields(self)

    def group_sizes(self) -> list[int]:
        """Returns the number of copies in each group; sizes differ by at most 1."""
        num_groups = min(self.num_groups, self.num_envs)
        return [(self.num_envs + place) // num_groups for place in range(num_groups)][
            ::-1
        ]
