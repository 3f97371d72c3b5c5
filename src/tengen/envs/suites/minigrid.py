"""MiniGrid's rooms, seen from the agent's place: ``minigrid/DoorKey-5x5``.

``observation/image`` is ``[20, 7, 7]`` bool, one plane for each kind of thing, colour
and state of doors. MiniGrid's own numbers would be read as an image with meaningless
colours. ``observation/direction`` ``[4]`` is one-hot. ``observation/mission`` ``[M]``
bool, in environments with several missions, has one bit for each word that differs
between missions.

Source: Chevalier-Boisvert et al. 2023, "Minigrid & Miniworld: Modular & Customizable
Reinforcement Learning Environments for Goal-Oriented Tasks" (arXiv:2306.13831).
Differs from it: the numbers are planes, and a mission is bits instead of a text.
BabyAI's missions, which are sentences of a grammar, are not supported.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.envs.suites.suite import PackagedSuite
from tengen.errors import RunError

__all__ = ["SUITE", "planes"]

_COUNTS = (11, 6, 3)
"""Numbers of kinds of things, colours and states of doors, in MiniGrid's order."""
_MOST_MISSIONS = 10_000


def planes(image: NDArray[Any]) -> NDArray[np.bool_]:
    """Returns MiniGrid's image as planes.

    Args:
        image: ``[W, H, 3]`` uint8, MiniGrid's numbers of kind, colour and state.

    Returns:
        ``[20, W, H]``. Cells that are empty or not seen have no colour and no state.
    """
    numbers = np.moveaxis(np.asarray(image), -1, 0)
    parts = [
        numbers[i][None] == np.arange(count)[:, None, None]
        for i, count in enumerate(_COUNTS)
    ]
    is_thing = numbers[0] > 1
    return np.concatenate([parts[0], parts[1] & is_thing, parts[2] & is_thing])


def _wrapped(env: Any) -> Any:
    from gymnasium import spaces, wrappers

    space = env.observation_space
    width, height, _ = space["image"].shape
    choices = _missions(space["mission"])
    entries = {
        "image": spaces.MultiBinary([sum(_COUNTS), width, height]),
        "direction": space["direction"],
    }
    length = len(next(iter(choices.values()))) if choices else 0
    if length:
        entries["mission"] = spaces.MultiBinary(length)

    def read(seen: dict[str, Any]) -> dict[str, Any]:
        read = {"image": planes(seen["image"]), "direction": seen["direction"]}
        if length:
            if seen["mission"] not in choices:
                raise RunError(
                    f'mission ("{seen["mission"]}") must be one that its space has; '
                    f"choose another environment"
                )
            read["mission"] = choices[seen["mission"]]
        return read

    return wrappers.TransformObservation(env, read, spaces.Dict(entries))


def _missions(space: Any) -> dict[str, NDArray[np.bool_]]:
    """Returns the bits ``[M]`` of each mission; empty where there is only one."""
    placeholders = [list(words) for words in space.ordered_placeholders or ()]
    if np.prod([len(words) for words in placeholders]) > _MOST_MISSIONS:
        return {}
    missions = {}
    for chosen in itertools.product(*placeholders):
        ones = [
            np.array([word == one for word in words])
            for one, words in zip(chosen, placeholders, strict=True)
        ]
        text = space.mission_func(*chosen)
        missions[text] = np.concatenate(ones) if ones else np.zeros(0, np.bool_)
    return missions


SUITE = PackagedSuite(
    prefix="minigrid/",
    package="minigrid",
    pattern=r"MiniGrid-(.+)-v(\d+)",
    wrap=_wrapped,
)
"""The tasks ``minigrid/*``."""
