"""Atari games on the Arcade Learning Environment's own vector form: ``atari/Pong``.

An observation is one grey screen, ``[1, 84, 84]`` uint8, the pixelwise maximum of the
last two frames. Earlier screens are stacked by the network (``net.num_frames``), so
that each screen is sent and stored once. ``atari/Pong`` is played by the protocol
``v5``, ``atari/Pong/classic`` and ``atari/Pong/r2d2`` by these protocols
(`tengen.envs.suites.atari_protocols`).

The package is licensed under the GPL; the user installs it, and no part of it is here.

Source: Bellemare et al. 2013, "The Arcade Learning Environment".
Differs from it: see `tengen.envs.suites.atari_protocols`. An episode that is cut after
108,000 frames ends with the screen of the step before the cut, because the package
gives no screen of the cut.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.envs.copies import (
    MOST_WORDS,
    RAISED,
    ActionRange,
    copy_seeds,
    one_line,
    raised,
)
from tengen.envs.env import ActionSpec, Arrays, EnvSpec, Step
from tengen.envs.gymnasium_env import import_gymnasium
from tengen.envs.suites.atari_protocols import PROTOCOLS, Protocol
from tengen.envs.suites.packaged import missing
from tengen.errors import UsageError, did_you_mean
from tengen.tensors import TensorSpec

__all__ = [
    "FRAME_SKIP",
    "AtariEnv",
    "Episodes",
    "grey_env",
    "make",
    "names",
    "protocol_of",
    "rom_of",
    "seeds_of",
    "spec_of",
    "vector_env",
    "with_protocol",
]

FRAME_SKIP = 4
"""Emulator frames in one step."""
_PREFIX = "atari/"
_MAX_FRAMES = 108_000
_SIDE = 84


def names() -> list[str]:
    """Returns the games, with their prefix; none where ALE is not installed."""
    if importlib.util.find_spec("ale_py") is None:
        return []
    return [_PREFIX + game for game in sorted(_games())]


def make(name: str, num_envs: int, seed: int) -> AtariEnv:
    """Returns copies of a game; see ``tengen.envs.make``.

    Raises:
        UsageError: The game or the protocol is unknown, or ALE is not installed.
    """
    return AtariEnv(name, num_envs, seed)


def with_protocol(name: str, protocol: str) -> str:
    """Returns the task that is the same game by another protocol.

    Args:
        name: ``atari/Pong``, or ``atari/Pong/classic``.
        protocol: A name of ``PROTOCOLS``.

    Raises:
        UsageError: The protocol is unknown.
    """
    game, _ = _parts(name)
    task = f"{_PREFIX}{game}/{protocol}"
    _parts(task)
    return task


def rom_of(name: str) -> str:
    """Returns ALE's name of a task's game, ``ms_pacman``.

    Raises:
        UsageError: It is unknown, or ALE is not installed.
    """
    if importlib.util.find_spec("ale_py") is None:
        raise missing(name, "ale_py", "atari")
    game, _ = _parts(name)
    known = _games()
    if game not in known:
        raise UsageError(
            f'environment ("{name}") is not a game of Atari; '
            f"{did_you_mean(_PREFIX + game, [_PREFIX + one for one in known])}"
        )
    return known[game]


def protocol_of(name: str) -> Protocol:
    """Returns how a task's game is played.

    Raises:
        UsageError: The protocol is unknown.
    """
    return _parts(name)[1]


def vector_env(rom: str, num_envs: int, protocol: Protocol, **options: Any) -> Any:
    """Returns copies of a game as the package's ``AtariVectorEnv``.

    The copies play the same whatever the form of their screens.

    Args:
        rom: ALE's name of the game.
        num_envs: Number of copies.
        protocol: How the game is played.
        options: Further options of the package, for the screens and for how many copies
            step together.

    Raises:
        UsageError: Gymnasium, which the package needs, is not installed.
    """
    import_gymnasium()
    import ale_py
    from ale_py.vector_env import AtariVectorEnv

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    # Reward clipping, pressing fire and the end of a life are set explicitly or done
    # here: the package's switches are on by default, and its end of a life restarts the
    # whole game.
    return AtariVectorEnv(
        rom,
        num_envs,
        num_threads=1,
        max_num_frames_per_episode=_MAX_FRAMES,
        repeat_action_probability=protocol.sticky,
        full_action_space=protocol.all_actions,
        stack_num=1,
        frameskip=FRAME_SKIP,
        noop_max=protocol.max_noops,
        use_fire_reset=protocol.presses_fire,
        episodic_life=False,
        life_loss_info=False,
        reward_clipping=False,
        **options,
    )


def seeds_of(seed: int, num_envs: int) -> NDArray[np.int64]:
    """Returns the seeds of copies, ``[N]`` int64, as the emulator takes them.

    Raises:
        UsageError: A number is out of its range.
    """
    return np.array(copy_seeds(seed, num_envs), np.int64)


def grey_env(name: str, num_envs: int, **options: Any) -> Any:
    """Returns the copies of a task with the grey screens that an agent sees.

    Args:
        name: ``atari/Pong``, ``atari/Pong/classic``.
        num_envs: Copies.
        options: As for ``vector_env``.

    Raises:
        UsageError: The task is unknown, ALE is not installed, or a ROM is missing.
    """
    rom, protocol = rom_of(name), protocol_of(name)
    side = {"img_height": _SIDE, "img_width": _SIDE}
    try:
        return vector_env(rom, num_envs, protocol, **side, **options)
    except OSError as error:
        raise UsageError(
            f'environment ("{name}") has no ROM that can be used: '
            f"{one_line(error, MOST_WORDS)}; "
            f"{pip_install('--force-reinstall', 'ale-py==0.12.1')}, and unset "
            f"ALE_ROMS_DIR"
        ) from error


def spec_of(name: str, envs: Any) -> EnvSpec:
    """Returns the spec of a task.

    Args:
        name: The task.
        envs: The task's copies, as the package's object.
    """
    protocol = protocol_of(name)
    return EnvSpec(
        name=name,
        observations={
            "observation": TensorSpec(dtype="uint8", shape=(1, _SIDE, _SIDE))
        },
        actions=ActionSpec(num_choices=(len(envs.ale.get_action_set()),)),
        max_episode_steps=_MAX_FRAMES // FRAME_SKIP,
        reward_threshold=None,
        protocol=protocol.name,
        reward_bound=protocol.reward_bound,
        frames_per_step=FRAME_SKIP,
    )


class Episodes:
    """Tracks what the package does not report: which copies were reset, lives lost.

    Args:
        protocol: How the game is played.
        num_envs: Copies N.
    """

    def __init__(self, protocol: Protocol, num_envs: int) -> None:
        self._protocol = protocol
        self._num_envs = num_envs
        self._is_over = np.zeros(num_envs, np.bool_)
        self._lives = np.zeros(num_envs, np.int32)

    def begin(self, info: dict[str, Any]) -> None:
        """Takes the package's information about a reset of all copies."""
        self._lives = info["lives"]
        self._is_over = np.zeros(self._num_envs, np.bool_)

    def step(
        self,
        screens: NDArray[np.uint8],
        reward: NDArray[np.int32],
        terminated: NDArray[np.bool_],
        truncated: NDArray[np.bool_],
        info: dict[str, Any],
    ) -> Step:
        """Returns a ``Step`` from the package's results."""
        is_reset, self._is_over = self._is_over, terminated | truncated
        lives, self._lives = self._lives, info["lives"]
        life_lost = None
        if self._protocol.ends_with_life:
            life_lost = (self._lives < lives) & ~is_reset
        return Step(
            {"observation": screens},
            reward.astype(np.float32),
            terminated,
            truncated,
            is_reset,
            life_lost,
        )


class AtariEnv:
    """Copies of one game, stepped by a thread of the package without Python's lock.

    Args:
        name: ``atari/Pong``, ``atari/Pong/classic``.
        num_envs: Copies, at least 1.
        seed: At least 0. Copies have streams of their own, which no other seed shares.

    Attributes:
        spec: The game's spec.
        num_envs: Number N of copies.
        seeds: ``[N]`` int64, the seeds of the copies.

    Raises:
        UsageError: The game or the protocol is unknown, ALE is not installed, a ROM is
            missing, or a number is out of its range.
    """

    def __init__(self, name: str, num_envs: int, seed: int) -> None:
        self.seeds = seeds_of(seed, num_envs)
        self._envs = grey_env(name, num_envs)
        self.num_envs = num_envs
        self.spec = spec_of(name, self._envs)
        self._range = ActionRange(self.spec.actions, name)
        self._episodes = Episodes(protocol_of(name), num_envs)

    def reset(self) -> Arrays:
        """Begins all episodes anew from the seed; see ``Env.reset``.

        Raises:
            EnvError: The package raised.
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
            EnvError: The package raised.
            RunError: An action is out of range, by which the package would hang.
        """
        self._range.check(actions, self.num_envs)
        try:
            result = self._envs.step(actions.astype(np.int32))
        except RAISED as error:
            raise raised(self.spec.name, error, "a step of all copies") from error
        return self._episodes.step(*result)

    def observed(self, observation: Any) -> Arrays:
        """Returns a screen as arrays; see ``Env.observed``.

        Args:
            observation: ``[84, 84]`` uint8, or ``[K, 84, 84]``, of which the last is
                the newest.

        Raises:
            UsageError: The observation is no such screen.
        """
        screens = np.asarray(observation)
        if screens.dtype != np.uint8 or screens.shape[-2:] != (_SIDE, _SIDE):
            raise UsageError(
                f"observation ({screens.dtype} {screens.shape}) of {self.spec.name} "
                f"must be uint8 ({_SIDE}, {_SIDE}), a grey screen; see "
                f"gymnasium.wrappers.AtariPreprocessing"
            )
        return {"observation": screens.reshape(-1, 1, _SIDE, _SIDE)[-1:]}

    def own_action(self, action: NDArray[Any]) -> int:
        """Returns the number of an action; see ``Env.own_action``."""
        self._range.check(action[None], 1)
        return int(action)

    def close(self) -> None:
        """Releases the emulators; see ``Env.close``."""
        self._envs.close()


def _parts(name: str) -> tuple[str, Protocol]:
    """Returns a task's game and protocol.

    Raises:
        UsageError: The protocol is unknown.
    """
    game, _, protocol = name.removeprefix(_PREFIX).partition("/")
    if not protocol:
        return game, next(iter(PROTOCOLS.values()))
    if protocol not in PROTOCOLS:
        known = [f"{_PREFIX}{game}/{one}" for one in PROTOCOLS]
        raise UsageError(
            f'environment ("{name}") has a protocol that is unknown; '
            f"{did_you_mean(name, known)}"
        )
    return game, PROTOCOLS[protocol]


def _games() -> dict[str, str]:
    """Returns ALE's names of the games by their names in Gymnasium."""
    from ale_py import roms

    return {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}
