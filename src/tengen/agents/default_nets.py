"""Networks for what an environment shows, where nobody chose one."""

from __future__ import annotations

from tengen.envs import EnvSpec
from tengen.nets import MlpConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.memory import MemoryConfig
from tengen.nets.nature import NatureConfig

__all__ = ["net_for", "shows_screens"]

# What the three layers of the network for Atari's screens need.
_SMALLEST_SCREEN = 36


def shows_screens(spec: EnvSpec) -> bool:
    """Returns whether an observation is a picture, and not a board or numbers."""
    images = [s.shape for s in spec.observations.values() if len(s.shape) == 3]
    return bool(images) and min(map(max, images)) >= _SMALLEST_SCREEN


def net_for(spec: EnvSpec, of_vectors: MlpConfig | None = None) -> MemoryConfig:
    """Returns a network without memory for an environment's observations.

    Source: Espeholt et al. 2018, "IMPALA" (arXiv:1802.01561), figure 3, right, of the
    deep one.

    Args:
        spec: The environment.
        of_vectors: The network where no observation is an image; None for the default.
    """
    images = [s.shape for s in spec.observations.values() if len(s.shape) == 3]
    if not images:
        return of_vectors or MlpConfig()
    if shows_screens(spec):
        # One grey screen does not tell what moves where.
        is_grey = all(min(shape) == 1 for shape in images)
        if spec.is_hard and not spec.is_partial:
            # SEED RL's for football: four sections, and four of its mini maps, as one
            # does not tell what moves where.
            return ImpalaConfig(channels=(16, 32, 32, 32), num_frames=4)
        if spec.is_hard:
            return ImpalaConfig(num_frames=4 if is_grey else 1)
        return NatureConfig(num_frames=4 if is_grey else 1)
    # Young and Tian 2019, "MinAtar", section 4: one layer, for boards of 10x10.
    return NatureConfig(channels=(16,), kernels=(3,), strides=(1,), num_units=128)
