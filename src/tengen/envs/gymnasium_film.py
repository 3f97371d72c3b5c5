"""Pictures of Gymnasium environments, made by their own ``render``.

Source of the interface: Gymnasium 1.1 and later, ``render_mode="rgb_array"``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from tengen.envs.copies import RAISED, said
from tengen.envs.filmed import Camera, FilmedEnv, Picture
from tengen.envs.gymnasium_env import GymnasiumEnv, make_guarded
from tengen.errors import RunError, UsageError

__all__ = ["RENDER_MODE", "RenderCamera", "film_copies"]

RENDER_MODE = "rgb_array"
"""Gymnasium's name of the render mode that returns arrays."""
_FPS = 30.0


class RenderCamera(Camera):
    """A camera whose pictures are those of ``render``.

    Args:
        render: Returns the picture of a copy.
        name: The environment's name, for messages.
        metadata: The environment's ``metadata``, which has the speed of a film.
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
                # Warnings are ignored, because a bad picture raises an error below.
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
        # Dropped here: freeing a copy later would release what another copy draws with.
        self._render = lambda copy: None

    def _error(self, what: str) -> RunError:
        advice = "leave --video out"
        if "mujoco" in sys.modules:
            advice += ", or set MUJOCO_GL=egl or osmesa to what this machine draws by"
        return RunError(
            f'environment ("{self._name}") cannot be filmed, as its render() {what}; '
            f"{advice}"
        )


def film_copies(
    make_one: Callable[..., Any],
    num_envs: int,
    seed: int,
    *,
    num_filmed: int,
    name: str,
) -> FilmedEnv:
    """Returns the copies of ``GymnasiumEnv``, of which the first are filmed.

    Args:
        make_one: As for ``GymnasiumEnv``; for a filmed copy it gets ``render_mode``.
        num_envs: See ``GymnasiumEnv``.
        seed: See ``GymnasiumEnv``.
        num_filmed: How many are filmed, at most ``num_envs``.
        name: See ``GymnasiumEnv``.

    Raises:
        UsageError: As ``GymnasiumEnv``, or the environment has no pictures.
    """
    # Checked before, because Gymnasium warns at length of a mode that is missing.
    first = make_guarded(make_one, name)
    metadata = getattr(first, "metadata", None) or {}
    with contextlib.suppress(*RAISED):
        first.close()
    if RENDER_MODE not in metadata.get("render_modes", ()):
        raise UsageError(
            f'environment ("{name}") cannot be filmed, as its metadata names no '
            f'render mode "{RENDER_MODE}"; leave --video out'
        )
    filmed: list[Any] = []

    def make() -> Any:
        if len(filmed) == num_filmed:
            return make_one()
        filmed.append(make_one(render_mode=RENDER_MODE))
        return filmed[-1]

    env = GymnasiumEnv(make, num_envs, seed, name=name)
    camera = RenderCamera(lambda copy: _rendered(filmed[copy]), name, metadata)
    return FilmedEnv(env, camera)


def _rendered(copy: Any) -> Any:
    """Returns a copy's picture.

    Each copy of MuJoCo has its own OpenGL context, but draws with the current one, so
    that the copy's context must be made current first.
    """
    renderer = getattr(copy.unwrapped, "mujoco_renderer", None)
    viewer = getattr(renderer, "viewer", None)
    if viewer is not None:
        viewer.make_context_current()
    return copy.render()


def _draw_without_display() -> None:
    """Makes MuJoCo and SDL draw into memory where there is no display.

    Otherwise Gymnasium would try glfw, which fails only at the first picture, and SDL
    would print errors.
    """
    has_display = os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")
    if sys.platform == "linux" and not has_display:
        os.environ.setdefault("MUJOCO_GL", "egl")
        os.environ.setdefault("SDL_VIDEODRIVER", "dummy")
