"""The Arcade Learning Environment: protocols of Atari games, and its vector form.

All protocols have a frame skip of 4 with the maximum of the last two frames, grey
screens of 84 x 84, and episodes of at most 108,000 emulator frames. A step is four
emulator frames; a step that only resets has none. ``tengen train --frames`` counts
steps.

Source: `v5` Machado et al. 2018, "Revisiting the Arcade Learning Environment"
(arXiv:1709.06009), sections 5 and 6; `r2d2` Kapturowski et al. 2019, "Recurrent
Experience Replay in Distributed Reinforcement Learning", appendix; `classic` Mnih et
al. 2015, "Human-level control through deep reinforcement learning", methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.distribution import pip_install
from tengen.envs.copies import MOST_WORDS, copy_seeds, one_line
from tengen.envs.env import ActionSpec, EnvSpec, Step
from tengen.envs.gymnasium_env import import_gymnasium
from tengen.errors import UsageError, did_you_mean
from tengen.tensors import TensorSpec

__all__ = [
    "FRAME_SKIP",
    "PREFIX",
    "PROTOCOLS",
    "SIDE",
    "Episodes",
    "Protocol",
    "games",
    "grey_env",
    "parts_of",
    "seeds_of",
    "spec_of",
    "vector_env",
]

PREFIX = "atari/"
"""Prefix of the tasks."""
FRAME_SKIP = 4
"""Emulator frames in one step."""
SIDE = 84
"""Rows, and columns, of the screens that an agent sees."""
_MAX_FRAMES = 108_000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """One way to play, for training and for scores."""

    name: str
    """The protocol's name, as in the task ``atari/Pong/classic``."""
    sticky: float
    """Probability, at each frame, that the emulator repeats the action before."""
    all_actions: bool
    """Whether all 18 actions are available, or only those used by the game."""
    max_noops: int
    """The most actions that do nothing at the beginning of an episode."""
    presses_fire: bool
    """Whether fire is pressed at the start in games that wait for it."""
    ends_with_life: bool
    """Whether losing a life ends the episode for learning; scores count whole games."""
    reward_bound: float | None
    """Absolute value that rewards are clipped to for learning; scores are not clipped.
    None for no bound."""


PROTOCOLS = {
    protocol.name: protocol
    for protocol in (
        Protocol(
            name="v5",
            sticky=0.25,
            all_actions=False,
            max_noops=0,
            presses_fire=False,
            ends_with_life=False,
            reward_bound=None,
        ),
        Protocol(
            name="r2d2",
            sticky=0.0,
            all_actions=True,
            max_noops=30,
            presses_fire=False,
            ends_with_life=False,
            reward_bound=None,
        ),
        Protocol(
            name="classic",
            sticky=0.0,
            all_actions=False,
            max_noops=30,
            presses_fire=True,
            ends_with_life=True,
            reward_bound=1.0,
        ),
    )
}
"""Protocols by name; the first is used where a task names none."""


def games() -> dict[str, str]:
    """Returns ALE's names of the games by their names in Gymnasium."""
    from ale_py import roms

    return {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}


def parts_of(name: str) -> tuple[str, Protocol]:
    """Returns a task's game and protocol; neither ALE nor the game needs to exist.

    Raises:
        UsageError: The protocol is unknown.
    """
    game, _, protocol = name.removeprefix(PREFIX).partition("/")
    if not protocol:
        return game, next(iter(PROTOCOLS.values()))
    if protocol not in PROTOCOLS:
        known = [f"{PREFIX}{game}/{one}" for one in PROTOCOLS]
        raise UsageError(
            f'environment ("{name}") has a protocol that is unknown; '
            f"{did_you_mean(name, known)}"
        )
    return game, PROTOCOLS[protocol]


def vector_env(name: str, num_envs: int, **options: Any) -> Any:
    """Returns copies of a task as the package's ``AtariVectorEnv``.

    The copies play the same whatever the form of their screens.

    Args:
        name: ``atari/Pong``, ``atari/Pong/classic``; the game exists.
        num_envs: Number of copies.
        options: Further options of the package, for the screens and for how many copies
            step together.

    Raises:
        UsageError: Gymnasium, which the package needs, is not installed.
    """
    game, protocol = parts_of(name)
    import_gymnasium()
    import ale_py
    from ale_py.vector_env import AtariVectorEnv

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    # Reward clipping, pressing fire and the end of a life are set explicitly or done
    # here: the package's switches are on by default, and its end of a life restarts the
    # whole game.
    return AtariVectorEnv(
        games()[game],
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
        name: As for ``vector_env``.
        num_envs: Number of copies.
        options: As for ``vector_env``.

    Raises:
        UsageError: A ROM is missing, or Gymnasium is.
    """
    side = {"img_height": SIDE, "img_width": SIDE}
    try:
        return vector_env(name, num_envs, **side, **options)
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
    _, protocol = parts_of(name)
    return EnvSpec(
        name=name,
        observations={"observation": TensorSpec(dtype="uint8", shape=(1, SIDE, SIDE))},
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
        name: The task.
        num_envs: Number N of copies.
    """

    def __init__(self, name: str, num_envs: int) -> None:
        _, self._protocol = parts_of(name)
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
