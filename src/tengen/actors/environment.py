"""The actor of the environment family: steps environments, makes unrolls.

It has no network. Its port asks inference for the policy of every copy of the
environment at once, draws actions, steps, and puts finished unrolls into a table::

    port = EnvironmentPort(env, config, table, writer="actor-0", seed=seed)
    while not stopped:                             # a turn: one model, many unrolls
        port.begin(generation)
        drive(port, backend.bind(port.planes, port.policy, port.value))

Source: Espeholt et al. 2020, "SEED RL", section 3.1 (actors without a network).
Differs from it: termination and truncation are apart, and the behaviour policy is
kept as logits.
"""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from tengen._core import Rng
from tengen.actors.unroll import Unrolls, unroll_columns
from tengen.config import check, check_literals, check_range
from tengen.envs import Env, EnvSpec
from tengen.errors import RunError, UsageError
from tengen.nets import FeatureSpec
from tengen.store import ExperienceTable

__all__ = [
    "EnvironmentActorConfig",
    "EnvironmentPort",
    "EnvironmentStats",
    "environment_seed",
    "features_of",
]

# Purpose::kMoveChoice of core/base/rng.h.
_MOVE_CHOICE = 3

# Episodes that a mean return is taken over, the convention of Gymnasium's thresholds.
_NUM_RECENT_EPISODES = 100


@dataclass(frozen=True, kw_only=True)
class EnvironmentActorConfig:
    """How environments are stepped and cut into unrolls."""

    kind: Literal["environment"] = "environment"
    """Tells this config from the other actors'."""
    num_envs: int = 16
    """Copies of the environment stepped together, the rows of a batch; 1 to 4096."""
    unroll_length: int = 20
    """Transitions T of an unroll, at least 1."""
    num_unrolls: int = 32
    """Unrolls of one turn on one model, a positive multiple of num_envs."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        check_range("num_envs", self.num_envs, 1, 4096, "8 to 64 suits a CPU")
        check(
            self.unroll_length >= 1,
            "unroll_length",
            self.unroll_length,
            "must be at least 1; use 20",
        )
        check(
            self.num_unrolls >= 1 and self.num_unrolls % self.num_envs == 0,
            "num_unrolls",
            self.num_unrolls,
            f"must be a positive multiple of num_envs ({self.num_envs}); round it",
        )


@dataclass
class EnvironmentStats:
    """Counters of one port since it was made."""

    num_frames: int = 0
    """Environment steps; resets are not frames."""
    num_episodes: int = 0
    """Episodes that terminated or were truncated."""
    num_unrolls: int = 0
    """Unrolls inserted."""
    num_batches: int = 0
    """Batches evaluated, of num_envs rows each."""
    recent_returns: deque[float] = field(
        default_factory=lambda: deque(maxlen=_NUM_RECENT_EPISODES)
    )
    """Undiscounted returns of the last 100 episodes, oldest first."""

    @property
    def mean_return(self) -> float | None:
        """Mean of ``recent_returns``; None before 100 episodes have ended."""
        returns = self.recent_returns
        if len(returns) < _NUM_RECENT_EPISODES:
            return None
        return sum(returns) / len(returns)


def features_of(spec: EnvSpec) -> FeatureSpec:
    """Returns the feature spec of a vector network for this environment.

    Raises:
        UsageError: An observation is not a vector.
    """
    if len(spec.observation_shape) != 1:
        raise UsageError(
            f"observation shape ({spec.observation_shape}) of {spec.name} must be one "
            f"axis in this version; choose an environment with vector observations"
        )
    return FeatureSpec(
        num_planes=spec.observation_shape[0], num_actions=spec.num_actions
    )


def environment_seed(seed: int, first_sequence: int) -> int:
    """Returns the seed to make the environment of a port with.

    A port that resumes gets other episodes than the one before it began with.

    Args:
        seed: Of the run, at least 0.
        first_sequence: Of the port, at least 0.
    """
    state = np.random.SeedSequence((seed, first_sequence)).generate_state(1, np.uint64)
    return int(state[0])


class EnvironmentPort:
    """A ``tengen.inference.Port`` over N copies of an environment.

    Every batch has a row for every copy, in order. One thread drives it; ``stop`` may
    be called from any. The environments run on from turn to turn. A port that is made
    anew, after a crash, begins with a reset, and the transitions of unrolls that were
    not finished are lost; those of finished ones are in the table.

    The unrolls are a function of the environment's seed, ``seed``, the generations
    and the models. An action of copy i at step k is drawn from the stream (seed,
    generation, i, k), whatever the other copies do.

    Attributes:
        planes: ``[N, C, 1, 1]`` float32, the observations; what inference reads.
        policy: ``[N, A]`` float32, logits; what it fills.
        value: ``[N]`` float32, filled too and not used: the learner has its own.
        stats: Counters, for the view.
    """

    def __init__(
        self,
        env: Env,
        config: EnvironmentActorConfig,
        table: ExperienceTable,
        *,
        writer: str,
        seed: int,
        first_sequence: int = 0,
    ) -> None:
        """Resets the environments.

        Args:
            env: ``config.num_envs`` copies; the port does not close it.
            config: How they are stepped.
            table: Where unrolls go.
            writer: The name that they go under.
            seed: Of the run, at least 0.
            first_sequence: Of the first unroll; on resume the number of unrolls that
                the table has of this writer.

        Raises:
            UsageError: The numbers of copies differ, or an observation is not a
                vector.
        """
        check(
            env.num_envs == config.num_envs,
            "num_envs",
            config.num_envs,
            f"must be the environment's ({env.num_envs}); make it with as many",
        )
        self.stats = EnvironmentStats()
        self._env = env
        self._config = config
        self._table = table
        self._writer = writer
        self._seed = seed
        self._sequence = first_sequence
        self._stopped = threading.Event()
        self._generation = 0
        self._unrolls_left = 0
        num_envs, spec = config.num_envs, env.spec
        # A step of a resumed port has a number, and so a stream, of its own.
        self._step = -(-first_sequence // num_envs) * config.unroll_length
        self._returns = np.zeros(num_envs, np.float64)
        features = features_of(spec)
        shape = (features.num_planes, features.height, features.width)
        self.planes = np.zeros((num_envs, *shape), np.float32)
        self.policy = np.zeros((num_envs, spec.num_actions), np.float32)
        self.value = np.zeros(num_envs, np.float32)
        self._unrolls = Unrolls(unroll_columns(spec, config.unroll_length), env.reset())

    def begin(self, generation: int) -> None:
        """Begins a turn of ``config.num_unrolls`` unrolls, and forgets a stop.

        Args:
            generation: Of the model that the turn is driven with, at least 0.
        """
        self._generation = generation
        self._unrolls_left = self._config.num_unrolls
        self._stopped.clear()

    def stop(self) -> None:
        """Makes ``next`` return 0. Thread-safe. The next turn goes on from there."""
        self._stopped.set()

    def next(self) -> int:
        """Fills ``planes`` and returns N; 0 when the turn is over or was stopped."""
        if self._unrolls_left == 0 or self._stopped.is_set():
            return 0
        self.planes[:] = self._unrolls.newest_observation.reshape(self.planes.shape)
        return len(self.planes)

    def done(self) -> None:
        """Draws an action for every row, steps, and inserts unrolls that are full.

        Blocks while the environments step or the table is full.

        Raises:
            RunError: A logit is not finite.
        """
        if not np.isfinite(self.policy).all():
            raise RunError(
                f"policy (model of generation {self._generation}) must be finite; "
                f"lower the learning rate and go on from an older model"
            )
        actions = self._draw_actions()
        step = self._env.step(actions)
        self._unrolls.append(self.policy, actions, step)
        self._step += 1
        self._count(step.reward, step.terminated | step.truncated, step.is_reset)
        if self._unrolls.is_full:
            self._insert()

    def _draw_actions(self) -> NDArray[np.int64]:
        num_envs = len(self.policy)
        logits = self.policy.astype(np.float64)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        cumulative = weights.cumsum(axis=1)
        uniforms = np.empty((num_envs, 1))
        for i in range(num_envs):
            stream = Rng(self._seed, self._generation, i, self._step, _MOVE_CHOICE)
            uniforms[i] = stream.uniform()
        # A uniform number is below 1, so the last action's bound is never reached.
        actions: NDArray[np.int64] = (cumulative <= uniforms * cumulative[:, -1:]).sum(
            axis=1, dtype=np.int64
        )
        return actions

    def _count(
        self,
        reward: NDArray[np.float32],
        is_over: NDArray[np.bool_],
        is_reset: NDArray[np.bool_],
    ) -> None:
        self.stats.num_batches += 1
        self.stats.num_frames += len(is_reset) - int(is_reset.sum())
        self._returns += reward
        for i in is_over.nonzero()[0]:
            self.stats.num_episodes += 1
            self.stats.recent_returns.append(float(self._returns[i]))
            self._returns[i] = 0.0

    def _insert(self) -> None:
        full, self._unrolls = self._unrolls, self._unrolls.following()
        for i in range(self._config.num_envs):
            self._table.insert(self._writer, self._sequence, full.of(i))
            self._sequence += 1
            self._unrolls_left -= 1
            self.stats.num_unrolls += 1
