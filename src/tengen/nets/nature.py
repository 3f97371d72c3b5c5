"""The config of the convolutional network of the Nature DQN paper, for images.

Source: Mnih et al. 2015, "Human-level control through deep reinforcement learning".
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.nets.memory import MAX_CHANNELS, MAX_UNITS, ImageConfig, check_images
from tengen.tensors import Signature

_MAX_KERNEL = 64


@dataclass(frozen=True, kw_only=True)
class NatureConfig(ImageConfig):
    """The config of a network of convolutions, a dense layer, and output layers.

    The defaults are the paper's, for images of 84 x 84 pixels. For images of 10 x 10
    pixels, as in MinAtar, use ``channels=[16] kernels=[3] strides=[1] num_units=128``.
    """

    kind: Literal["nature"] = "nature"
    """The kind of network."""
    channels: tuple[int, ...] = bounded((32, 64, 64), 1, MAX_CHANNELS)
    """Numbers of channels, one for each convolution, 1 to 2048."""
    kernels: tuple[int, ...] = bounded((8, 4, 3), 1, _MAX_KERNEL)
    """Kernel sides in pixels, one for each convolution, 1 to 64."""
    strides: tuple[int, ...] = bounded((4, 2, 1), 1, _MAX_KERNEL)
    """Strides in pixels, one for each convolution, 1 to 64."""
    num_units: int = bounded(512, 1, MAX_UNITS)
    """Number of units of the dense layer, 1 to 16384."""
    layer_norm: bool = False
    """Whether layer normalization precedes each ReLU."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_range("convolutions", len(self.channels), 1, 16)
        for name in ("kernels", "strides"):
            values = getattr(self, name)
            rule = f"must be {len(self.channels)} numbers, one per layer; complete"
            check(len(values) == len(self.channels), name, values, f"{rule} them")

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted`` plus the network's state; see ``NetConfig.signature``.

        Raises:
            UsageError: No input is an image, or an image is too small.
        """
        self.pixel_scales(wanted)
        for name, image in check_images(self, wanted).items():
            sides = image.height, image.width
            check(
                all(self._side_after(side) >= 1 for side in sides),
                f"{name} of net.kind nature",
                f"{image.height} x {image.width}",
                "is too small for the convolutions; set net.channels=[16] "
                "net.kernels=[3] net.strides=[1] net.num_units=128",
            )
        return dataclasses.replace(wanted, state=self.state(wanted))

    def _side_after(self, side: int) -> int:
        """Returns the output side of the last convolution for an image of ``side``."""
        for kernel, stride in zip(self.kernels, self.strides, strict=True):
            side = (side - kernel) // stride + 1
        return side
