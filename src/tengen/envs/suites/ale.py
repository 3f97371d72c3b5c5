"""The Arcade Learning Environment (ALE): Atari protocols and vectorized emulators.

All protocols use a frame skip of 4 with the pixelwise maximum of the last two frames,
84 x 84 grayscale screens, and episodes of at most 108,000 emulator frames. A step is
four emulator frames, but a reset step has none. ``tengen train --frames`` counts steps,
not emulator frames.

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

PREFIX = "atari/"
"""Prefix of the names of Atari tasks."""
FRAME_SKIP = 4
"""Number of emulator frames per step."""
SIDE = 84
"""Height and width in pixels of the Atari screens that an agent receives."""
_MAX_FRAMES = 108_000


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Rules for training and scoring on Atari games."""

    name: str
    """The protocol's name, as in the task ``atari/Pong/classic``."""
    sticky: float
    """Probability per frame that the emulator repeats the previous action."""
    all_actions: bool
    """Whether all 18 actions are available, instead of the game's minimal set."""
    max_noops: int
    """The maximum number of no-op actions at the start of an episode."""
    presses_fire: bool
    """Whether the environment presses fire at the start of games that need it."""
    ends_with_life: bool
    """Whether learning treats a lost life as the end of the episode. Scores do not."""
    reward_bound: float | None
    """Absolute value to which rewards are clipped for learning; None for no clipping.
    Scores are not clipped."""


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
"""The Atari protocols by name; the first is the default."""


def games() -> dict[str, str]:
    """Returns the ALE name of each game by its Gymnasium name."""
    from ale_py import roms

    return {rom.title().replace("_", ""): rom for rom in roms.get_all_rom_ids()}


def parts_of(name: str) -> tuple[str, Protocol]:
    """Splits a task's name into game and protocol; does not check the game's name.

    Raises:
        UsageError: The protocol is unknown.
    """
    game, _, protocol = name.removeprefix(PREFIX).partition("/")
    if not protocol:
        return game, next(iter(PROTOCOLS.values()))
    if protocol not in PROTOCOLS:
        known = [f"{PREFIX}{game}/{one}" for one in PROTOCOLS]
        raise UsageError(
            f'environment ("{name}") has an unknown protocol; '
            f"{did_you_mean(name, known)}"
        )
    return game, PROTOCOLS[protocol]


def vector_env(name: str, num_envs: int, **options: Any) -> Any:
    """Returns an ``ale_py`` ``AtariVectorEnv`` with copies of a task.

    The size and colour of the screens do not affect the games.

    Args:
        name: An existing task, such as ``atari/Pong`` or ``atari/Pong/classic``.
        num_envs: Number of copies.
        options: Options of ``AtariVectorEnv`` for the size and colour of the screens
            and the batch size.

    Raises:
        UsageError: Gymnasium, which ``ale_py`` needs, is not installed.
    """
    game, protocol = parts_of(name)
    import_gymnasium()
    import ale_py
    from ale_py.vector_env import AtariVectorEnv

    ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
    # AtariVectorEnv enables reward clipping, fire and episodic_life by default, so set
    # these options. episodic_life would restart the complete game after a lost life;
    # the class Episodes handles lost lives instead.
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
    """Returns the emulator seeds of the copies, ``[N]`` int64.

    Raises:
        UsageError: ``seed`` or ``num_envs`` is out of range.
    """
    return np.array(copy_seeds(seed, num_envs), np.int64)


def grey_env(name: str, num_envs: int, **options: Any) -> Any:
    """Returns an ``AtariVectorEnv`` with the grayscale screens that agents receive.

    Args:
        name: As for ``vector_env``.
        num_envs: Number of copies.
        options: As for ``vector_env``.

    Raises:
        UsageError: A ROM or Gymnasium is missing.
    """
    side = {"img_height": SIDE, "img_width": SIDE}
    try:
        return vector_env(name, num_envs, **side, **options)
    except OSError as error:
        raise UsageError(
            f'environment ("{name}") has no usable ROM: {one_line(error, MOST_WORDS)}; '
            f"{pip_install('--force-reinstall', 'ale-py==0.12.1')}, and unset "
            "ALE_ROMS_DIR"
        ) from error


def spec_of(name: str, envs: Any) -> EnvSpec:
    """Returns the spec of an Atari task.

    Args:
        name: The task.
        envs: The copies, an ``AtariVectorEnv``.
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
    """Detects reset steps and lost lives, which ``AtariVectorEnv`` does not report.

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
        """Begins all episodes, given the ``info`` from ``AtariVectorEnv.reset``."""
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
        """Converts the results of ``AtariVectorEnv.step`` to a ``Step``."""
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
