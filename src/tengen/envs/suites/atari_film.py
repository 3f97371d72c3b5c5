"""Atari films in colour: the scored copies are played a second time with colours.

An agent's screens are grey and 84 x 84. A second set of copies in ALE's vector form
plays the same games in colour, 160 x 210. With the same seeds, protocol and actions,
sticky actions, initial no-op actions and fire are the same too. Each step checks that
rewards and ends of episodes are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.env import Arrays, Step
from tengen.envs.filmed import FilmedEnv, Picture
from tengen.envs.suites.atari import (
    FRAME_SKIP,
    AtariEnv,
    make,
    protocol_of,
    rom_of,
    vector_env,
)
from tengen.errors import RunError

__all__ = ["film"]

_HEIGHT, _WIDTH = 210, 160
_FRAMES_PER_S = 60.0


def film(name: str, num_envs: int, seed: int, num_filmed: int) -> FilmedEnv:
    """Returns copies with pictures; see ``tengen.envs.make_filmed``.

    Raises:
        UsageError: As ``make``.
    """
    env = make(name, num_envs, seed)
    return FilmedEnv(env, _ColourCamera(env, num_filmed))


class _ColourCamera:
    """The first copies of a game, played once more in colour; see ``Camera``.

    Args:
        env: The copies that are scored.
        num_filmed: How many of them are filmed.
    """

    pictures_per_s = _FRAMES_PER_S / FRAME_SKIP

    def __init__(self, env: AtariEnv, num_filmed: int) -> None:
        self._name = env.spec.name
        self._seeds = env.seeds[:num_filmed]
        self._envs = vector_env(
            rom_of(self._name),
            num_filmed,
            protocol_of(self._name),
            img_height=_HEIGHT,
            img_width=_WIDTH,
            grayscale=False,
        )
        self._screens: NDArray[np.uint8] | None = None

    def reset(self, observation: Arrays) -> None:
        """See ``Camera.reset``."""
        self._screens, _ = self._envs.reset(seed=self._seeds)

    def step(self, actions: NDArray[Any], step: Step) -> None:
        """Plays the step too.

        Raises:
            RunError: A reward or an end of an episode differs from the scored copy's.
        """
        num_filmed = len(self._seeds)
        taken = actions[:num_filmed].astype(np.int32)
        self._screens, reward, terminated, truncated, _ = self._envs.step(taken)
        for mine, theirs in (
            (reward, step.reward),
            (terminated, step.terminated),
            (truncated, step.truncated),
        ):
            if (mine != theirs[:num_filmed]).any():
                raise RunError(
                    f"film ({self._name}) must have the rewards and ends of the "
                    f"episodes that are scored, and has others; leave --video out, "
                    f"and report it"
                )

    def picture(self, copy: int) -> Picture:
        """See ``Camera.picture``."""
        assert self._screens is not None, "reset comes first"
        picture: Picture = self._screens[copy, -1].copy()
        return picture

    def close(self) -> None:
        """See ``Camera.close``."""
        self._envs.close()
