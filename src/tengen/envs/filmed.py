"""Renders video frames of vectorized copies while they are stepped.

An agent's observations, such as a small grey screen or boolean planes, are rarely
human-readable. A ``Camera`` follows the copies and renders a frame of each, without
changing the copies' behaviour.
"""

from __future__ import annotations

import colorsys
import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tengen.envs.copies import RAISED, said
from tengen.envs.env import Arrays, Env, EnvWrapper, Step
from tengen.envs.gymnasium_env import make_guarded
from tengen.envs.parallel_env import copies_of
from tengen.errors import RunError, UsageError

Picture: TypeAlias = NDArray[np.uint8]
"""A video frame, ``[H, W, 3]`` uint8 RGB."""

_DARK = (16, 16, 24)
# Multiples of the golden ratio, modulo 1, are hues that are easy to distinguish.
_GOLDEN = 0.61803398875


class Camera:
    """Renders frames of an ``Env``'s first copies, in the thread that steps the copies.

    Attributes:
        pictures_per_s: Frames (steps) per second of a video at natural speed.
        native: An object that may describe the actions for people as Gymnasium's
            environments do, with ``get_action_meanings`` or ``get_keys_to_action``.
    """

    pictures_per_s: float
    native: Any = None

    def reset(self, observation: Arrays) -> None:
        """Called after ``Env.reset`` with the returned ``observation``."""

    def step(self, actions: NDArray[Any], step: Step) -> None:
        """Called after ``Env.step`` with the ``actions`` and the returned ``step``.

        Raises:
            RunError: The rendered episodes differ from the stepped episodes.
        """

    def picture(self, copy: int) -> Picture:
        """Renders the current frame of the copy with index ``copy``, as a new array.

        Raises:
            RunError: The copy cannot be rendered.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Releases the camera's resources. Idempotent."""


class FilmedEnv(EnvWrapper):
    """An ``Env`` that also renders frames of its first copies.

    Args:
        env: The environment to step; ``close`` closes it too.
        camera: The camera that follows ``env``.
    """

    def __init__(self, env: Env, camera: Camera) -> None:
        super().__init__(env)
        self._camera = camera
        self.pictures_per_s = camera.pictures_per_s
        """See ``Camera.pictures_per_s``."""
        self.native = camera.native
        """See ``Camera.native``."""

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
    """A camera that draws observations, for environments that cannot render frames.

    Args:
        name: The name of the observation to draw.
        draw: Converts one copy's observation to a frame.
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
    """Draws each plane in its own colour on a dark background.

    If several planes are set in a cell, the cell has the colour of the last plane.

    Args:
        planes: ``[C, H, W]`` bool, with at least one plane.
        cell: Side length of a cell, in pixels.
    """
    drawn = np.empty((*planes.shape[1:], 3), np.uint8)
    drawn[:] = _DARK
    for i, plane in enumerate(planes):
        colour = colorsys.hsv_to_rgb((0.6 + i * _GOLDEN) % 1.0, 0.6, 1.0)
        drawn[plane] = [round(255 * part) for part in colour]
    return drawn.repeat(cell, axis=0).repeat(cell, axis=1)


def draw_screen(screen: NDArray[np.uint8], scale: int) -> Picture:
    """Returns a frame of a screen ``[3, H, W]``, enlarged by the integer ``scale``."""
    drawn: Picture = np.moveaxis(screen, 0, -1)
    return drawn.repeat(scale, axis=0).repeat(scale, axis=1)


RENDER_MODE = "rgb_array"
"""The Gymnasium render mode in which ``render`` returns an RGB array."""
_FPS = 30.0


class RenderCamera(Camera):
    """A camera that gets its frames from a ``render`` function.

    Source: the interface of Gymnasium 1.1 and later, ``render_mode="rgb_array"``.

    Args:
        render: Returns the frame of a copy, given the copy's index.
        name: The environment's name, for error messages.
        metadata: The environment's ``metadata``, which may contain ``render_fps``.
    """

    def __init__(
        self, render: Callable[[int], Any], name: str, metadata: dict[str, Any]
    ) -> None:
        _draw_without_display()
        self._render = render
        self._name = name
        self.pictures_per_s = float(metadata.get("render_fps") or _FPS)

    def picture(self, copy: int) -> Picture:
        """See ``Camera.picture``."""
        try:
            with warnings.catch_warnings():
                # Ignore the warnings, because an invalid frame raises an error below.
                warnings.simplefilter("ignore")
                picture = np.array(self._render(copy))
        except RAISED as error:
            raise self._error(f"raised {said(error)}") from error
        if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8:
            raise self._error(
                f"returned {picture.dtype} {picture.shape}, not uint8 [H, W, 3]"
            )
        return picture

    def close(self) -> None:
        """See ``Camera.close``."""
        # Free the copies now, because a copy that is freed later could destroy the
        # OpenGL context of another copy.
        self._render = lambda copy: None

    def _error(self, what: str) -> RunError:
        advice = "correct it"
        if "mujoco" in sys.modules:
            advice += ", or set MUJOCO_GL to a renderer of this machine, egl or osmesa"
        return RunError(
            f'environment ("{self._name}") cannot be filmed, because its render() '
            f"{what}; {advice}"
        )


def film_copies(
    make_one: Callable[..., Any],
    num_envs: int,
    seed: int,
    *,
    num_filmed: int,
    name: str,
) -> FilmedEnv:
    """Returns ``copies_of`` with a camera for the first ``num_filmed`` copies.

    Args:
        make_one: See ``copies_of``; called with ``render_mode`` for filmed copies.
        num_envs: See ``copies_of``.
        seed: See ``copies_of``.
        num_filmed: Number of filmed copies, at most ``num_envs``.
        name: See ``copies_of``.

    Raises:
        UsageError: As for ``copies_of``, or the environment cannot render arrays.
    """
    # Check the render modes here; Gymnasium would print long warnings instead.
    first = make_guarded(make_one, name)
    metadata = getattr(first, "metadata", None) or {}
    with contextlib.suppress(*RAISED):
        first.close()
    if RENDER_MODE not in metadata.get("render_modes", ()):
        raise UsageError(
            f'environment ("{name}") cannot be filmed, because its metadata lacks '
            f'render mode "{RENDER_MODE}"; leave --video out, or use demos record'
        )
    filmed: list[Any] = []

    def make() -> Any:
        if len(filmed) == num_filmed:
            return make_one()
        filmed.append(make_one(render_mode=RENDER_MODE))
        return filmed[-1]

    env = copies_of(make, num_envs, seed, name=name)
    camera = RenderCamera(lambda copy: _rendered(filmed[copy]), name, metadata)
    camera.native = filmed[0]
    return FilmedEnv(env, camera)


def _rendered(copy: Any) -> Any:
    """Renders a frame of one environment.

    Each MuJoCo copy has its own OpenGL context, but renders with the current context.
    Therefore this function first makes the copy's context current.
    """
    core = getattr(copy, "unwrapped", copy)
    renderer = getattr(core, "mujoco_renderer", None)
    viewer = getattr(renderer, "viewer", None)
    if viewer is not None:
        viewer.make_context_current()
    return copy.render()


def _draw_without_display() -> None:
    """Makes MuJoCo and SDL render off-screen if there is no display.

    Otherwise Gymnasium would use GLFW, which fails only when the first frame is
    rendered, and SDL would print errors.
    """
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not has_display:
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
