"""From images and whatever else there is to one vector.

Legend: B batch, C channels, H W image, N units.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from tengen.nets.inputs import Image, images_of
from tengen.nets.modules.layers import (
    MAX_UINT8,
    as_float,
    flat_inputs,
    make_relu,
    num_flat,
)
from tengen.nets.modules.net import Tensors
from tengen.nets.modules.torso_net import Torso
from tengen.tensors import Signature

__all__ = ["ImageTorso"]


class ImageTorso(Torso):
    """Convolutions of each image, and one dense layer behind all of them.

    Inputs that are no images stand beside what the dense layer answers.
    """

    def __init__(
        self,
        wanted: Signature,
        make_layers: Callable[[int], nn.Sequential],
        num_units: int,
    ) -> None:
        """Makes the layers with random weights.

        Args:
            wanted: Has an image at least.
            make_layers: From the channels of an image to the layers that read
                ``[B, C, H, W]`` float32 of it.
            num_units: Of the dense layer.
        """
        images = images_of(wanted)
        others = tuple(name for name in wanted.inputs if name not in images)
        super().__init__(num_units + num_flat(wanted, others))
        self._images = images
        self._others = others
        # Whose numbers are to be in [0, 1].
        self._of_bytes = frozenset(
            n for n in images if wanted.inputs[n].dtype == "uint8"
        )
        self.layers = nn.ModuleList(
            make_layers(image.num_channels) for image in images.values()
        )
        with torch.no_grad():
            num_seen = sum(
                layers(
                    torch.zeros(1, image.num_channels, image.height, image.width)
                ).numel()
                for image, layers in zip(images.values(), self.layers, strict=True)
            )
        self.dense = nn.Linear(num_seen, num_units)
        make_relu(self.dense)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """See ``Net.fix_dtype``.

        The weights are in ``dtype`` then, and not made so with every batch; and those
        that read bytes are divided by 255 in their stead.
        """
        for (name, _), layers in zip(self._images.items(), self.layers, strict=True):
            first = next(m for m in layers.modules() if isinstance(m, nn.Conv2d))
            if name in self._of_bytes:
                first.weight.data.mul_(1.0 / MAX_UINT8)
        self._of_bytes = frozenset()
        self.layers.to(dtype)
        self.dense.to(dtype)
        for module in self.layers.modules():
            if isinstance(module, nn.Conv2d):
                weight = module.weight.data
                module.weight.data = weight.contiguous(
                    memory_format=torch.channels_last
                )

    def forward(self, inputs: Tensors) -> Tensor:
        """Returns what they make of the inputs; see ``Torso``."""
        seen = [
            layers(_planes(inputs[name], image, name in self._of_bytes)).flatten(1)
            for (name, image), layers in zip(
                self._images.items(), self.layers, strict=True
            )
        ]
        x: Tensor = self.dense(torch.cat(seen, dim=1)).relu()
        if not self._others:
            return x
        return torch.cat([x, flat_inputs(inputs, self._others)], dim=1)


def _planes(tensor: Tensor, image: Image, is_scaled: bool) -> Tensor:
    """Returns an image as ``[B, C, H, W]`` of the arithmetic that is asked for.

    Args:
        tensor: As it was observed.
        image: How it lies.
        is_scaled: Whether bytes become numbers in [0, 1].
    """
    kind = tensor.device.type
    dtype = torch.float32
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    if not image.is_channel_first:
        tensor = tensor.permute(0, 3, 1, 2)
    # Convolutions on CPUs are faster so, and on GPUs in fewer digits; bytes are moved
    # before they are numbers of four.
    tensor = tensor.contiguous(memory_format=torch.channels_last)
    return as_float(tensor, dtype) if is_scaled else tensor.to(dtype)
