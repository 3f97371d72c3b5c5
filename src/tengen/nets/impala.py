"""The config of IMPALA's deep residual network, for images.

Source: Espeholt et al. 2018, "IMPALA: Scalable Distributed Deep-RL with Importance
Weighted Actor-Learner Architectures", figure 3, right.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check_range
from tengen.nets.memory import MAX_CHANNELS, MAX_UNITS, ImageConfig, check_images
from tengen.tensors import Signature


@dataclass(frozen=True, kw_only=True)
class ImpalaConfig(ImageConfig):
    """The config of IMPALA's network: sections, a dense layer, and output layers.

    A section is a convolution, a pooling layer that halves the image's sides, and two
    residual blocks. Images of all sizes are supported.
    """

    kind: Literal["impala"] = "impala"
    """The kind of network."""
    channels: tuple[int, ...] = bounded((16, 32, 32), 1, MAX_CHANNELS)
    """Numbers of channels, one for each section, 1 to 2048."""
    num_units: int = bounded(256, 1, MAX_UNITS)
    """Number of units of the dense layer, 1 to 16384."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_range("number of channels", len(self.channels), 1, 16)

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted`` plus the network's state; see ``NetConfig.signature``.

        Raises:
            UsageError: No input is an image.
        """
        check_images(self, wanted)
        self.pixel_scales(wanted)
        return dataclasses.replace(wanted, state=self.state(wanted))
