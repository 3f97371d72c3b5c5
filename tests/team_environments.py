"""Environments of several agents with PettingZoo's parallel interface, without it."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
from gymnasium import spaces

COME_AND_GO = (("a", "b"), ("a", "b"), ("b", "c"), ("c",), ("a", "c"), ())
"""The agents that are in an episode, at its reset and after each step: ``a`` dies in
the second step and comes again in the fourth, ``c`` comes in the second."""


class Parallel:
    """A base class that has the interface and no more."""

    possible_agents = ("a", "b")

    def observation_space(self, agent):
        return spaces.Box(-100.0, 100.0, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(3)

    def close(self):
        pass


class Scripted(Parallel):
    """Agents come and go as ``present`` says.

    Agent i observes ``[time, i]`` and its reward is i + 1. An agent that leaves has
    terminated, or been truncated if (time, agent) is in ``cuts``.

    Attributes:
        taken: The actions of each step.
    """

    possible_agents = ("a", "b", "c")

    def __init__(self, present=COME_AND_GO, cuts=()):
        self._script, self._cuts = present, cuts
        self.taken = []

    def reset(self, seed=None, options=None):
        self._time = 0
        self.agents = list(self._script[0])
        return {agent: self._seen(agent) for agent in self.agents}, {}

    def step(self, actions):
        self.taken.append(actions)
        before = self.agents
        self._time += 1
        self.agents = list(self._script[self._time])
        left = {agent for agent in before if agent not in self.agents}
        cut = {agent for agent in left if (self._time, agent) in self._cuts}
        return (
            {agent: self._seen(agent) for agent in {*before, *self.agents}},
            {agent: 1.0 + self.possible_agents.index(agent) for agent in before},
            {agent: agent in left - cut for agent in before},
            {agent: agent in cut for agent in before},
            {agent: {} for agent in before},
        )

    def _seen(self, agent):
        index = self.possible_agents.index(agent)
        return np.array([self._time, index], np.float32)


class Moving(Scripted):
    """``Scripted`` with continuous actions, and small observations."""

    def observation_space(self, agent):
        return spaces.Box(0.0, 5.0, (2,), np.float32)

    def action_space(self, agent):
        low, high = np.float32([-1.0, 0.0]), np.float32([2.0, 0.5])
        return spaces.Box(low, high)


class TwoTeams(Scripted):
    """``Scripted`` with two teams."""

    def __init__(self):
        super().__init__()
        self.teams = {"a": "red", "b": "blue", "c": "red"}


class CountedState(Scripted):
    """``Scripted`` that counts the calls of its ``state``.

    Attributes:
        num_read: The number of calls, of all objects.
    """

    num_read = 0
    state_space = spaces.Box(-1e4, 1e4, (2,), np.float32)

    def state(self):
        CountedState.num_read += 1
        return np.array([self._time, 1000.0], np.float32)


class Screens(Scripted):
    """``Scripted`` with observations that are too large for a global state."""

    def observation_space(self, agent):
        return spaces.Box(0, 255, (200, 200, 3), np.uint8)

    def _seen(self, agent):
        return np.zeros((200, 200, 3), np.uint8)


class MaskedTeam(Parallel):
    """Choice ``time % 3`` and that of the agent's index are legal, for five steps."""

    in_observation = False

    def observation_space(self, agent):
        seen = spaces.Box(0.0, 10.0, (1,), np.float32)
        if not self.in_observation:
            return seen
        return spaces.Dict({"seen": seen, "action_mask": spaces.MultiBinary(3)})

    def reset(self, seed=None, options=None):
        self._time = 0
        self.agents = list(self.possible_agents)
        return self._seen(), self._infos()

    def step(self, actions):
        for agent, action in actions.items():
            assert self._mask(agent)[action], "an illegal action"
        self._time += 1
        rewards = {agent: float(action) for agent, action in actions.items()}
        is_over = dict.fromkeys(self.agents, self._time == 5)
        none = dict.fromkeys(self.agents, False)
        answer = self._seen(), rewards, none, is_over, self._infos()
        if self._time == 5:
            self.agents = []
        return answer

    def _mask(self, agent):
        mask = np.zeros(3, np.int8)
        mask[[self._time % 3, self.possible_agents.index(agent)]] = 1
        return mask

    def _seen(self):
        seen = np.array([self._time], np.float32)
        if not self.in_observation:
            return dict.fromkeys(self.agents, seen)
        return {
            agent: {"seen": seen, "action_mask": self._mask(agent)}
            for agent in self.agents
        }

    def _infos(self):
        if self.in_observation:
            return {}
        return {agent: {"action_mask": self._mask(agent)} for agent in self.agents}


class Leaving(MaskedTeam):
    """``MaskedTeam``, in which the first agent terminates in the second step."""

    def step(self, actions):
        seen, rewards, ends, cuts, infos = super().step(actions)
        if self._time == 2:
            ends["a"], self.agents = True, ["b"]
        return seen, rewards, ends, cuts, infos


class ThreeMasked(MaskedTeam):
    """``MaskedTeam`` with three agents, as many as ``mpe/simple_spread`` has."""

    possible_agents = ("a", "b", "c")


class ManyNumbers(MaskedTeam):
    """``MaskedTeam`` with observations as large as those of ``smax/``."""

    def observation_space(self, agent):
        return spaces.Box(0.0, 10.0, (64,), np.float32)

    def _seen(self):
        return dict.fromkeys(self.agents, np.full(64, self._time, np.float32))


class MaskedInObservation(MaskedTeam):
    """``MaskedTeam`` with the masks in the observations."""

    in_observation = True


class Stages(Parallel):
    """A base class of games with a shared reward and a global state.

    A subclass defines ``num_stages`` and ``moved``. The state, and the observation of
    each agent, is the one-hot stage.
    """

    num_stages = 1
    num_choices = 2

    @property
    def state_space(self):
        return spaces.Box(0.0, 1.0, (self.num_stages,), np.float32)

    def observation_space(self, agent):
        return spaces.Box(0.0, 1.0, (self.num_stages,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(self.num_choices)

    def moved(self, stage, actions):
        """Returns the next stage, or None at the end, and the reward."""
        raise NotImplementedError

    def state(self):
        return np.eye(self.num_stages, dtype=np.float32)[self._stage]

    def reset(self, seed=None, options=None):
        self._stage = 0
        self.agents = list(self.possible_agents)
        return self._all(self.state()), {}

    def step(self, actions):
        chosen = [int(actions[agent]) for agent in self.agents]
        stage, reward = self.moved(self._stage, chosen)
        is_over = stage is None
        self._stage = self._stage if is_over else stage
        answer = (
            self._all(self.state()),
            self._all(float(reward)),
            self._all(is_over),
            self._all(False),
            {},
        )
        if is_over:
            self.agents = []
        return answer

    def _all(self, value):
        return dict.fromkeys(self.agents, value)


class TwoStep(Stages):
    """The two-step game of Rashid et al. 2018, "QMIX", section 5, with optimum 8."""

    num_stages = 3

    def moved(self, stage, actions):
        if stage == 0:
            return 1 + actions[0], 0.0
        if stage == 1:
            return None, 7.0
        return None, [[0.0, 1.0], [1.0, 8.0]][actions[0]][actions[1]]


class Climbing(Stages):
    """The climbing game of Claus and Boutilier 1998, with optimum 11."""

    num_choices = 3

    def moved(self, stage, actions):
        payoffs = [[11.0, -30.0, 0.0], [-30.0, 7.0, 6.0], [0.0, 0.0, 5.0]]
        return None, payoffs[actions[0]][actions[1]]


class Signals(Parallel):
    """In each of eight steps each agent sees its own random signal and must repeat it.

    The reward is the share of the agents that did so in the step before. So it needs a
    discount, or a target that bootstraps, and a ninth step. An agent observes its
    signal and whether its last answer was right.

    Attributes:
        gust: Half the difference of a disturbance of the reward, which only the global
            state shows. It has a random sign in a step, and the other in the next one.
    """

    gust = 0.0
    num_choices = 2

    def observation_space(self, agent):
        return spaces.Box(0.0, 1.0, (3,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(self.num_choices)

    @property
    def state_space(self):
        return spaces.Box(-1.0, 1.0, (8,), np.float32)

    def state(self):
        seen = np.concatenate([*self._seen().values()])
        return np.array([*seen, self._sign, self._left % 2 * self._sign], np.float32)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self._random = np.random.default_rng(seed)
        self.agents, self._left = list(self.possible_agents), 9
        self._right, self._sign = dict.fromkeys(self.agents, 0.0), 0
        self._show()
        return self._seen(), {}

    def step(self, actions):
        self._left -= 1
        reward = sum(self._right.values()) / len(self._right) + self.gust * self._sign
        self._right = {
            agent: float(actions[agent] == signal)
            for agent, signal in self._signals.items()
        }
        # The first step has no disturbance, and then each pair of steps has two.
        sign = 2 * int(self._random.integers(2)) - 1
        self._sign = -self._sign if self._left % 2 else sign
        self._show()
        is_over = dict.fromkeys(self.agents, self._left == 0)
        rewards = dict.fromkeys(self.agents, float(reward))
        answer = self._seen(), rewards, is_over, dict.fromkeys(self.agents, False), {}
        if self._left == 0:
            self.agents = []
        return answer

    def _show(self):
        self._signals = {
            agent: int(self._random.integers(2)) for agent in self.possible_agents
        }

    def _seen(self):
        return {
            agent: np.array([signal, 1 - signal, self._right[agent]], np.float32)
            for agent, signal in self._signals.items()
        }


class Gusts(Signals):
    """``Signals`` with disturbances that are much larger than the rewards."""

    gust = 40.0


class Duel(Signals):
    """``Signals`` of two teams: the reward is the agent's success minus the other's.

    Action 2 repeats no signal.
    """

    num_choices = 3
    teams: ClassVar = {"a": "red", "b": "blue"}

    def step(self, actions):
        signals = self._signals
        hits = {agent: float(one == signals[agent]) for agent, one in actions.items()}
        seen, _, *ends = super().step(actions)
        total = sum(hits.values())
        return seen, {agent: 2 * hit - total for agent, hit in hits.items()}, *ends


class RockPaperScissors(Stages):
    """The game of two teams, with a single step."""

    num_choices = 3
    teams: ClassVar = {"a": "red", "b": "blue"}

    def moved(self, stage, actions):
        return None, 0.0

    def step(self, actions):
        seen, _, *ends = super().step(actions)
        result = (0.0, 1.0, -1.0)[(int(actions["a"]) - int(actions["b"])) % 3]
        return seen, {"a": result, "b": -result}, *ends
