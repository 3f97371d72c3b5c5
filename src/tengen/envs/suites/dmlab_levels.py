"""DMLab-30's levels, and the cache of the maps that they compile.

A map takes seconds to compile, and most levels draw one of a limited number of maps.
Lab asks the cache for a map by a key and a path. The cache copies the map to the path
if it has the map; otherwise Lab compiles the map and gives the file to the cache.

Source: Beattie et al. 2016, "DeepMind Lab" (arXiv:1612.03801), and DMLab-30.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import tempfile
from pathlib import Path

__all__ = ["LEVELS", "LevelCache"]

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
"""The levels of DMLab-30; two of them have different versions for training and test."""

_FOLDER = "tengen/dmlab"
# Free bytes that a disk must keep; below that, maps are not kept.
_LEAST_FREE = 2**30


class LevelCache:
    """Compiled maps in a folder that all processes of a user share.

    Args:
        folder: The folder of the maps; None for ``tengen/dmlab`` in the user's cache
            folder (``XDG_CACHE_HOME``, else ``~/.cache``).
    """

    def __init__(self, folder: Path | None = None) -> None:
        if folder is None:
            home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
            folder = Path(home) / _FOLDER
        self._folder = folder

    def fetch(self, key: str, pk3_path: str) -> bool:
        """Copies a map to a path; returns whether there was one.

        Args:
            key: What the map was made from.
            pk3_path: Where Lab reads it.
        """
        try:
            shutil.copyfile(self._path(key), pk3_path)
        except OSError:
            return False
        return True

    def write(self, key: str, pk3_path: str) -> None:
        """Keeps a map; a map that cannot be kept will be compiled again.

        Args:
            key: What the map was made from.
            pk3_path: Where Lab wrote the map.
        """
        with contextlib.suppress(OSError):
            self._folder.mkdir(parents=True, exist_ok=True)
            if shutil.disk_usage(self._folder).free < _LEAST_FREE:
                return
            handle, name = tempfile.mkstemp(dir=self._folder, suffix=".part")
            os.close(handle)
            try:
                shutil.copyfile(pk3_path, name)
                # Moved into place as a whole, because others may read it at once.
                Path(name).replace(self._path(key))
            finally:
                Path(name).unlink(missing_ok=True)

    def _path(self, key: str) -> Path:
        # A key may hold anything; its digest is a file's name.
        return self._folder / f"{hashlib.sha256(key.encode()).hexdigest()}.pk3"
