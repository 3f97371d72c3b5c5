"""The default networks for environments, and default settings of learners."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tengen.envs import EnvSpec
from tengen.learners import AdamWConfig, LearnerConfig
from tengen.nets import MlpConfig
from tengen.nets.impala import ImpalaConfig
from tengen.nets.memory import ImageConfig, MemoryConfig
from tengen.nets.nature import NatureConfig

# Minimum image side for Nature DQN's three convolutions; smaller images are boards.
_SMALLEST_SCREEN = 36


def shows_screens(spec: EnvSpec) -> bool:
    """Returns whether all images are screens, such as Atari's: 36 pixels or larger."""
    images = [s.shape for s in spec.observations.values() if len(s.shape) == 3]
    return bool(images) and min(map(max, images)) >= _SMALLEST_SCREEN


def shows_boards(spec: EnvSpec) -> bool:
    """Returns whether some image observation is a small board, such as MinAtar's."""
    has_images = any(len(s.shape) == 3 for s in spec.observations.values())
    return has_images and not shows_screens(spec)


def net_for(
    spec: EnvSpec,
    of_vectors: MlpConfig | None = None,
    *,
    standardizes: bool = False,
    layer_norm: bool = False,
) -> MemoryConfig:
    """Returns the default network without an LSTM for an environment's observations.

    The network divides the pixels of an image by their maximum. It standardizes other
    inputs if one of them has a large bound.

    Source: Espeholt et al. 2018, "IMPALA" (arXiv:1802.01561), figure 3, right, for the
    deep network.

    Args:
        spec: The description of the environment.
        of_vectors: The network for observations without images; None for the default.
        standardizes: Whether inputs that are not images are always standardized.
        layer_norm: Whether a network for images has layer normalization; then it is
            never the deep residual one.
    """
    images = {n: s.shape for n, s in spec.observations.items() if len(s.shape) == 3}
    net: MemoryConfig = of_vectors or MlpConfig()
    if images:
        scales = tuple(spec.pixel_scales.get(name, 1.0) for name in images)
        net = dataclasses.replace(
            _net_of_images(spec, list(images.values()), layer_norm=layer_norm),
            pixel_scale=scales[0] if len(set(scales)) == 1 else scales,
        )
    return dataclasses.replace(net, standardizes=standardizes or spec.has_large_vectors)


def _net_of_images(
    spec: EnvSpec, images: Sequence[tuple[int, ...]], *, layer_norm: bool
) -> ImageConfig:
    if shows_screens(spec):
        # Stack grey screens, because a single one does not show how objects move.
        is_grey = all(min(shape) == 1 for shape in images)
        if spec.is_hard and not spec.is_partial and not layer_norm:
            # SEED RL's network for football has four sections of layers, and reads four
            # stacked mini maps, because a single one does not show how players move.
            return ImpalaConfig(channels=(16, 32, 32, 32), num_frames=4)
        if spec.is_hard and not layer_norm:
            return ImpalaConfig(num_frames=4 if is_grey else 1)
        return NatureConfig(num_frames=4 if is_grey else 1, layer_norm=layer_norm)
    # Young and Tian 2019, "MinAtar", section 4: one layer, for boards of 10x10.
    return NatureConfig(
        channels=(16,), kernels=(3,), strides=(1,), num_units=128, layer_norm=layer_norm
    )


def plain_learner(
    *,
    batch_size: int,
    learning_rate: float,
    max_grad_norm: float,
    epsilon: float = 1e-8,
    cooldown: float = 1.0,
    average_decay: float = 0.0,
) -> LearnerConfig:
    """Returns a learner with Adam, without weight decay and warm-up.

    A batch is one shard. See ``LearnerConfig`` and ``AdamWConfig`` for the arguments.
    """
    return LearnerConfig(
        batch_size=batch_size,
        num_shards=1,
        optimizer=AdamWConfig(
            learning_rate=learning_rate,
            weight_decay=0.0,
            num_warmup_steps=0,
            cooldown=cooldown,
            max_grad_norm=max_grad_norm,
            average_decay=average_decay,
            epsilon=epsilon,
        ),
    )
