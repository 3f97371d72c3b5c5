"""Evaluation of an agent in an environment, with complete episodes.

The environment is vectorized, so that the network evaluates batches. The episodes to
count are fixed in advance: with C copies, episode i is the episode ``i // C`` of copy
``i % C``. Counting the first N episodes to end would bias the result to short episodes,
which are bad in some environments and good in others. A copy that has played its
episodes still steps, but these steps do not count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.actors import EnvironmentRows, Policy, Slots, clip_actions
from tengen.config import check, check_literals
from tengen.envs import ActionSpec, Arrays, Env
from tengen.inference import Backend

__all__ = [
    "MAX_STEPS",
    "Acting",
    "ActingMode",
    "Draws",
    "EpisodesReport",
    "mean_interval",
    "play_episodes",
]

ActingMode = Literal["greedy", "sampled", "epsilon"]


@dataclass(frozen=True, kw_only=True)
class Acting:
    """How an agent chooses actions from a network's outputs in evaluation."""

    mode: ActingMode = "greedy"
    """``greedy``: the best action. ``sampled``: sampled from the policy, as in
    training; not for agents without a policy. ``epsilon``: epsilon-greedy."""
    epsilon: float = 0.001
    """Probability of a random action in mode ``epsilon``, in [0, 1]. Continuous actions
    are always greedy in this mode."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        rule = "must be in [0, 1]; use 0.001"
        check(0 <= self.epsilon <= 1, "epsilon", self.epsilon, rule)

    def __str__(self) -> str:
        if self.mode == "epsilon":
            return f"greedy but for epsilon {self.epsilon:g}"
        return self.mode

    def choose(
        self, policy: Policy, outputs: Arrays, actions: ActionSpec, draw: Draws
    ) -> NDArray[Any]:
        """Returns the actions ``[N, ...]`` to take.

        Args:
            policy: The agent.
            outputs: The network's outputs, arrays of shape ``[N, ...]``.
            actions: The action space.
            draw: The random number generator.
        """
        if self.mode == "sampled":
            num_rows = len(next(iter(outputs.values())))
            uniforms = draw.uniforms(num_rows, policy.num_uniforms(actions))
            slots = Slots(0, num_rows, num_rows)
            drawn: NDArray[Any] = policy.act(outputs, actions, uniforms, slots)[
                "action"
            ]
            return drawn
        action: NDArray[Any] = policy.act_greedily(outputs, actions)["action"]
        if self.mode == "greedy" or not actions.is_discrete:
            return action
        num_parts = max(1, len(actions.num_choices))
        uniforms = draw.uniforms(len(action), 1 + num_parts)
        any_of = (uniforms[:, 1:] * actions.num_choices).astype(action.dtype)
        is_any = uniforms[:, 0] < self.epsilon
        is_any = is_any.reshape(-1, *[1] * (action.ndim - 1))
        taken: NDArray[Any] = np.where(is_any, any_of.reshape(action.shape), action)
        return taken


class Draws:
    """Uniform random numbers, determined by a seed and the index of the call.

    Args:
        seed: 0 to 2^64 - 1.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._step = 0

    def uniforms(self, num_rows: int, num_each: int) -> NDArray[np.float64]:
        """Returns new random numbers in [0, 1), ``[num_rows, num_each]`` float64."""
        self._step += 1
        stream = np.random.Philox(key=self._seed, counter=[0, self._step, 0, 0])
        return np.random.Generator(stream).random((num_rows, num_each))


MAX_STEPS = 108_000
"""The default maximum number of steps of an episode."""


@dataclass(frozen=True)
class EpisodesReport:
    """Returns and lengths of episodes, ordered by episode index."""

    returns: tuple[float, ...]
    """The undiscounted return of each episode."""
    lengths: tuple[int, ...]
    """The number of steps of each episode."""
    num_cut: int = 0
    """Episodes that were cut at ``max_steps``; their returns are included."""

    @property
    def mean_return(self) -> float:
        """Mean of ``returns``."""
        return float(np.mean(self.returns))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of the mean; None for one episode."""
        return mean_interval(self.returns)

    @property
    def num_frames(self) -> int:
        """The total number of steps of all episodes."""
        return sum(self.lengths)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON; ``low`` and ``high`` are the ``interval``."""
        low, high = self.interval or (None, None)
        return {
            "episodes": len(self.returns),
            "mean_return": self.mean_return,
            "low": low,
            "high": high,
            "interval": "95 % of the mean, Student's t",
            "returns": list(self.returns),
            "lengths": list(self.lengths),
            "frames": self.num_frames,
            "cut": self.num_cut,
        }


def play_episodes(
    env: Env,
    policy: Policy,
    backend: Backend,
    num_episodes: int,
    *,
    model: str,
    max_steps: int = MAX_STEPS,
    acting: Acting | None = None,
    seed: int = 0,
    watch: Callable[[int], None] = lambda num_over: None,
) -> EpisodesReport:
    """Plays episodes and returns their report. Blocks.

    The returns depend only on the model, the seeds, the number of vectorized copies and
    the number of episodes. The module's docstring defines which episodes count.

    Args:
        env: The environment, with at most ``num_episodes`` vectorized copies. It is
            reset first, and not closed.
        policy: The agent, which chooses the actions.
        backend: The backend of the network.
        num_episodes: Number of episodes, at least 1.
        model: The model's name in messages.
        max_steps: Steps after which an episode is cut, at least 1. Its copy then plays
            no further episode, because a copy cannot be reset individually, so the
            report has fewer episodes.
        acting: How to choose actions; None for greedy.
        seed: Seed of ``acting``, 0 to 2^64 - 1.
        watch: Called after each episode, with the number of finished episodes.

    Raises:
        UsageError: There are more copies than episodes.
        RunError: A network output is not finite, or the environment fails.
    """
    num_envs, actions = env.num_envs, env.spec.actions
    check(
        num_envs <= num_episodes,
        "num_envs",
        num_envs,
        f"must be at most the episodes ({num_episodes}); make fewer copies",
    )
    rows = EnvironmentRows(backend.signature, actions, num_envs)
    runner = backend.bind(rows.inputs, rows.outputs, rows.state)
    returns, lengths = np.zeros(num_episodes), np.zeros(num_episodes, np.int64)
    # The index of each copy's current episode; from num_episodes on, none counts.
    playing = np.arange(num_envs)
    num_over = num_cut = 0
    acting, draws = acting or Acting(), Draws(seed)
    rows.begin(env.reset())
    while (playing < num_episodes).any():
        runner.run(num_envs)
        rows.check_answers(model)
        action = acting.choose(policy, rows.outputs, actions, draws)
        step = env.step(clip_actions(actions, action))
        reward = env.spec.learned(step.reward)
        rows.show(step.observation, action, reward, step.is_reset)
        counts = (playing < num_episodes) & ~step.is_reset
        returns[playing[counts]] += step.reward[counts]
        lengths[playing[counts]] += 1
        is_over = step.terminated | step.truncated
        for copy in np.flatnonzero(counts):
            is_cut = not is_over[copy] and lengths[playing[copy]] >= max_steps
            if not is_cut and not is_over[copy]:
                continue
            playing[copy] = num_episodes if is_cut else playing[copy] + num_envs
            num_cut += int(is_cut)
            num_over += 1
            watch(num_over)
    played = np.flatnonzero(lengths)
    return EpisodesReport(
        tuple(float(value) for value in returns[played]),
        tuple(int(n) for n in lengths[played]),
        num_cut,
    )


_CONFIDENCE = 0.95
# More bisection steps than this exceed the precision of a float.
_NUM_HALVINGS = 80


def mean_interval(values: Sequence[float]) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of the mean of a distribution (Student's t).

    The interval is exact for a normal distribution, and a good approximation for large
    samples of any other. Equal values have variance 0, and so an interval of width 0.

    Source: Student 1908, "The probable error of a mean".

    Args:
        values: The sample, at least one value.

    Returns:
        The lower and upper bounds; None for a single value, which has no variance.
    """
    if len(values) < 2:
        return None
    sample = np.array(values, np.float64)
    error = float(sample.std(ddof=1)) / math.sqrt(len(values))
    mean, half = float(sample.mean()), _t_quantile(len(values) - 1) * error
    return mean - half, mean + half


def _t_quantile(freedom: int) -> float:
    """Returns the two-sided 95 % quantile of Student's t distribution."""
    low, high = 1.0, 16.0  # from 12.7 for 1 degree of freedom to 1.96 in the limit
    for _ in range(_NUM_HALVINGS):
        middle = (low + high) / 2
        if _probability_within(middle, freedom) < _CONFIDENCE:
            low = middle
        else:
            high = middle
    return high


def _probability_within(t: float, freedom: int) -> float:
    """Returns the probability that a Student's t variable lies in [-t, t].

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    angle = math.atan(t / math.sqrt(freedom))
    sine, cosine = math.sin(angle), math.cos(angle)
    is_odd = freedom % 2
    # Each term is the previous term times a fraction of cosine squared.
    terms = np.arange(1, (freedom - is_odd) // 2)
    fractions = cosine**2 * (2 * terms - 1 + is_odd) / (2 * terms + is_odd)
    series = 1.0 + float(np.cumprod(fractions).sum())
    if not is_odd:
        return sine * series
    return 2 / math.pi * (angle + (sine * cosine * series if freedom > 1 else 0.0))
