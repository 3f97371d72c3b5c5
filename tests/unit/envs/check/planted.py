"""Environments with one fault each, and what the checker must say of it.

``Walk`` has none. A fault is a class of it that differs in one method.
"""

from __future__ import annotations

import random
import signal
import threading
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces

Reset = tuple[Any, Any]


class Walk(gymnasium.Env):
    """A walk on nine places from a drawn start; the ends give 1 and -1."""

    num_places = 9
    limit = 30

    def __init__(self):
        self.observation_space = spaces.Box(0.0, 1.0, (3,), np.float32)
        self.action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(self.np_random.integers(2, 7))
        self.colour = self.np_random.random()
        self.num_steps = 0
        return self.seen(), {}

    def step(self, action):
        self.num_steps += 1
        self.place += 1 if action == 1 else -1
        is_out = self.place in (0, self.num_places - 1)
        reward = 0.0 if not is_out else 1.0 if self.place else -1.0
        return self.seen(), reward, is_out, self.num_steps >= self.limit, {}

    def seen(self):
        numbers = self.place / 8, self.colour, self.num_steps / self.limit
        return np.array(numbers, np.float32)


class InMainThread(Walk):
    """Handles a signal, which Python allows in the main thread alone."""

    def __init__(self):
        super().__init__()
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


class HasContexts(Walk):
    """Each observation is drawn anew, as a bandit's contexts are."""

    limit = 5

    def reset(self, *, seed=None, options=None):
        gymnasium.Env.reset(self, seed=seed)
        self.place, self.num_steps = 4, 0
        return self.seen(), {}

    def seen(self):
        return self.np_random.random(3).astype(np.float32)


class HasOneContext(HasContexts):
    limit = 1


class IsOneOfTwoTasks(Walk):
    """A coin decides about an episode, and nothing else is drawn."""

    limit = 200

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.colour = 4, float(self.np_random.integers(2))
        return self.seen(), {}

    def step(self, action):
        self.place = 4
        return super().step(action)


class DrawsLate(Walk):
    """Draws nothing before the 26th step, so that all episodes begin alike."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.colour = 4, 0.5
        return self.seen(), {}

    def step(self, action):
        self.place = 4
        if self.num_steps >= 25:
            self.colour = self.np_random.random()
        return super().step(action)


class ResetsToAnObservation(Walk):
    def reset(self, *, seed=None, options=None):
        return super().reset(seed=seed)[0]


class TakesNoSeed(Walk):
    def reset(self) -> Reset:
        return super().reset()


class GivesFourThings(Walk):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated or truncated, info


class IsNoEnv:
    def reset(self): ...

    def step(self, action): ...


class HasNoSpaces(gymnasium.Env):
    pass


class CannotBeMade(Walk):
    def __init__(self):
        raise OSError("no screen")


class HasAGraphSpace(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Text(5)


class IsOutOfBounds(Walk):
    def seen(self):
        return super().seen() * 8


class HasAnotherShape(Walk):
    def seen(self):
        return super().seen()[:2]


class IsNaN(Walk):
    def seen(self):
        seen = super().seen()
        return seen if self.place != 5 else seen * np.nan


class IsDouble(Walk):
    def seen(self):
        return super().seen().astype(np.float64)


class LosesShares(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(0, 255, (3,), np.uint8)


class LacksAnEntry(Walk):
    def __init__(self):
        super().__init__()
        box = self.observation_space
        self.observation_space = spaces.Dict({"near": box, "far": box})

    def seen(self):
        return {"near": super().seen()}


class HasAnotherEntry(LacksAnEntry):
    def seen(self):
        near = Walk.seen(self)
        return {"near": near, "far": near, "middle": near}


class IsOutOfChoices(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Discrete(8)

    def seen(self):
        return self.place


class RewardsByNone(Walk):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward or None, *rest


class RewardsByAnArray(Walk):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, np.array([reward]), *rest


class RewardsByAString(Walk):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, str(reward), *rest


class RewardsByAHugeInteger(Walk):
    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, 10**400, *rest


class EndsByAString(Walk):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, str(terminated), truncated, info


class IsBeyondFloat32(Walk):
    def __init__(self):
        super().__init__()
        self.observation_space = spaces.Box(-np.inf, np.inf, (3,), np.float64)

    def seen(self):
        return super().seen().astype(np.float64) + 1e300


class IsOneForAll(Walk):
    """One object is returned for every copy."""

    it: ClassVar[Any] = None

    def __new__(cls):
        cls.it = cls.it or super().__new__(cls)
        return cls.it


class RewardsWithoutBound(Walk):
    def step(self, action):
        seen, reward, *rest = super().step(action)
        return seen, reward * 1e39, *rest


class RewardsOfNaN(Walk):
    def step(self, action):
        seen, _, *rest = super().step(action)
        return seen, float("nan"), *rest


class EndsByNumbers(Walk):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, int(terminated), truncated, info


class CutsByNumbers(Walk):
    def step(self, action):
        seen, reward, terminated, truncated, info = super().step(action)
        return seen, reward, terminated, int(truncated), info


class TellsNothing(Walk):
    def step(self, action):
        return *super().step(action)[:4], None


class CannotGoRight(Walk):
    def step(self, action):
        return {0: super().step}[int(action)](action)


class HangsInStep(Walk):
    def step(self, action):
        if self.num_steps == 5:
            threading.Event().wait()
        return super().step(action)


class CannotBeClosed(Walk):
    def close(self):
        raise OSError("the port is gone")


class ClosesOnce(Walk):
    is_closed = False

    def close(self):
        if self.is_closed:
            raise ValueError("closed already")
        self.is_closed = True


class DrawsFromNumpy(Walk):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = int(np.random.randint(2, 7))
        self.colour = np.random.random()
        return self.seen(), {}


class DrawsFromNowhere(Walk):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.colour = random.SystemRandom().random()
        return self.seen(), {}


class Remembers(Walk):
    """What came before the seed shows after it."""

    num_resets = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.num_resets += 1
        self.colour = 1 / self.num_resets
        return self.seen(), {}


class DrawsNothing(Walk):
    def reset(self, *, seed=None, options=None):
        super().reset(seed=0)
        self.place, self.colour = 4, 0.5
        return self.seen(), {}


class BeginsAlike(Walk):
    """A reset without a seed begins the episode of the last seed again."""

    last = 0

    def reset(self, *, seed=None, options=None):
        self.last = self.last if seed is None else seed
        return super().reset(seed=self.last)


class ResetsInStep(Walk):
    def step(self, action):
        answer = super().step(action)
        if answer[2] or answer[3]:
            return self.reset()[0], *answer[1:]
        return answer


class ResetsInStepToOneStart(ResetsInStep):
    """It might as well come home at the end of each episode."""

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.colour = 4, 0.5
        return self.seen(), {}

    def step(self, action):
        if self.num_steps == 0:
            self.colour = self.np_random.random()
        return super().step(action)


class TellsOfAFinalState(ResetsInStep):
    def step(self, action):
        final = Walk.step(self, action)
        if final[2] or final[3]:
            return self.reset()[0], *final[1:4], {"final_observation": final[0]}
        return final


class TerminatesAtItsLimit(Walk):
    def step(self, action):
        self.place = 4
        seen, reward, _, truncated, info = super().step(action)
        return seen, reward, truncated, False, info


class NeverEnds(Walk):
    def step(self, action):
        self.place = 4
        self.num_steps = 0
        return *super().step(action)[:2], False, False, {}


class HasBoundlessActions(Walk):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-np.inf, np.inf, (1,), np.float32)

    def step(self, action):
        return super().step(int(action[0] > 0))


class RefusesItsBounds(Walk):
    def __init__(self):
        super().__init__()
        self.action_space = spaces.Box(-1.0, 1.0, (1,), np.float32)

    def step(self, action):
        if abs(action[0]) >= 1:
            raise ValueError("too far")
        return super().step(int(action[0] > 0))


class SharesItsPlace(Walk):
    """Copies beside each other walk in one place, which the class keeps."""

    places: ClassVar[list[int]] = [4]

    @property
    def place(self):
        return self.places[0]

    @place.setter
    def place(self, value):
        self.places[0] = value


class Leaks(Walk):
    kept: ClassVar[list[Any]] = []

    def step(self, action):
        self.kept.append(np.ones(12_000))
        return super().step(action)


ALIKE_BY_CHANCE = (HasContexts, HasOneContext, IsOneOfTwoTasks, DrawsLate)
"""What has no fault, although draws of it that are independent may look alike."""

BROKEN: dict[type, tuple[str, str]] = {
    ResetsToAnObservation: ("reset.pair", "must return (observation, info)"),
    TakesNoSeed: ("reset.raises", "declare def reset(self, *, seed=None"),
    GivesFourThings: ("step.five", "(returned 4 values) must return five things"),
    IsNoEnv: ("make", "must be a gymnasium.Env"),
    HasNoSpaces: ("spaces", "observation_space (None) must be a gymnasium.Space"),
    CannotBeMade: ("make", "raised OSError: no screen"),
    HasAGraphSpace: ("spaces", "must be a Box, Discrete, MultiDiscrete"),
    IsOutOfBounds: ("observation.bounds", "bounds of its space, 0.0 to 1.0"),
    HasAnotherShape: ("observation.shape", "observation (shape (2,)) must have the"),
    IsNaN: ("observation.finite", "observation (nan) must be finite at episode"),
    LosesShares: ("observation.dtype", "must have its space's type, uint8"),
    LacksAnEntry: ("observation.parts", "must have an entry 'far'"),
    HasAnotherEntry: ("observation.parts", "must have the 2 entries of its space"),
    IsOutOfChoices: ("observation.bounds", "observation (8) must be in the bounds"),
    RewardsByNone: ("step.reward", "reward (NoneType None) must be a number"),
    RewardsByAnArray: ("step.reward", "must be a number at episode 1, step 1"),
    RewardsByAString: ("step.reward", "reward (str 0.0) must be a number at"),
    RewardsByAHugeInteger: ("step.reward", "must be at most 3.4e+38 at episode"),
    EndsByAString: ("step.terminated", "terminated (str False) must be a bool"),
    IsBeyondFloat32: ("observation.finite", "must be at most 3.4e+38 of reset"),
    IsOneForAll: ("copies.raises", "must be a new one for each copy"),
    RewardsWithoutBound: ("step.reward", "must be at most 3.4e+38 at episode"),
    EndsByNumbers: ("step.terminated", "terminated (int 0) must be a bool"),
    CutsByNumbers: ("step.truncated", "truncated (int 0) must be a bool"),
    TellsNothing: ("info", "info of step (NoneType None) must be a dict"),
    CannotGoRight: ("step.raises", "(KeyError: 1) must not raise at episode 1, step 2"),
    RefusesItsBounds: ("step.raises", "(ValueError: too far) must not raise at"),
    HangsInStep: ("hangs", "still runs after"),
    CannotBeClosed: ("close", "close() (OSError: the port is gone) must not raise"),
    ClosesOnce: ("close", "a second close() (ValueError: closed already)"),
    DrawsFromNumpy: ("seed.same", "streams of numpy.random or random"),
    DrawsFromNowhere: ("seed.same", "draw from self.np_random, after super().reset"),
    Remembers: ("seed.again", "must forget all that was before"),
    ResetsInStep: ("step.final", "that of the next reset, in each of 10 episodes"),
    TellsOfAFinalState: ("step.final", "info of step (has final_observation)"),
    SharesItsPlace: ("copies.apart", "must share nothing with the other copies"),
}
"""What breaks the contract: the rule, and words of its line."""

DOUBTFUL: dict[type, tuple[str, str]] = {
    IsDouble: ("observation.type", "(float64) should have its space's type, float32"),
    DrawsNothing: ("seed.others", "11 seeds gave one trajectory"),
    BeginsAlike: ("seed.next", "began the same episode 20 times"),
    ResetsInStepToOneStart: ("step.final", "that of the next reset"),
    TerminatesAtItsLimit: ("episodes.truncated", "True after 30 steps in each of"),
    NeverEnds: ("episodes.limit", "should end by itself some time"),
    HasBoundlessActions: ("spaces.actions", "should have finite bounds"),
    Leaks: ("cost.memory", "MiB more in"),
}
"""What may be meant, and is warned of."""
