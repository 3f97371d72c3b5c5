"""Records videos of the first episodes of an evaluation, one file per episode.

Video i shows the first episode of copy i, so videos cannot outnumber the copies.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tengen.envs import Arrays, Env, EnvWrapper, FilmedEnv, Step, joint_step
from tengen.errors import UsageError, os_reason
from tengen.evaluation.episodes.film_formats import (
    MAX_PICTURES_PER_S,
    Film,
    FilmFormat,
    choose_format,
)
from tengen.run.publish import publish_file

MAX_FILMS = 3
"""The maximum number of videos of one evaluation."""


@dataclass(frozen=True)
class FilmFile:
    """A published video file and its contents."""

    path: Path
    """Path of the video file."""
    episode: int
    """Index of the recorded episode, from 0."""
    num_steps: int
    """Number of environment steps in the video, which may end before the episode."""
    num_pictures: int
    """Number of frames in the video. One frame precedes the first step. Then each step
    adds a frame, or only every k-th step if the environment exceeds the maximum frame
    rate."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as a dictionary of JSON values."""
        return {
            "path": str(self.path),
            "episode": self.episode,
            "steps": self.num_steps,
            "pictures": self.num_pictures,
        }


class Films:
    """The videos of one evaluation. Callers must call ``close``, even after an error.

    Args:
        folder: The output folder, created if missing; earlier videos are replaced.
        num_films: Number of episodes to record, at least 1.
        max_steps: Maximum number of environment steps in a video.
        film_format: The video format; None for the result of ``choose_format``.

    Attributes:
        format: The video format.
        num_films: Number of episodes to record.

    Raises:
        UsageError: The folder is not writable, or there is no encoder.
    """

    def __init__(
        self,
        folder: Path,
        num_films: int,
        max_steps: int,
        film_format: FilmFormat | None = None,
    ) -> None:
        _prepare(folder)
        self.format = film_format or choose_format()
        self._folder = folder
        self.num_films = num_films
        self._max_steps = max_steps
        self._reels: list[_Reel] = []

    def filming(self, env: FilmedEnv) -> Env:
        """Returns a wrapper of ``env`` that records its copies' first episodes.

        Args:
            env: The environment, already reset, with at least ``num_films`` copies.
        """
        filming = _FilmingEnv(env, self.format, self.num_films, self._max_steps)
        self._reels = filming.reels
        return filming

    def publish(self) -> list[FilmFile]:
        """Writes the video files, each atomically. Blocks while videos are encoded.

        Raises:
            RunError: The encoder fails, or writing to the disk fails.
        """
        files = []
        for episode, reel in enumerate(self._reels):
            path = self._folder / f"episode-{episode}{self.format.suffix}"
            publish_file(path, reel.film.finish())
            files.append(FilmFile(path, episode, reel.num_shown, reel.num_pictures))
        return files

    def close(self) -> None:
        """Discards the videos that are not published. Idempotent."""
        for reel in self._reels:
            reel.film.discard()


class _Reel:
    """The video of one episode in progress."""

    def __init__(self, film: Film, every: int, max_pictures: int) -> None:
        self.film = film
        self.num_shown = 0
        self.num_pictures = 0
        self.is_over = False
        self._every = every
        self._max_pictures = max_pictures
        self._num_steps = 0

    def begin(self, env: FilmedEnv, copy: int) -> None:
        """Adds the frame of the initial state of copy ``copy``."""
        self._add(env, copy)

    def step(self, env: FilmedEnv, copy: int, is_last: bool) -> None:
        """Counts a step; adds a frame every few steps and after the last step."""
        self._num_steps += 1
        if is_last or self._num_steps % self._every == 0:
            self._add(env, copy)
        self.is_over |= is_last

    def _add(self, env: FilmedEnv, copy: int) -> None:
        self.film.add(env.picture(copy))
        self.num_pictures += 1
        self.num_shown = self._num_steps
        self.is_over = self.num_pictures >= self._max_pictures


class _FilmingEnv(EnvWrapper):
    """An ``Env`` wrapper that adds frames to the videos at each step."""

    def __init__(
        self, env: FilmedEnv, film_format: FilmFormat, num_films: int, max_steps: int
    ) -> None:
        super().__init__(env)
        self._filmed = env
        self._max_steps = max_steps
        self._num_steps = 0
        every = math.ceil(env.pictures_per_s / MAX_PICTURES_PER_S)
        first = env.picture(0)
        self.reels = [
            _Reel(
                film_format.begin(first, env.pictures_per_s / every),
                every,
                film_format.max_pictures(first),
            )
            for _ in range(num_films)
        ]

    def reset(self) -> Arrays:
        observation = super().reset()
        for copy, reel in enumerate(self.reels):
            reel.begin(self._filmed, copy)
        return observation

    def step(self, actions: NDArray[Any]) -> Step:
        step = super().step(actions)
        self._num_steps += 1
        joint = joint_step(step, self.spec)
        is_over = joint.terminated | joint.truncated
        is_cut = self._num_steps >= self._max_steps
        for copy, reel in enumerate(self.reels):
            if not reel.is_over:
                reel.step(self._filmed, copy, bool(is_over[copy]) or is_cut)
        return step


def _prepare(folder: Path) -> None:
    """Creates the folder if missing; raises UsageError if it is not writable."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"video ({folder}) must be a folder that can be written, but "
            f"{os_reason(error)}; name another one"
        ) from None
