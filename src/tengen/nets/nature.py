"""The convolutions of the first Atari agents, for images: how large they are.

Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning".
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.nets.inputs import MAX_CHANNELS, MAX_UNITS, check_images
from tengen.nets.memory import MemoryConfig
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.nets.modules.torso_net import TorsoNet

__all__ = ["NatureConfig"]

_MAX_KERNEL = 64


@dataclass(frozen=True, kw_only=True)
class NatureConfig(MemoryConfig):
    """Convolutions without padding and a dense layer, for each output a linear layer.

    The defaults are the paper's, for 84 x 84. For images of 10 x 10, as those of
    MinAtar: ``channels=[16] kernels=[3] strides=[1] num_units=128``.
    """

    kind: Literal["nature"] = "nature"
    """Tells this config from the other networks'."""
    channels: tuple[int, ...] = bounded((32, 64, 64), 1, MAX_CHANNELS)
    """Channels of each convolution."""
    kernels: tuple[int, ...] = bounded((8, 4, 3), 1, _MAX_KERNEL)
    """Cells along a side that it sees, one a convolution."""
    strides: tuple[int, ...] = bounded((4, 2, 1), 1, _MAX_KERNEL)
    """Cells between two that it sees from, one a convolution."""
    num_units: int = bounded(512, 1, MAX_UNITS)
    """Units of the dense layer."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_range("convolutions", len(self.channels), 1, 16)
        for name in ("kernels", "strides"):
            values = getattr(self, name)
            rule = f"must be {len(self.channels)} numbers, one a convolution; complete"
            check(len(values) == len(self.channels), name, values, f"{rule} them")

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted`` and the state; see ``NetConfig.signature``.

        Raises:
            UsageError: There is no image, or one that is too small.
        """
        for name, image in check_images(self, wanted).items():
            sides = image.height, image.width
            check(
                all(self._side_after(side) >= 1 for side in sides),
                f"{name} of net.kind nature",
                f"{image.height} x {image.width}",
                "must be larger, or the convolutions smaller; set net.channels=[16] "
                "net.kernels=[3] net.strides=[1] net.num_units=128",
            )
        return dataclasses.replace(wanted, state=self.state(wanted))

    def build(self, wanted: Signature) -> TorsoNet:
        """Returns a new network; see ``NetConfig.build``."""
        from tengen.nets.modules.images import ImageTorso
        from tengen.nets.modules.nature import nature_layers
        from tengen.nets.modules.torso_net import TorsoNet

        def torso(seen: Signature) -> ImageTorso:
            return ImageTorso(seen, lambda n: nature_layers(n, self), self.num_units)

        return TorsoNet(wanted, self, torso)

    def _side_after(self, side: int) -> int:
        """Returns the cells along a side that the last convolution answers."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side
