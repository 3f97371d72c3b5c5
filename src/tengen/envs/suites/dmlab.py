"""DeepMind Lab, if installed: tasks such as ``dmlab/explore_goal_locations_small``.

The suite needs the module ``deepmind_lab``, which users build from source, because it
has no pip package. An observation is an RGB image, ``[3, 72, 96]`` uint8. Levels whose
names begin with ``language_`` also encode the words of their instruction in
``observation/instruction``, ``[256]`` bool. There are nine actions, each held for 4
frames. A task names a DMLab-30 level, or any other level by its path.

Source: Beattie et al. 2016, "DeepMind Lab" (arXiv:1612.03801); the nine actions are
those of Espeholt et al. 2018, "IMPALA" (arXiv:1802.01561), table D.2.
Differs from IMPALA: each word of an instruction sets one bit, selected by the word's
checksum, so the order of the words is lost.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import re
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import Env
from tengen.envs.filmed import FilmedEnv, ObservedCamera, draw_screen
from tengen.envs.gymnasium_env import GymnasiumEnv, as_gymnasium
from tengen.envs.suites.suite import Suite
from tengen.errors import UsageError

_PREFIX = "dmlab/"
_HEIGHT, _WIDTH = 72, 96
_FRAMES = 4
_NUM_WORDS = 256
_SEED_BITS = 31
_SCALE = 4
_FPS = 60.0 / _FRAMES
ACTIONS = (
    (0, 0, 0, 1, 0, 0, 0),
    (0, 0, 0, -1, 0, 0, 0),
    (0, 0, -1, 0, 0, 0, 0),
    (0, 0, 1, 0, 0, 0, 0),
    (-20, 0, 0, 0, 0, 0, 0),
    (20, 0, 0, 0, 0, 0, 0),
    (-20, 0, 0, 1, 0, 0, 0),
    (20, 0, 0, 1, 0, 0, 0),
    (0, 0, 0, 0, 1, 0, 0),
)
"""The nine actions: forward, back, strafe left, strafe right, turn left, turn right,
forward with left turn, forward with right turn, and fire. The columns are: look left or
right, look up or down, strafe, move, fire, jump, crouch."""


class _Level:
    """One copy of a DeepMind Lab level, with the methods of ``gymnasium.Env``."""

    def __init__(self, level: str) -> None:
        import deepmind_lab
        from gymnasium import spaces

        self._has_words = level.rpartition("/")[2].startswith("language_")
        wanted = ["RGB_INTERLEAVED", *(["INSTR"] if self._has_words else [])]
        self._lab = deepmind_lab.Lab(
            level,
            wanted,
            config={"width": str(_WIDTH), "height": str(_HEIGHT)},
            renderer="software",
            level_cache=LevelCache(_maps_of_user()),
        )
        screen = spaces.Box(0, 255, (3, _HEIGHT, _WIDTH), np.uint8)
        self.observation_space: Any = screen
        if self._has_words:
            words = spaces.MultiBinary(_NUM_WORDS)
            self.observation_space = spaces.Dict(screen=screen, instruction=words)
        self.action_space = spaces.Discrete(len(ACTIONS))
        self._actions = [np.array(action, np.intc) for action in ACTIONS]
        self._random = np.random.RandomState(0)
        self._last: Any = None

    def reset(
        self, *, seed: int | None = None, options: Any = None
    ) -> tuple[Any, dict[str, Any]]:
        """Starts an episode with a new seed."""
        if seed is not None:
            self._random = np.random.RandomState(seed)
        self._lab.reset(seed=self._random.randint(2**_SEED_BITS - 1))
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Holds an action for 4 frames. A timeout terminates, as in publications."""
        reward = self._lab.step(self._actions[int(action)], num_steps=_FRAMES)
        is_over = not self._lab.is_running()
        # Lab has no final observation, so repeat the observation of the step before.
        seen = self._last if is_over else self._seen()
        return seen, float(reward), is_over, False, {}

    def close(self) -> None:
        """Releases the level."""
        self._lab.close()

    def _seen(self) -> Any:
        shown = self._lab.observations()
        screen = np.moveaxis(np.asarray(shown["RGB_INTERLEAVED"]), -1, 0)
        self._last = screen
        if self._has_words:
            self._last = {
                "screen": screen,
                "instruction": _words(str(shown["INSTR"])),
            }
        return self._last


def _words(instruction: str) -> NDArray[np.bool_]:
    """Encodes an instruction: each word sets one of 256 bits, chosen by its CRC-32."""
    bits = np.zeros(_NUM_WORDS, np.bool_)
    for word in instruction.lower().split():
        bits[zlib.crc32(word.encode()) % _NUM_WORDS] = True
    return bits


LEVELS = (
    "explore_goal_locations_large",
    "explore_goal_locations_small",
    "explore_object_locations_large",
    "explore_object_locations_small",
    "explore_object_rewards_few",
    "explore_object_rewards_many",
    "explore_obstructed_goals_large",
    "explore_obstructed_goals_small",
    "language_answer_quantitative_question",
    "language_execute_random_task",
    "language_select_described_object",
    "language_select_located_object",
    "lasertag_one_opponent_large",
    "lasertag_one_opponent_small",
    "lasertag_three_opponents_large",
    "lasertag_three_opponents_small",
    "natlab_fixed_large_map",
    "natlab_varying_map_randomized",
    "natlab_varying_map_regrowth",
    "psychlab_arbitrary_visuomotor_mapping",
    "psychlab_continuous_recognition",
    "psychlab_sequential_comparison",
    "psychlab_visual_search",
    "rooms_collect_good_objects_test",
    "rooms_collect_good_objects_train",
    "rooms_exploit_deferred_effects_test",
    "rooms_exploit_deferred_effects_train",
    "rooms_keys_doors_puzzle",
    "rooms_select_nonmatching_object",
    "rooms_watermaze",
    "skymaze_irreversible_path_hard",
    "skymaze_irreversible_path_varied",
)
"""The levels of DMLab-30; two of them have separate versions for training and test."""

_FOLDER = "tengen/dmlab"
# Maps are cached only if the disk has at least this many free bytes.
_LEAST_FREE = 2**30


def _maps_of_user() -> Path:
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / _FOLDER


class LevelCache:
    """A cache of compiled DeepMind Lab maps, shared by all processes of a user.

    Args:
        folder: The folder in which the maps are stored.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a cached map to ``pk3_path``; returns whether the map was cached.

        Args:
            key: The map's key in Lab.
            pk3_path: The file from which Lab reads the map.
        """
        try:
            shutil.copyfile(self._path(key), pk3_path)
        except OSError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Stores a map in the cache, unless the disk is nearly full or fails.

        Args:
            key: The map's key in Lab.
            pk3_path: The file to which Lab wrote the map.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self._folder).free < _LEAST_FREE:
                return
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            os.close(handle)
            try:
                shutil.copyfile(pk3_path, name)
                # Rename the complete file, so that no process reads a partial map.
                Path(name).replace(self._path(key))
            finally:
                Path(name).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        # A key may contain any characters, so its digest serves as the file name.
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.pk3"


class _Dmlab(Suite):
    def known(self) -> Iterable[str]:
        return LEVELS

    def make(self, name: str, num_envs: int, seed: int) -> Env:
        return GymnasiumEnv(
            self.maker_of_one(name),
            num_envs,
            seed,
            name=name,
            finds_masks=False,
            frames_per_step=_FRAMES,
            is_hard=True,
            is_partial=True,
        )

    def film(self, name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
        env = self.make(name, num_envs, seed)
        # Levels with an instruction have two observations; render only the image.
        (screen,) = (one for one in env.spec.observations if "instruction" not in one)
        draw = functools.partial(draw_screen, scale=_SCALE)
        return FilmedEnv(env, ObservedCamera(screen, draw, _FPS))

    def maker_of_one(self, name: str) -> Callable[..., Any]:
        level = name.removeprefix(_PREFIX)
        # A level is a script, and its name may come from an untrusted run directory, so
        # the pattern excludes paths to scripts outside the package.
        if re.fullmatch(r"\w+(/\w+)*", level) is None:
            raise UsageError(
                f'environment ("{name}") must name a level of DeepMind Lab with '
                "letters, digits, _ and /; correct it"
            )
        self.check_installed(name)
        if "/" not in level:
            level = f"contributed/dmlab30/{self.short_name(name)}"
        kind: Any = as_gymnasium(_Level)
        return functools.partial(kind, level)


SUITE = _Dmlab(
    prefix=_PREFIX,
    package="deepmind_lab",
    install=lambda: "build it as described at github.com/google-deepmind/lab",
)
"""The suite of the tasks ``dmlab/*``."""
