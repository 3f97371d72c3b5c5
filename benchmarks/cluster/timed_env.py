"""An environment whose steps take a fixed time and are recorded.

``timed_env:Timed``, for ``many_actors.py``: a step sleeps, as if a simulator ran on its
own core, and returns an observation of a screen's size. A task cannot pass options, so
settings are environment variables: ``TIMED_ENV_FOLDER`` for the records,
``TIMED_ENV_STEP_MS`` (16), ``TIMED_ENV_BYTES`` (7056).
"""

from __future__ import annotations

import os
import struct
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

NOTE = struct.Struct("<qq")
"""A step's start, and the time since the previous step's end, in nanoseconds."""
NUM_ACTIONS = 18
_EPISODE_STEPS = 1000
# Records per write: more cost fewer writes, but a kill loses more records.
_NOTES_A_WRITE = 32


class Timed(gymnasium.Env):
    """An environment whose steps take a fixed time."""

    def __init__(self) -> None:
        num_bytes = int(os.environ.get("TIMED_ENV_BYTES", "7056"))
        self._step_s = float(os.environ.get("TIMED_ENV_STEP_MS", "16")) / 1000
        self._folder = os.environ.get("TIMED_ENV_FOLDER")
        self._file = -1
        self.observation_space = gymnasium.spaces.Box(0, 255, (num_bytes,), np.uint8)
        self.action_space = gymnasium.spaces.Discrete(NUM_ACTIONS)
        self._screen = np.zeros(num_bytes, np.uint8)
        self._num_steps = 0
        self._ended_ns = 0
        self._notes = bytearray()

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._num_steps = 0
        self._screen[:] = self.np_random.integers(0, 256, self._screen.size, np.uint8)
        return self._screen, {}

    def step(self, action: int) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        begun_ns = time.monotonic_ns()
        self._note(begun_ns)
        # Sleep for the full step, because a simulator on another core is not delayed.
        time.sleep(self._step_s)
        self._num_steps += 1
        self._screen[self._num_steps % self._screen.size] = action
        self._ended_ns = time.monotonic_ns()
        is_over = self._num_steps >= _EPISODE_STEPS
        return self._screen, float(action == 0), False, is_over, {}

    def _note(self, begun_ns: int) -> None:
        if self._folder is None:
            return
        if self._ended_ns:
            self._notes += NOTE.pack(begun_ns, begun_ns - self._ended_ns)
        if len(self._notes) >= _NOTES_A_WRITE * NOTE.size:
            if self._file < 0:
                # Opened at the first write, because some processes only read spaces.
                path = Path(self._folder) / str(os.getpid())
                self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
            os.write(self._file, self._notes)
            self._notes.clear()
