"""Settings of a network's memory: past images and an LSTM. Imports no torch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tengen.bounds import bounded
from tengen.config import check
from tengen.nets.config import NetConfig
from tengen.nets.inputs import MAX_UINT8, MAX_UNITS, images_of
from tengen.tensors import FRAMES, Signature, TensorSpec

if TYPE_CHECKING:
    from torch import nn

    from tengen.nets.modules.torso_net import TorsoNet

__all__ = ["ImageConfig", "MemoryConfig"]


@dataclass(frozen=True, kw_only=True)
class MemoryConfig(NetConfig):
    """Base of the configs of networks that may see past images and have an LSTM."""

    num_frames: int = bounded(1, 1, 64, "use 4 for Atari")
    """Number S of images that the network sees at once, 1 to 64: the newest one and
    those of the steps before. Images before an episode's first are black. A step is
    sent and stored with only its own image."""
    lstm_units: int = bounded(0, 0, MAX_UNITS, "use 64, or 256 for images")
    """Units of an LSTM after the torso, 0 to 16384; 0: no LSTM. More units remember
    more."""
    lstm_forget_bias: float = bounded(1.0, 0, 10, "use 1, or 0")
    """Number added to the initial bias of the LSTM's forget gate, which torch draws
    around 0; 0 to 10. With 0 the cell loses about half of its content, and of its
    gradient, at every step. With 1 it keeps about three quarters, so that dependencies
    over twenty steps can be learned."""

    standardizes: bool = False
    """Whether inputs that are no images are standardized: their running mean is
    subtracted, and they are divided by their running standard deviation, over all data
    learned from."""

    def state(self, wanted: Signature) -> dict[str, TensorSpec]:
        """Returns the network's state: its past images and the LSTM's state, if any."""
        state = {}
        if self.num_frames > 1:
            for name in images_of(wanted):
                image = wanted.inputs[name]
                shape = (self.num_frames - 1, *image.shape)
                state[FRAMES + name] = TensorSpec(dtype=image.dtype, shape=shape)
        if self.lstm_units:
            spec = TensorSpec(shape=(self.lstm_units,))
            state |= {"lstm/hidden": spec, "lstm/cell": spec}
        return state


@dataclass(frozen=True, kw_only=True)
class ImageConfig(MemoryConfig):
    """Base of the configs of networks for images."""

    pixel_scale: float | tuple[float, ...] = bounded(
        1.0, 0, above=True, rule="must be positive; use 255"
    )
    """What the pixels of images that are no bytes are divided by, above 0: a number for
    all images, or a number for each image. Bytes are divided by 255."""

    def pixel_scales(self, wanted: Signature) -> dict[str, float]:
        """Returns what to divide the pixels of each image by, by its name.

        Raises:
            UsageError: There are fewer or more scales than images.
        """
        images, scales = images_of(wanted), self.pixel_scale
        if not isinstance(scales, tuple):
            scales = (scales,) * len(images)
        check(
            len(scales) == len(images),
            "net.pixel_scale",
            self.pixel_scale,
            f"must be one number, or {len(images)}, one for each image; use 255",
        )
        return {
            name: MAX_UINT8 if wanted.inputs[name].dtype == "uint8" else scale
            for name, scale in zip(images, scales, strict=True)
        }

    def torso_net(
        self,
        wanted: Signature,
        make_layers: Callable[[int], nn.Sequential],
        num_units: int,
    ) -> TorsoNet:
        """Returns a new network: layers for each image, then a dense layer.

        Args:
            wanted: The inputs and outputs that an agent needs.
            make_layers: Returns the layers for an image with a number of channels.
            num_units: Units of the dense layer.
        """
        from tengen.nets.modules.images import ImageTorso
        from tengen.nets.modules.torso_net import TorsoNet

        def torso(seen: Signature) -> ImageTorso:
            return ImageTorso(
                seen,
                make_layers,
                num_units,
                pixel_scales=self.pixel_scales(seen),
                standardizes=self.standardizes,
            )

        return TorsoNet(wanted, self, torso)
