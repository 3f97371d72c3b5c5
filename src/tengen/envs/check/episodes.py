"""Checks the episodes of a single environment: resets, steps and ends."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tengen.envs.check.one import Maker, OneEnv, agents_actions, own_actions
from tengen.envs.check.seen import (
    CannotGoOnError,
    Findings,
    ObservationCheck,
    copied,
    is_same,
)
from tengen.envs.masks import legal_actions
from tengen.envs.parallel_env import ParallelEnv
from tengen.envs.teams import joint_step
from tengen.errors import TengenError
from tengen.tensors import ACTION_MASK

# Minimum and maximum number of episodes whose final observations are checked.
_MIN_ENDS, _MAX_ENDS = 3, 10
# Number of non-final steps to replay, and the maximum probability of a false finding.
_NUM_EARLIER = 20
_MAX_CHANCE = 1e-3
# If all episodes have the same length, at least this, a step limit probably ends them.
_MIN_LIMIT = 10
# Minimum number of steps after which the absence of an episode's end is a finding.
_MIN_ENDLESS = 1000
# Number of dicts that the step of a parallel environment returns.
_NUM_PARTS = 5


@dataclass
class EpisodeFacts:
    """Statistics of the checked episodes, for the report."""

    num_steps: int = 0
    """Number of steps taken."""
    num_ended: int = 0
    """Number of episodes that ended."""
    num_truncated: int = 0
    """Number of episodes that were truncated."""
    shortest: int = 0
    """Length of the shortest episode that ended, in steps; 0 if none ended."""
    longest: int = 0
    """Length of the longest episode that ended, in steps; 0 if none ended."""
    least_reward: float = math.inf
    """The lowest finite reward of all steps; +inf if no reward was finite."""
    greatest_reward: float = -math.inf
    """The highest finite reward of all steps; -inf if no reward was finite."""
    num_left: int = 0
    """Number of agents that left an episode before its end."""
    num_come: int = 0
    """Number of agents that came after the beginning of an episode."""

    def take(self, reward: float) -> None:
        """Adds one step to the statistics."""
        self.num_steps += 1
        if not math.isfinite(reward):
            return  # an invalid reward is already a finding
        self.least_reward = min(self.least_reward, reward)
        self.greatest_reward = max(self.greatest_reward, reward)

    def end(self, length: int, is_truncated: bool) -> None:
        """Adds an ended episode of ``length`` steps to the statistics."""
        self.shortest = min(self.shortest, length) if self.num_ended else length
        self.longest = max(self.longest, length)
        self.num_ended += 1
        self.num_truncated += is_truncated


@dataclass
class _Ended:
    """The seed and actions of an ended episode, with which it can be replayed."""

    seed: int
    actions: list[Any]
    is_truncated: bool


def check_spaces(env: OneEnv, findings: Findings) -> None:
    """Warns if continuous actions have no finite bounds.

    Args:
        env: The environment, before its first reset.
        findings: Receives the warning.
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
            "should have finite bounds, to which agents scale their actions; set low "
            "and high",
        )


def check_episodes(
    maker: Maker, num_steps: int, seed: int, is_limited: bool
) -> EpisodeFacts:
    """Plays episodes with random actions and checks the results of every step.

    Args:
        maker: Creates the environment.
        num_steps: Total number of steps.
        seed: Seed of the episodes and actions.
        is_limited: Whether the environment declares a step limit.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """
    env = maker()
    facts, ended = EpisodeFacts(), list[_Ended]()
    actions = own_actions(env.env.action_space, seed)
    one_first: Any = None
    do_begin_alike = True
    episode_seed = seed - 1
    while facts.num_steps < num_steps:
        episode_seed += 1
        taken: list[Any] = []
        first = copied(env.reset(episode_seed))
        if episode_seed == seed:
            one_first = first
        do_begin_alike = do_begin_alike and is_same(one_first, first)
        while facts.num_steps < num_steps:
            taken.append(next(actions))
            moved = env.step(taken[-1])
            facts.take(moved.reward)
            if not moved.is_over:
                continue
            is_truncated = not moved.terminated
            facts.end(len(taken), is_truncated)
            if len(ended) < _MAX_ENDS:
                ended.append(_Ended(episode_seed, taken, is_truncated))
            break
    env.close()
    _check_ends(facts, maker.findings, is_limited)
    if len(ended) >= _MIN_ENDS:
        _check_finals(maker, ended, do_begin_alike)
    return facts


class _Watched:
    """An environment of several agents, whose observations and flags are checked."""

    def __init__(self, env: Any, findings: Findings) -> None:
        self._env = env
        self._findings = findings

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def step(self, actions: Any) -> Any:
        """Takes a step, and records results that do not fit their spaces."""
        answer = self._env.step(actions)
        if not isinstance(answer, tuple) or len(answer) != _NUM_PARTS:
            return answer  # the adapter rejects it
        seen, _, *ends, _ = answer
        for agent in actions:
            if isinstance(seen, Mapping) and agent in seen:
                space = self._env.observation_space(agent)
                check = ObservationCheck(space, self._findings)
                check.check(seen[agent], f"for {agent}")
            for which, given in zip(("terminations", "truncations"), ends, strict=True):
                flag = given.get(agent) if isinstance(given, Mapping) else False
                if not isinstance(flag, bool | np.bool_):
                    self._findings.broken(
                        f"step.{which}",
                        which,
                        flag,
                        f"must be a bool for {agent}; return bool(...)",
                    )
        return answer


def check_agents(made: Any, maker: Maker, num_steps: int, seed: int) -> EpisodeFacts:
    """Plays episodes of several agents with random legal actions, and checks each step.

    Args:
        made: The environment; closed at the end.
        maker: The maker of the environment.
        num_steps: Total number of steps.
        seed: Seed of the episodes and actions.

    Raises:
        CannotGoOnError: The environment returned an unusable value.
    """
    findings, facts = maker.findings, EpisodeFacts()
    try:
        with maker.watch.during("making it"):
            env = ParallelEnv(
                lambda: _Watched(made, findings), 1, seed, name=maker.name
            )
        spec = env.spec
        with maker.watch.during("reset()"):
            observation = env.reset()
        length, was_present = 0, np.ones(spec.num_agents, np.bool_)
        for actions in agents_actions(spec.actions, num_steps, env.num_envs, seed):
            if spec.has_action_mask:
                mask = observation[ACTION_MASK]
                actions = legal_actions(actions, mask, spec.actions.num_choices)
            with maker.watch.during("step()"):
                step = env.step(actions)
            observation, joint = step.observation, joint_step(step, spec)
            is_present = ~step.is_reset
            if joint.is_reset[0]:
                length, was_present = 0, np.ones(spec.num_agents, np.bool_)
                continue
            if length:
                facts.num_come += int((is_present & ~was_present).sum())
            was_present = is_present
            length += 1
            facts.take(float(joint.reward[0]))
            if joint.terminated[0] or joint.truncated[0]:
                facts.end(length, bool(joint.truncated[0]))
            else:
                facts.num_left += int((step.terminated | step.truncated).sum())
        env.close()
    except TengenError as error:
        findings.refused("agents", error)
        raise CannotGoOnError from error
    _check_ends(facts, findings, is_limited=False)
    return facts


def _check_ends(facts: EpisodeFacts, findings: Findings, is_limited: bool) -> None:
    if not facts.num_ended:
        if not is_limited and facts.num_steps >= _MIN_ENDLESS:
            findings.warning(
                "episodes.limit",
                "episode",
                f"{facts.num_steps} steps",
                "should end eventually; truncate it with gymnasium.wrappers.TimeLimit",
            )
        return
    if (
        facts.num_ended >= _MIN_ENDS
        and facts.num_truncated == 0
        and _MIN_LIMIT <= facts.shortest == facts.longest
    ):
        findings.warning(
            "episodes.truncated",
            "terminated",
            f"True after {facts.longest} steps in each of {facts.num_ended} episodes",
            "should be False if a step limit ends the episode; return truncated=True "
            "for that, or ignore this if the task itself ends then",
        )


def _check_finals(maker: Maker, ended: list[_Ended], do_begin_alike: bool) -> None:
    """Detects an environment whose ``step`` resets, which hides final observations.

    Replays an episode up to its last step, and then calls ``reset`` instead of the last
    step. If ``step`` resets, both calls give the same observation, because both sample
    it from the same random generator. But an environment that samples observations
    independently, such as a contextual bandit, gives equal observations at any step. So
    earlier steps are replayed too, to estimate how likely equal observations are.
    """
    env = maker()
    do_reset = all(_is_beginning(env, one, len(one.actions)) for one in ended)
    earlier = []
    if do_reset:
        num_each = -(-_NUM_EARLIER // len(ended))
        earlier = [
            _is_beginning(env, one, step)
            for one in ended
            for step in _spread(len(one.actions), num_each)
        ]
    env.close()
    # Estimate the probability of a match with Laplace's rule of succession.
    share = (sum(earlier) + 1) / (len(earlier) + 2)
    if not earlier or share ** len(ended) > _MAX_CHANCE:
        return
    which = "truncated" if ended[0].is_truncated else "terminated"
    seen = f"equals that of the next reset, in each of {len(ended)} episodes"
    must = "be the episode's last state; begin the next episode in reset, not in step"
    if do_begin_alike:
        maker.findings.warning(
            "step.final", f"observation with {which}", seen, f"should {must}"
        )
    else:
        maker.findings.broken(
            "step.final", f"observation with {which}", seen, f"must {must}"
        )


def _is_beginning(env: OneEnv, episode: _Ended, step: int) -> bool:
    """Returns whether a reset instead of step ``step`` gives the same observation."""
    if not _is_going_on(env, episode, step):
        return False
    seen = copied(env.step(episode.actions[step - 1]).observation)
    return _is_going_on(env, episode, step) and is_same(env.reset(), seen)


def _is_going_on(env: OneEnv, episode: _Ended, step: int) -> bool:
    """Replays the steps before ``step``; returns false if the episode ends early."""
    env.reset(episode.seed)
    # An early end means that the episode is not reproducible; check_seeds reports that.
    return not any(env.step(action).is_over for action in episode.actions[: step - 1])


def _spread(num_steps: int, most: int) -> list[int]:
    """Returns at most ``most`` step numbers, evenly spaced before the last step."""
    return sorted({num_steps * i // (most + 1) for i in range(1, most + 1)} - {0})
