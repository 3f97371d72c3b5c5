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


# What a step answers, part by part.
_PARTS = ("seen", "reward", "terminated", "truncated", "info")


def step_with(**changes):
    """Returns a ``step`` whose parts are changed by functions of them."""

    def step(self, action):
        named = zip(_PARTS, Walk.step(self, action), strict=True)
        return tuple(changes.get(name, lambda part: part)(part) for name, part in named)

    return step


def has(space=None, action_space=None):
    """Returns an ``__init__`` with other spaces."""

    def init(self):
        Walk.__init__(self)
        self.observation_space = space or self.observation_space
        self.action_space = action_space or self.action_space

    return init


def sees(change):
    """Returns a ``seen`` with a changed observation."""
    return lambda self: change(Walk.seen(self))


def colours(draw):
    """Returns a ``reset`` that sets the colour, from the environment itself."""

    def reset(self, *, seed=None, options=None):
        Walk.reset(self, seed=seed)
        self.colour = draw(self)
        return self.seen(), {}

    return reset


def raises(error):
    def method(self, *_):
        raise error

    return method


class TakesNoSeed(Walk):
    def reset(self):
        return super().reset()


class IsNoEnv:
    def reset(self): ...

    def step(self, action): ...


class HasNoSpaces(gymnasium.Env):
    pass


class IsNaN(Walk):
    def seen(self):
        seen = super().seen()
        return seen if self.place != 5 else seen * np.nan


BOX = spaces.Box(0.0, 1.0, (3,), np.float32)
NEAR_AND_FAR = spaces.Dict({"near": BOX, "far": BOX})


class IsOneForAll(Walk):
    """One object is returned for every copy."""

    it: ClassVar[Any] = None

    def __new__(cls):
        cls.it = cls.it or super().__new__(cls)
        return cls.it


class HangsInStep(Walk):
    def step(self, action):
        if self.num_steps == 5:
            threading.Event().wait()
        return super().step(action)


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


class Remembers(Walk):
    """What came before the seed shows after it."""

    num_resets = 0

    def reset(self, *, seed=None, options=None):
        self.num_resets += 1
        return colours(lambda self: 1 / self.num_resets)(self, seed=seed)


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
        self.place, self.num_steps = 4, 0
        return *super().step(action)[:2], False, False, {}


class HasBoundlessActions(Walk):
    __init__ = has(action_space=spaces.Box(-np.inf, np.inf, (1,), np.float32))

    def step(self, action):
        return super().step(int(action[0] > 0))


class RefusesItsBounds(HasBoundlessActions):
    __init__ = has(action_space=spaces.Box(-1.0, 1.0, (1,), np.float32))

    def step(self, action):
        if abs(action[0]) >= 1:
            raise ValueError("too far")
        return super().step(action)


class SharesItsPlace(Walk):
    """Copies beside each other walk in one place, which the class keeps."""

    places: ClassVar[list[int]] = [4]
    place = property(
        lambda self: self.places[0],
        lambda self, value: self.places.__setitem__(0, value),
    )


class Leaks(Walk):
    kept: ClassVar[list[Any]] = []

    def step(self, action):
        self.kept.append(np.ones(12_000))
        return super().step(action)


ALIKE_BY_CHANCE = (HasContexts, HasOneContext, IsOneOfTwoTasks, DrawsLate)
"""What has no fault, although draws of it that are independent may look alike."""


def walk(name, **members):
    return type(name, (Walk,), {"__module__": __name__, **members})


BROKEN: dict[type, tuple[str, str]] = {
    walk(
        "ResetsToAnObservation", reset=lambda self, **how: Walk.reset(self, **how)[0]
    ): ("reset.pair", "must return (observation, info)"),
    TakesNoSeed: ("reset.raises", "declare def reset(self, *, seed=None"),
    walk("GivesFourThings", step=lambda self, action: Walk.step(self, action)[:4]): (
        "step.five",
        "(returned 4 values) must return five values",
    ),
    IsNoEnv: ("make", "must be a gymnasium.Env"),
    HasNoSpaces: ("spaces", "observation_space (None) must be a gymnasium.Space"),
    walk("CannotBeMade", __init__=raises(OSError("no screen"))): (
        "make",
        "raised OSError: no screen",
    ),
    walk("HasATextSpace", __init__=has(spaces.Text(5))): (
        "spaces",
        "must be a Box, Discrete, MultiDiscrete",
    ),
    walk("IsOutOfBounds", seen=sees(lambda seen: seen * 8)): (
        "observation.bounds",
        "within its space's bounds, 0.0 to 1.0",
    ),
    walk("HasAnotherShape", seen=sees(lambda seen: seen[:2])): (
        "observation.shape",
        "observation (shape (2,)) must have the",
    ),
    IsNaN: ("observation.finite", "observation (nan) must be finite at episode"),
    walk("LosesShares", __init__=has(spaces.Box(0, 255, (3,), np.uint8))): (
        "observation.dtype",
        "must have its space's dtype, uint8",
    ),
    walk(
        "LacksAnEntry",
        __init__=has(NEAR_AND_FAR),
        seen=sees(lambda seen: {"near": seen}),
    ): ("observation.parts", "must have the entry 'far'"),
    walk(
        "HasAnotherEntry",
        __init__=has(NEAR_AND_FAR),
        seen=sees(lambda seen: dict.fromkeys(("near", "far", "middle"), seen)),
    ): ("observation.parts", "must have only the 2 entries of its space"),
    walk(
        "IsOutOfChoices",
        __init__=has(spaces.Discrete(8)),
        seen=lambda self: self.place,
    ): ("observation.bounds", "observation (8) must be within its space's bounds"),
    walk(
        "IsBeyondFloat32",
        __init__=has(spaces.Box(-np.inf, np.inf, (3,), np.float64)),
        seen=sees(lambda seen: seen.astype(np.float64) + 1e300),
    ): ("observation.finite", "must be at most 3.4e+38 of reset"),
    IsOneForAll: ("copies.raises", "must be a new object for each copy"),
    **{
        walk(name, step=step_with(**{part: change})): (f"step.{part}", words)
        for name, part, change, words in (
            ("RewardsByNone", "reward", lambda r: r or None, "(NoneType None) must be"),
            ("RewardsByAnArray", "reward", lambda r: np.array([r]), "a number at epis"),
            ("RewardsByAString", "reward", str, "reward (str 0.0) must be a number"),
            ("RewardsByAHugeInteger", "reward", lambda r: 10**400, "at most 3.4e+38"),
            ("RewardsOfNaN", "reward", lambda r: r * np.nan, "must be finite at"),
            ("RewardsWithoutBound", "reward", lambda r: r * 1e39, "at most 3.4e+38 at"),
            ("EndsByAString", "terminated", str, "terminated (str False) must be a"),
            ("EndsByNumbers", "terminated", int, "terminated (int 0) must be a bool"),
            ("CutsByNumbers", "truncated", int, "truncated (int 0) must be a bool"),
        )
    },
    walk("TellsNothing", step=step_with(info=lambda _: None)): (
        "info",
        "info of step (NoneType None) must be a dict",
    ),
    walk(
        "CannotGoRight",
        step=lambda self, action: {0: Walk.step}[int(action)](self, action),
    ): ("step.raises", "(KeyError: 1) must not raise at episode 1, step 2"),
    RefusesItsBounds: ("step.raises", "(ValueError: too far) must not raise at"),
    HangsInStep: ("hangs", "still runs after"),
    walk("CannotBeClosed", close=raises(OSError("the port is gone"))): (
        "close",
        "close() (OSError: the port is gone) must not raise",
    ),
    ClosesOnce: ("close", "a second close() (ValueError: closed already)"),
    DrawsFromNumpy: ("seed.same", "global generator of numpy.random or random"),
    walk("DrawsFromNowhere", reset=colours(lambda _: random.SystemRandom().random())): (
        "seed.same",
        "draw only from self.np_random, after super().reset",
    ),
    Remembers: ("seed.again", "must not depend on earlier episodes"),
    ResetsInStep: ("step.final", "that of the next reset, in each of 10 episodes"),
    TellsOfAFinalState: ("step.final", "info of step (has final_observation)"),
    SharesItsPlace: ("copies.apart", "must share no state with other copies"),
}
"""What breaks the contract: the rule, and words of its line."""

DOUBTFUL: dict[type, tuple[str, str]] = {
    walk("IsDouble", seen=sees(lambda seen: seen.astype(np.float64))): (
        "observation.type",
        "(float64) should have its space's dtype, float32",
    ),
    DrawsNothing: ("seed.others", "11 seeds gave the same trajectory"),
    BeginsAlike: ("seed.next", "began the same episode 20 times"),
    ResetsInStepToOneStart: ("step.final", "that of the next reset"),
    TerminatesAtItsLimit: ("episodes.truncated", "True after 30 steps in each of"),
    NeverEnds: ("episodes.limit", "should end eventually"),
    HasBoundlessActions: ("spaces.actions", "should have finite bounds"),
    Leaks: ("cost.memory", "MiB in"),
}
"""What may be meant, and is warned of."""

globals().update({kind.__name__: kind for kind in (*BROKEN, *DOUBTFUL)})
