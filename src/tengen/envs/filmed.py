"""Copies of an environment with pictures for people while they are stepped.

An agent's observations, such as a small grey screen or planes of bools, are rarely what
a person wants to see. A ``Camera`` follows the copies and has a picture of each. It
does not change what they do.
"""

from __future__ import annotations

import colorsys
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import Arrays, Env, EnvWrapper, Step

__all__ = [
    "Camera",
    "FilmedEnv",
    "ObservedCamera",
    "Picture",
    "draw_planes",
    "draw_screen",
]

Picture: TypeAlias = NDArray[np.uint8]
"""``[H, W, 3]`` uint8: red, green and blue."""

_DARK = (16, 16, 24)
# Hues at multiples of this share of the circle are far from all hues before.
_GOLDEN = 0.61803398875


class Camera:
    """Pictures of the first copies of an ``Env``; used by the thread that steps it.

    Attributes:
        pictures_per_s: Steps a second at which a film runs at its natural speed.
    """

    pictures_per_s: float

    def reset(self, observation: Arrays) -> None:
        """Follows ``Env.reset``, which returned ``observation``."""

    def step(self, actions: NDArray[Any], step: Step) -> None:
        """Follows ``Env.step``, which returned ``step``.

        Raises:
            RunError: The pictures no longer show the copies that were stepped.
        """

    def picture(self, copy: int) -> Picture:
        """Returns a copy's current picture, which the caller may keep.

        Raises:
            RunError: There is no picture of the copy.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Releases what the camera holds. Idempotent."""


class FilmedEnv(EnvWrapper):
    """An ``Env`` with a picture of each of its first copies.

    Args:
        env: The environment to step; closed together with this one.
        camera: The camera that follows it.
    """

    def __init__(self, env: Env, camera: Camera) -> None:
        super().__init__(env)
        self._camera = camera
        self.pictures_per_s = camera.pictures_per_s
        """See ``Camera``."""

    def reset(self) -> Arrays:
        """See ``Env.reset``."""
        observation = super().reset()
        self._camera.reset(observation)
        return observation

    def step(self, actions: NDArray[Any]) -> Step:
        """See ``Env.step`` and ``Camera.step``."""
        step = super().step(actions)
        self._camera.step(actions, step)
        return step

    def picture(self, copy: int) -> Picture:
        """See ``Camera.picture``."""
        return self._camera.picture(copy)

    def close(self) -> None:
        """See ``Env.close``."""
        try:
            self._camera.close()
        finally:
            super().close()


class ObservedCamera(Camera):
    """Draws observations, for environments that have no other picture.

    Args:
        name: The name of the observation.
        draw: Returns the picture of one observation.
        pictures_per_s: See ``Camera``.
    """

    def __init__(
        self,
        name: str,
        draw: Callable[[NDArray[Any]], Picture],
        pictures_per_s: float,
    ) -> None:
        self._name = name
        self._draw = draw
        self._seen: NDArray[Any] | None = None
        self.pictures_per_s = pictures_per_s

    def reset(self, observation: Arrays) -> None:
        """See ``Camera.reset``."""
        self._seen = observation[self._name]

    def step(self, actions: NDArray[Any], step: Step) -> None:
        """See ``Camera.step``."""
        self._seen = step.observation[self._name]

    def picture(self, copy: int) -> Picture:
        """See ``Camera.picture``."""
        assert self._seen is not None, "reset comes first"
        return self._draw(self._seen[copy])


def draw_planes(planes: NDArray[np.bool_], cell: int) -> Picture:
    """Returns a picture of planes ``[C, H, W]``, each in its colour on a dark ground.

    Where several planes are set, the last one is visible.

    Args:
        planes: At least one plane.
        cell: Side of a cell in pixels.
    """
    drawn = np.empty((*planes.shape[1:], 3), np.uint8)
    drawn[:] = _DARK
    for i, plane in enumerate(planes):
        colour = colorsys.hsv_to_rgb((0.6 + i * _GOLDEN) % 1.0, 0.6, 1.0)
        drawn[plane] = [round(255 * part) for part in colour]
    return drawn.repeat(cell, axis=0).repeat(cell, axis=1)


def draw_screen(screen: NDArray[np.uint8], scale: int) -> Picture:
    """Returns a screen ``[3, H, W]`` uint8, each pixel as ``scale`` x ``scale``."""
    drawn: Picture = np.moveaxis(screen, 0, -1)
    return drawn.repeat(scale, axis=0).repeat(scale, axis=1)
