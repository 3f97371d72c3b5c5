"""Atari games in the Arcade Learning Environment's vector environment: ``atari/Pong``.

An observation is one grayscale screen, ``[1, 84, 84]`` uint8, the pixelwise maximum of
the last two frames. The network stacks earlier screens (``net.num_frames``), so each
screen is sent and stored only once. ``atari/Pong`` uses the protocol ``v5``. The tasks
``atari/Pong/classic`` and ``atari/Pong/r2d2`` use the protocols ``classic`` and
``r2d2``; see `tengen.envs.suites.ale`.

The package ``ale_py`` has the GPL license. Users install it; it is not part of tengen.

Source: Bellemare et al. 2013, "The Arcade Learning Environment".
Differs from the paper: see `tengen.envs.suites.ale`. If an episode is truncated after
108,000 frames, its final screen is that of the previous step, because the package does
not return the screen at the truncation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import RAISED, ActionRange, raised
from tengen.envs.env import Arrays, GroupEnv, Step
from tengen.envs.filmed import Camera, FilmedEnv, Picture
from tengen.envs.suites.ale import (
    FRAME_SKIP,
    PREFIX,
    SIDE,
    Episodes,
    games,
    grey_env,
    parts_of,
    seeds_of,
    spec_of,
    vector_env,
)
from tengen.envs.suites.suite import Suite
from tengen.errors import EnvError, RunError, UsageError

_FILM_HEIGHT, _FILM_WIDTH = 210, 160
_FRAMES_PER_S = 60.0


class AtariEnv:
    """Copies of one Atari game, stepped by a thread of ``ale_py`` without the GIL.

    Args:
        name: The task, such as ``atari/Pong`` or ``atari/Pong/classic``.
        num_envs: Number of copies, at least 1.
        seed: Seed of the copies, at least 0; see ``copy_seeds``.

    Attributes:
        spec: The game's spec.
        num_envs: Number N of copies.
        seeds: ``[N]`` int64, the seeds of the copies.

    Raises:
        UsageError: A ROM or Gymnasium is missing, or an argument is out of range.
    """

    def __init__(self, name: str, num_envs: int, seed: int) -> None:
        self.seeds = seeds_of(seed, num_envs)
        self._envs = grey_env(name, num_envs)
        self.num_envs = num_envs
        self.spec = spec_of(name, self._envs)
        self._range = ActionRange(self.spec.actions, name)
        self._episodes = Episodes(name, num_envs)

    def reset(self) -> Arrays:
        """Restarts all copies from the seed; see ``Env.reset``.

        Raises:
            EnvError: ``ale_py`` raised.
        """
        try:
            screens, info = self._envs.reset(seed=self.seeds)
        except RAISED as error:
            raise raised(self.spec.name, error, "a reset of all copies") from error
        self._episodes.begin(info)
        return {"observation": screens}

    def step(self, actions: NDArray[Any]) -> Step:
        """Steps every copy; see ``Env.step``.

        Raises:
            EnvError: ``ale_py`` raised.
            RunError: An action is out of range, which would make ``ale_py`` hang.
        """
        self._range.check(actions, self.num_envs)
        try:
            result = self._envs.step(actions.astype(np.int32))
        except RAISED as error:
            raise raised(self.spec.name, error, "a step of all copies") from error
        return self._episodes.step(*result)

    def observed(self, observation: Any) -> Arrays:
        """Converts an emulator screen to arrays; see ``Env.observed``.

        Args:
            observation: One screen ``[84, 84]`` uint8, or several ``[K, 84, 84]``, the
                newest last.

        Raises:
            UsageError: The observation has the wrong shape or dtype.
        """
        screens = np.asarray(observation)
        if screens.dtype != np.uint8 or screens.shape[-2:] != (SIDE, SIDE):
            raise UsageError(
                f"observation ({screens.dtype} {screens.shape}) of {self.spec.name} "
                f"must be uint8 ({SIDE}, {SIDE}), a grey screen; see "
                f"gymnasium.wrappers.AtariPreprocessing"
            )
        return {"observation": screens.reshape(-1, 1, SIDE, SIDE)[-1:]}

    def own_action(self, action: NDArray[Any]) -> int:
        """Converts an action to an int; see ``Env.own_action``."""
        self._range.check(action[None], 1)
        return int(action)

    def close(self) -> None:
        """Releases the copies' emulators; see ``Env.close``."""
        self._envs.close()


class _ColourCamera(Camera):
    """A camera that replays the first copies of a game in colour, 160 x 210 pixels.

    The seeds, protocol and actions are those of the stepped copies, so that the games
    are the same. ``step`` checks that their rewards and episode ends are equal.

    Args:
        env: The copies whose first ``num_filmed`` are filmed.
        num_filmed: Number of copies to film.
    """

    pictures_per_s = _FRAMES_PER_S / FRAME_SKIP

    def __init__(self, env: AtariEnv, num_filmed: int) -> None:
        self._name = env.spec.name
        self._seeds = env.seeds[:num_filmed]
        self._envs = vector_env(
            self._name,
            num_filmed,
            img_height=_FILM_HEIGHT,
            img_width=_FILM_WIDTH,
            grayscale=False,
        )
        self.native = self
        self._screens: NDArray[np.uint8] | None = None

    def reset(self, observation: Arrays) -> None:
        self._screens, _ = self._envs.reset(seed=self._seeds)

    def step(self, actions: NDArray[Any], step: Step) -> None:
        """Repeats the step of the filmed copies in colour.

        Raises:
            RunError: A reward or an end of an episode differs from that in ``step``.
        """
        num_filmed = len(self._seeds)
        taken = actions[:num_filmed].astype(np.int32)
        self._screens, reward, terminated, truncated, _ = self._envs.step(taken)
        for mine, theirs in (
            (reward, step.reward),
            (terminated, step.terminated),
            (truncated, step.truncated),
        ):
            if (mine != theirs[:num_filmed]).any():
                raise RunError(
                    f"film ({self._name}) differs from the evaluated episodes in "
                    "rewards or ends; report this bug"
                )

    def picture(self, copy: int) -> Picture:
        assert self._screens is not None, "reset comes first"
        picture: Picture = self._screens[copy, -1].copy()
        return picture

    def get_action_meanings(self) -> list[str]:
        return [action.name for action in self._envs.ale.get_action_set()]

    def close(self) -> None:
        self._envs.close()


class _Both:
    """Two groups of copies in an ``AtariVectorEnv``, stepped in turn by one thread.

    ``AtariVectorEnv`` steps half of its copies at a time. It returns the group whose
    actions it received first, and takes actions for the group that it returned last.
    With one thread, copies finish in the order in which they got actions, so the groups
    never mix; ``_received`` checks this.
    """

    def __init__(self, name: str, num_envs: int, seeds: Sequence[int]) -> None:
        self.name = name
        self.num_envs = num_envs
        self._seeds = np.concatenate([seeds_of(seed, num_envs) for seed in seeds])
        self._envs = grey_env(name, 2 * num_envs, batch_size=num_envs)
        self._ids = [np.arange(num_envs) + place * num_envs for place in range(2)]
        self.spec = spec_of(name, self._envs)
        self.range = ActionRange(self.spec.actions, name)
        # Index of the group that was received and waits for actions, or None.
        self._turn_of: int | None = None
        self._next = 0

    def receive_first(self, place: int) -> Any:
        self._check(place, is_sending=False)
        if place == 0:
            result = self._call(lambda: self._envs.reset(seed=self._seeds))
        else:
            result = self._receive()
        return self._received(place, result)

    def receive(self, place: int) -> Any:
        self._check(place, is_sending=False)
        return self._received(place, self._receive())

    def send(self, place: int, actions: NDArray[np.int32]) -> None:
        self._check(place, is_sending=True)
        self._call(lambda: self._envs.send(actions))
        self._turn_of = None

    def close(self) -> None:
        self._envs.close()

    def _receive(self) -> Any:
        return self._call(self._envs.recv)

    def _received(self, place: int, result: Any) -> Any:
        if not np.array_equal(result[-1]["env_id"], self._ids[place]):
            raise EnvError(
                f"copies ({result[-1]['env_id'].tolist()}) of {self.name} returned in "
                "the wrong order; set agent.actor.num_groups=1, and report this bug"
            )
        self._turn_of, self._next = place, 1 - place
        return result

    def _check(self, place: int, *, is_sending: bool) -> None:
        fits = self._turn_of == place if is_sending else self._turn_of is None
        if not fits or (not is_sending and place != self._next):
            raise RunError(
                f"group ({place}) of {self.name} must alternate between receive and "
                "send, one group after the other; correct the caller"
            )

    def _call(self, what: Any) -> Any:
        try:
            return what()
        except RAISED as error:
            raise raised(self.name, error, "a step of a group") from error


class _AtariGroup:
    """One of two groups of copies of an Atari game; see ``GroupEnv``."""

    def __init__(self, both: _Both, place: int) -> None:
        self._both = both
        self._place = place
        self.spec = both.spec
        self.num_envs = both.num_envs
        self._episodes = Episodes(both.name, both.num_envs)

    def receive_first(self) -> Arrays:
        result = self._both.receive_first(self._place)
        self._episodes.begin(result[-1])
        return {"observation": result[0]}

    def send(self, actions: NDArray[Any]) -> None:
        self._both.range.check(actions, self.num_envs)
        self._both.send(self._place, actions.astype(np.int32))

    def receive(self) -> Step:
        return self._episodes.step(*self._both.receive(self._place))

    def close(self) -> None:
        self._both.close()


class _Atari(Suite):
    def known(self) -> Iterable[str]:
        return sorted(games())

    def make(self, name: str, num_envs: int, seed: int) -> AtariEnv:
        self._check(name)
        return AtariEnv(name, num_envs, seed)

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        env = self.make(name, num_envs, seed)
        return FilmedEnv(env, _ColourCamera(env, num_filmed))

    def with_protocol(self, name: str, protocol: str) -> str:
        game, _ = parts_of(name)
        task = f"{PREFIX}{game}/{protocol}"
        parts_of(task)
        return task

    def make_groups(
        self, name: str, num_envs: int, seeds: Sequence[int]
    ) -> list[GroupEnv]:
        self._check(name)
        both = _Both(name, num_envs, seeds)
        return [_AtariGroup(both, place) for place in range(2)]

    def _check(self, name: str) -> None:
        self.check_installed(name)
        game, _ = parts_of(name)
        self.check_known(name, game in games(), games())


SUITE = _Atari(prefix=PREFIX, package="ale_py")
"""The suite of the tasks ``atari/*``."""
