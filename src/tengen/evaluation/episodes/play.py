"""What an agent scores in an environment: whole episodes outside the learner.

Copies of the environment are stepped together, so that the network has a batch. Which
episodes count is settled before the first step, for what ends first is short: with N
episodes and C copies episode i is the one that copy ``i % C`` plays as its number
``i // C``. Counting the first N that end would favour short episodes, which are the bad
ones in some environments and the good ones in others. A copy whose episodes are over
goes on, and nobody counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.actors import EnvironmentRows, Policy, clip_actions
from tengen.config import check
from tengen.envs import Env
from tengen.evaluation.episodes.acting import Acting, Draws
from tengen.evaluation.episodes.mean_interval import mean_interval
from tengen.inference import Backend

__all__ = ["MAX_STEPS", "EpisodesReport", "play_episodes"]

MAX_STEPS = 108_000
"""Steps after which an episode is cut: half an hour of Atari, 60 frames a second."""


@dataclass(frozen=True)
class EpisodesReport:
    """What whole episodes gave, in order of their index."""

    returns: tuple[float, ...]
    """The sum of each episode's rewards, not discounted."""
    lengths: tuple[int, ...]
    """Steps of each."""
    num_cut: int = 0
    """Episodes that had not ended by themselves; they count with what they gave."""

    @property
    def mean_return(self) -> float:
        """Mean of ``returns``."""
        return float(np.mean(self.returns))

    @property
    def interval(self) -> tuple[float, float] | None:
        """The 95 % ``mean_interval`` of the returns; None for one episode."""
        return mean_interval(self.returns)

    @property
    def num_frames(self) -> int:
        """Steps of all episodes."""
        return sum(self.lengths)

    def to_json(self) -> dict[str, Any]:
        """Returns the report as JSON values; ``low`` and ``high`` end the interval."""
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
    """Plays episodes. Blocks.

    The returns are a function of the model, the seeds, the environment's copies and the
    number of episodes; see the module docstring for which episodes count.

    Args:
        env: C copies of the environment, at most as many as episodes; it is reset
            first, and not closed.
        policy: Chooses the actions.
        backend: Answers, for the environment's observations.
        num_episodes: At least 1.
        model: What messages call the model.
        max_steps: Of an episode, at least 1. One that has so many is cut, and its copy
            plays no other: a copy begins a new episode only where one has ended. The
            report has the fewer episodes.
        acting: How actions are chosen; None: what the policy holds best.
        seed: Of what ``acting`` draws, 0 to 2^64 - 1.
        watch: Given the number of episodes that are over, of those that count, after
            each of them.

    Raises:
        UsageError: There are more copies than episodes.
        RunError: An answer is not finite, or the environment fails.
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
    # The episode that each copy plays; beyond the last one nothing counts.
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
