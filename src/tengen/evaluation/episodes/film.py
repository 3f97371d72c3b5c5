"""Films of the first episodes that are scored, a file each.

What is filmed is the score's own episode: episode i is the first that copy i plays, as
no film is of more episodes than there are copies.
"""

from __future__ import annotations

import math
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tengen.envs import Arrays, Env, EnvSpec, FilmedEnv, Step
from tengen.errors import UsageError, os_reason
from tengen.evaluation.episodes.film_formats import (
    MAX_PICTURES_PER_S,
    Film,
    FilmFormat,
    choose_format,
)
from tengen.run.publish import publish_file

__all__ = ["MAX_FILMS", "FilmFile", "Films"]

MAX_FILMS = 3
"""Episodes that are filmed."""


@dataclass(frozen=True)
class FilmFile:
    """One film that was written."""

    path: Path
    """The file."""
    episode: int
    """Which one, counted from 0."""
    num_steps: int
    """Steps of the episode that it shows; fewer than it has where it was too long."""
    num_pictures: int
    """Of the film: the picture before the first step, and one a step, or every few
    steps where steps are fast."""

    def to_json(self) -> dict[str, Any]:
        """Returns the fields as JSON values."""
        return {
            "path": str(self.path),
            "episode": self.episode,
            "steps": self.num_steps,
            "pictures": self.num_pictures,
        }


class Films:
    """Films of one evaluation; ``close`` it in any case.

    Args:
        folder: Is made where it does not exist; files of earlier films are replaced.
        num_films: Episodes that are filmed, from the first one on, at least 1.
        max_steps: After which an episode is cut.
        film_format: What films are written in; None: as ``choose_format``.

    Attributes:
        format: What films are written in.
        num_films: Episodes that are filmed.

    Raises:
        UsageError: The folder cannot be written, or nothing encodes films here.
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
        """Returns ``env``, which films its first copies' first episodes.

        Args:
            env: That was reset; its copies are at least as many as films.
        """
        filming = _FilmingEnv(env, self.format, self.num_films, self._max_steps)
        self._reels = filming.reels
        return filming

    def publish(self) -> list[FilmFile]:
        """Writes the films, whole files each. Blocks while they are encoded.

        Raises:
            RunError: The encoder fails, or the disk refuses.
        """
        files = []
        for episode, reel in enumerate(self._reels):
            path = self._folder / f"episode-{episode}{self.format.suffix}"
            publish_file(path, reel.film.finish())
            files.append(FilmFile(path, episode, reel.num_shown, reel.num_pictures))
        return files

    def close(self) -> None:
        """Drops what was not published."""
        for reel in self._reels:
            reel.film.discard()


class _Reel:
    """The film of one episode, while it is played."""

    def __init__(self, film: Film, every: int, max_pictures: int) -> None:
        self.film = film
        self.num_shown = 0
        self.num_pictures = 0
        self.is_over = False
        self._every = every
        self._max_pictures = max_pictures
        self._num_steps = 0

    def begin(self, env: FilmedEnv, copy: int) -> None:
        """Shows where the episode begins."""
        self._add(env, copy)

    def step(self, env: FilmedEnv, copy: int, is_last: bool) -> None:
        """Shows what a step led to; a last one in any case."""
        self._num_steps += 1
        if is_last or self._num_steps % self._every == 0:
            self._add(env, copy)
        self.is_over |= is_last

    def _add(self, env: FilmedEnv, copy: int) -> None:
        self.film.add(env.picture(copy))
        self.num_pictures += 1
        self.num_shown = self._num_steps
        self.is_over = self.num_pictures >= self._max_pictures


class _FilmingEnv:
    """An ``Env`` that is filmed while it is stepped."""

    def __init__(
        self, env: FilmedEnv, film_format: FilmFormat, num_films: int, max_steps: int
    ) -> None:
        self._env = env
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

    @property
    def spec(self) -> EnvSpec:
        return self._env.spec

    @property
    def num_envs(self) -> int:
        return self._env.num_envs

    def reset(self) -> Arrays:
        observation = self._env.reset()
        for copy, reel in enumerate(self.reels):
            reel.begin(self._env, copy)
        return observation

    def step(self, actions: NDArray[Any]) -> Step:
        step = self._env.step(actions)
        self._num_steps += 1
        is_over = step.terminated | step.truncated
        is_cut = self._num_steps >= self._max_steps
        for copy, reel in enumerate(self.reels):
            if not reel.is_over:
                reel.step(self._env, copy, bool(is_over[copy]) or is_cut)
        return step

    def observed(self, observation: Any) -> Arrays:
        return self._env.observed(observation)

    def own_action(self, action: NDArray[Any]) -> Any:
        return self._env.own_action(action)

    def close(self) -> None:
        self._env.close()


def _prepare(folder: Path) -> None:
    """Makes the folder, and finds out whether files can be made in it.

    Raises:
        UsageError: It cannot be used.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise UsageError(
            f"video ({folder}) must be a folder that can be written, but "
            f"{os_reason(error)}; name another one"
        ) from None
