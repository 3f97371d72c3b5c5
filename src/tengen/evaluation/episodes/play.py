"""Plays complete episodes to evaluate an agent, or to match two, in an environment.

The environment is vectorized, so that the network evaluates batches. Which episodes
count is fixed in advance: with C copies, episode i is episode ``i // C`` of copy ``i %
C``. Counting the first N episodes to end would favour short episodes and bias the mean
return. If ``goes_on`` returns False, all copies still play equally many episodes. After
its last counted episode, a copy keeps stepping, and its steps are ignored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from tengen.actors import EnvironmentRows, Policy, Slots, clip_actions, random_choices
from tengen.config import check, check_literals
from tengen.envs import (
    ActionSpec,
    Arrays,
    Env,
    EnvWrapper,
    Step,
    hide_state,
    joint_step,
    team_rewards,
)
from tengen.evaluation.elo import Tally
from tengen.evaluation.episodes.report import EpisodesReport
from tengen.experience import Episode
from tengen.inference import Backend

ActingMode = Literal["greedy", "sampled", "epsilon"]


@dataclass(frozen=True, kw_only=True)
class Acting:
    """How an agent chooses actions in an evaluation."""

    mode: ActingMode = "greedy"
    """``greedy`` takes the best action. ``sampled`` samples from the policy, as in
    training; it requires an agent with a policy. ``epsilon`` is epsilon-greedy."""
    epsilon: float = 0.001
    """Probability of a uniformly random action in mode ``epsilon``, in [0, 1]. For
    continuous actions, this mode is greedy."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid."""
        check_literals(self)
        rule = "must be in [0, 1]; use 0.001"
        check(0 <= self.epsilon <= 1, "epsilon", self.epsilon, rule)

    def __str__(self) -> str:
        if self.mode == "epsilon":
            return f"greedy, except for epsilon {self.epsilon:g}"
        return self.mode

    def choose(
        self,
        policy: Policy,
        outputs: Arrays,
        actions: ActionSpec,
        draw: Draws,
        mask: NDArray[np.bool_] | None = None,
    ) -> NDArray[Any]:
        """Returns the actions ``[N, ...]``, one for each row of the network's outputs.

        Args:
            policy: The agent that chooses actions from ``outputs``.
            outputs: The network's outputs, arrays of shape ``[N, ...]``.
            actions: The environment's action space.
            draw: The random number generator.
            mask: ``[N, A]`` bool, the legal choices; None if all are legal. It applies
                to random actions; ``outputs`` must already be masked.
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
        any_of = random_choices(uniforms[:, 1:], actions, mask)
        is_any = uniforms[:, 0] < self.epsilon
        is_any = is_any.reshape(-1, *[1] * (action.ndim - 1))
        taken: NDArray[Any] = np.where(is_any, any_of.reshape(action.shape), action)
        return taken


class Draws:
    """A counter-based generator of uniform random numbers.

    Args:
        seed: Seed, 0 to 2^64 - 1. The numbers depend on it and on the number of calls.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._step = 0

    def uniforms(self, num_rows: int, num_each: int) -> NDArray[np.float64]:
        """Returns new random numbers in [0, 1), of shape ``[num_rows, num_each]``."""
        self._step += 1
        stream = np.random.Philox(key=self._seed, counter=[0, self._step, 0, 0])
        return np.random.Generator(stream).random((num_rows, num_each))


MAX_STEPS = 108_000
"""Default maximum number of steps per episode. A longer episode is cut."""


@dataclass(frozen=True)
class Side:
    """A model that acts in episodes."""

    policy: Policy
    """The agent, which chooses the actions."""
    backend: Backend
    """The backend that evaluates the agent's network."""
    model: str
    """The model's name in error messages."""
    acting: Acting = field(default_factory=Acting)
    """How to choose actions."""


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
    against: Side | None = None,
    watch: Callable[[int], None] = lambda num_over: None,
    goes_on: Callable[[], bool] = lambda: True,
) -> EpisodesReport:
    """Plays episodes, and returns a report of their returns and lengths. Blocks.

    The returns depend only on the model, the environment's seed, ``acting``, ``seed``,
    and the numbers of episodes and vectorized copies. With C copies, episode i is
    episode ``i // C`` of copy ``i % C``.

    Args:
        env: The environment, with at most ``num_episodes`` vectorized copies. This
            function resets it and hides its global state, but does not close it.
        policy: The agent, which chooses the actions.
        backend: The backend that evaluates the agent's network.
        num_episodes: Number of episodes, at least 1.
        model: The model's name in error messages.
        max_steps: Steps after which an episode is cut, at least 1. Because a single
            copy cannot be reset, a copy plays no further episodes after a cut one, and
            the report has fewer than ``num_episodes``.
        acting: How to choose actions; None for greedy.
        seed: Seed of the random numbers for ``acting``, 0 to 2^64 - 1.
        against: The second side of a match in an environment with k teams; None for
            none. In episode i, one side has team ``i % k`` and the other side all other
            teams. The first side has the single team if ``i // k`` is even.
        watch: Called with the number of finished episodes when it has changed.
        goes_on: Called after each step; its error ends the call. Once it returns
            False, a copy begins no more episodes than another copy has begun before,
            and the report may have fewer than ``num_episodes``.

    Raises:
        UsageError: There are more copies than episodes.
        RunError: A network output is not finite, or the environment fails.
    """
    spec, actions = env.spec, env.spec.actions
    num_copies = env.num_envs // spec.num_agents
    check(
        num_copies <= num_episodes,
        "num_envs",
        num_copies,
        f"must be at most the number of episodes ({num_episodes}); lower it",
    )
    first = Side(policy, backend, model, acting or Acting())
    sides = [_opened(env, first, Draws(seed))]
    if against is not None:
        sides.append(_opened(env, against, Draws(seed + 1)))
    teams = tuple(spec.team_members) or ("",)
    # The teams of the first side in each episode, ``[episodes, k]``.
    episode = np.arange(num_episodes + num_copies)[:, None]
    is_single = episode % len(teams) == np.arange(len(teams))
    own = is_single == (episode // len(teams) % 2 == 0)
    team_of = np.array([teams.index(team) for team in spec.teams or ("",)])
    returns = {team: np.zeros(num_episodes) for team in teams}
    lengths = np.zeros(num_episodes, np.int64)
    # The index of each copy's current episode; from num_episodes on, it does not count.
    playing = np.arange(num_copies)
    num_over = num_cut = 0
    # Once ``begins`` is False, no copy begins an episode with index ``bound`` or more.
    begins, bound = True, num_copies
    hide_state(env)
    observation = env.reset()
    for rows, _ in sides:
        rows.begin(observation)
    while (playing < num_episodes).any():
        action, *others = [choose() for _, choose in sides]
        for other in others:
            is_own = own[playing][:, team_of].ravel()
            action[~is_own] = other[~is_own]
        step = env.step(clip_actions(actions, action))
        reward = spec.learned(step.reward)
        for rows, _ in sides:
            rows.show(step.observation, action, reward, step.is_reset)
        joint = joint_step(step, spec)
        counts = (playing < num_episodes) & ~joint.is_reset
        for team, rewards in team_rewards(step, spec).items():
            returns[team][playing[counts]] += rewards[counts]
        lengths[playing[counts]] += 1
        is_over = joint.terminated | joint.truncated
        is_cut = ~is_over & (lengths.take(playing, mode="clip") >= max_steps)
        begins = goes_on() and begins
        for copy in np.flatnonzero(counts & (is_over | is_cut)):
            following = playing[copy] + num_copies
            if begins and not is_cut[copy]:
                bound = max(bound, following - copy + num_copies)
            is_last = is_cut[copy] or following >= bound
            playing[copy] = num_episodes if is_last else following
            num_cut += int(is_cut[copy])
            num_over += 1
            watch(num_over)
    played = np.flatnonzero(lengths)
    each = {team: tuple(all_[played].tolist()) for team, all_ in returns.items()}
    num_steps = tuple(int(n) for n in lengths[played])
    if len(teams) == 1:
        return EpisodesReport(
            each[teams[0]], num_steps, num_cut, win_return=spec.win_return
        )
    scores = np.stack([returns[team][played] for team in teams], axis=1)
    own, tallies = own[played], dict[str, Tally]()
    for i, team in enumerate(teams):
        tallies[team] = _tally(scores, np.arange(len(teams)) == i)
        if against is not None:
            tallies[team] = _tally(scores[own[:, i]], own[own[:, i]])
    tally = None if against is None else _tally(scores, own)
    return EpisodesReport(
        each[teams[0]], num_steps, num_cut, each, tallies, tally, spec.win_return
    )


def _opened(
    env: Env, side: Side, draws: Draws
) -> tuple[EnvironmentRows, Callable[[], NDArray[Any]]]:
    """Returns a side's rows, and a function that returns its actions ``[N, ...]``."""
    actions, backend = env.spec.actions, side.backend
    rows = EnvironmentRows(backend.signature, actions, env.num_envs)
    runner = backend.bind(rows.inputs, rows.outputs, rows.state)

    def choose() -> NDArray[Any]:
        runner.run(env.num_envs)
        rows.take_answers(side.model)
        return side.acting.choose(side.policy, rows.outputs, actions, draws, rows.mask)

    return rows, choose


def _tally(scores: NDArray[np.float64], own: NDArray[np.bool_]) -> Tally:
    """Returns the results of some teams against the others, by the greatest returns.

    Args:
        scores: ``[E, k]``, the returns of k teams in E episodes.
        own: ``[E, k]`` or ``[k]`` bool, the teams whose results are returned.
    """
    ours = np.where(own, scores, -np.inf).max(axis=1)
    theirs = np.where(own, -np.inf, scores).max(axis=1)
    wins, losses = int((ours > theirs).sum()), int((ours < theirs).sum())
    return Tally(wins, len(scores) - wins - losses, losses)


class Recorder(EnvWrapper):
    """An ``Env`` that passes on the complete episodes of its copies.

    With C copies, the first ``num_episodes`` episodes are recorded: episode i is
    episode ``i // C`` of copy ``i % C``, as in an evaluation. They are passed on in the
    order in which they end.

    Args:
        env: The environment to step; ``close`` closes it too.
        num_episodes: Number of episodes to record.
        add: Called with each complete episode.
    """

    def __init__(
        self, env: Env, num_episodes: int, add: Callable[[Episode], None]
    ) -> None:
        super().__init__(env)
        num_envs = env.num_envs
        self._left = [len(range(i, num_episodes, num_envs)) for i in range(num_envs)]
        self._add = add
        self._seen: list[list[Arrays]] = []
        self._steps: list[list[Arrays]] = []

    def reset(self) -> Arrays:
        """See ``Env.reset``."""
        observation = super().reset()
        self._steps = [[] for _ in self._left]
        self._seen = [[_row(observation, i)] for i in range(self.num_envs)]
        return observation

    def step(self, actions: NDArray[Any]) -> Step:
        """See ``Env.step``."""
        step = super().step(actions)
        taken = {
            "action": actions,
            "reward": step.reward,
            "terminated": step.terminated,
            "truncated": step.truncated,
        }
        if step.life_lost is not None:
            taken["life_lost"] = step.life_lost
        for i in np.flatnonzero(self._left).tolist():
            row = _row(step.observation, i)
            if step.is_reset[i]:
                self._seen[i], self._steps[i] = [row], []
                continue
            self._seen[i].append(row)
            self._steps[i].append(_row(taken, i))
            if step.terminated[i] or step.truncated[i]:
                self._left[i] -= 1
                self._add({**_stacked(self._seen[i]), **_stacked(self._steps[i])})
        return step


def _row(arrays: Arrays, copy: int) -> Arrays:
    """Returns a copy's rows, which share no memory with those of other copies."""
    return {name: array[copy].copy() for name, array in arrays.items()}


def _stacked(rows: list[Arrays]) -> Arrays:
    return {name: np.stack([row[name] for row in rows]) for name in rows[0]}
