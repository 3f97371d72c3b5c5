"""POPGym's partially observable tasks, such as ``popgym/RepeatPreviousEasy``.

Observations that are not a ``Box`` become one-hot vectors of bools, concatenated over
their components.

Source: Morad et al. 2023, "POPGym: Benchmarking Partially Observable Reinforcement
Learning" (arXiv:2303.01859).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tengen.envs.suites.suite import PackagedSuite


def _flat(env: Any) -> Any:
    from gymnasium import spaces, wrappers

    if isinstance(env.observation_space, spaces.Box):
        return env
    flat = wrappers.FlattenObservation(env)
    length: Any = flat.observation_space.shape
    return wrappers.TransformObservation(
        flat, lambda seen: seen.astype(np.bool_), spaces.MultiBinary(length)
    )


SUITE = PackagedSuite(
    prefix="popgym/",
    package="popgym",
    pattern=r"popgym-(.+)-v(\d+)",
    wrap=_flat,
    is_partial=True,
)
"""The suite of the tasks ``popgym/*``."""
