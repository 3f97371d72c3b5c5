"""Episodes of one environment: how they begin and end, and what is promised of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tengen.envs.check.actions import own_actions
from tengen.envs.check.findings import Findings
from tengen.envs.check.one import Maker, OneEnv
from tengen.envs.check.seen import copied, is_same

__all__ = ["EpisodeFacts", "check_episodes", "check_spaces"]

# Episodes whose end is played again, and of which a rule must hold to be believed.
_NUM_ENDS = 3
# Of a step count that says nothing of a limit.
_MIN_LIMIT = 10


@dataclass
class EpisodeFacts:
    """What was seen of episodes, for people."""

    num_steps: int = 0
    """Steps taken."""
    lengths: list[int] = field(default_factory=list)
    """Steps of each episode that ended."""
    rewards: tuple[float, float] = (0.0, 0.0)
    """The least and the greatest."""


@dataclass
class _Ended:
    """An episode that ended, to be played again."""

    seed: int
    actions: list[Any]
    final: Any
    is_truncated: bool


def check_spaces(env: OneEnv, findings: Findings) -> None:
    """Notes bounds that agents cannot keep to.

    Args:
        env: The environment, not begun.
        findings: Where what is wrong is noted.
    """
    from gymnasium import spaces

    space = env.env.action_space
    if not isinstance(space, spaces.Box):
        return
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        findings.warning(
            "spaces.actions",
            "action_space",
            space,
            "should have finite bounds, by which agents scale what they try; "
            "set low and high",
        )


def check_episodes(
    maker: Maker, num_steps: int, seed: int, is_limited: bool
) -> EpisodeFacts:
    """Plays episodes by random actions and looks at every answer.

    Args:
        maker: Makes the environment.
        num_steps: Steps in all.
        seed: Of episodes and actions.
        is_limited: Whether a limit of steps is declared.

    Raises:
        CannotGoOnError: An answer cannot be used.
    """
    env = maker()
    facts, ended = EpisodeFacts(), list[_Ended]()
    firsts: list[Any] = []
    does_change = False
    rewards: list[float] = []
    actions = iter(own_actions(env.env.action_space, num_steps, seed))
    while facts.num_steps < num_steps:
        episode_seed = seed + len(firsts)
        taken: list[Any] = []
        first = copied(env.reset(episode_seed))
        firsts.append(first)
        while facts.num_steps < num_steps:
            action = next(actions)
            moved = env.step(action)
            taken.append(action)
            facts.num_steps += 1
            rewards.append(moved.reward)
            does_change |= not is_same(first, moved.observation)
            if moved.is_over:
                facts.lengths.append(len(taken))
                final = copied(moved.observation)
                ended.append(_Ended(episode_seed, taken, final, not moved.terminated))
                break
    facts.rewards = min(rewards), max(rewards)
    env.close()
    _check_ends(facts, ended, maker.findings, is_limited)
    if does_change:
        _check_finals(maker, ended, firsts)
    return facts


def _check_ends(
    facts: EpisodeFacts,
    ended: Sequence[_Ended],
    findings: Findings,
    is_limited: bool,
) -> None:
    if not ended:
        if not is_limited:
            findings.warning(
                "episodes.limit",
                "episode",
                f"{facts.num_steps} steps",
                "should end by itself some time; cut it short by "
                "gymnasium.wrappers.TimeLimit",
            )
        return
    lengths = set(facts.lengths)
    if (
        len(ended) >= _NUM_ENDS
        and len(lengths) == 1
        and min(lengths) >= _MIN_LIMIT
        and not any(episode.is_truncated for episode in ended)
    ):
        findings.warning(
            "episodes.truncated",
            "terminated",
            f"True after {min(lengths)} steps in each of {len(ended)} episodes",
            "should be False where a limit of steps cuts an episode short; "
            "return truncated=True there, or leave it where the task itself is over",
        )


def _check_finals(maker: Maker, ended: Sequence[_Ended], firsts: Sequence[Any]) -> None:
    """Finds a step that resets: its observation is then what reset would give.

    The same episode is played again up to its last step, in place of which reset is
    called: whoever resets in step would draw the same beginning from the same stream.
    """
    chosen = ended[:_NUM_ENDS]
    if len(chosen) < _NUM_ENDS:
        return
    env = maker()
    for episode in chosen:
        env.reset(episode.seed)
        for action in episode.actions[:-1]:
            if env.step(action).is_over:
                return  # another episode than before: that is told by its own check
        if not is_same(env.reset(), episode.final):
            env.close()
            return
    env.close()
    which = "truncated" if chosen[0].is_truncated else "terminated"
    seen = f"that of the next reset, in each of {len(chosen)} episodes"
    must = (
        "be the state that the last action reached; let reset begin "
        "the next episode, and not step"
    )
    if all(is_same(firsts[0], first) for first in firsts):
        maker.findings.warning(
            "step.final", f"observation with {which}", seen, f"should {must}"
        )
    else:
        maker.findings.broken(
            "step.final", f"observation with {which}", seen, f"must {must}"
        )
