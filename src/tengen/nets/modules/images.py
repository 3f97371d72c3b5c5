"""``ImageTorso``, which computes one feature vector from images and other inputs.

Legend: B batch, C channels, H W image, N units.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from tengen.nets.memory import Image, ImageConfig, images_of
from tengen.nets.modules.centre import Centre
from tengen.nets.modules.layers import (
    LayerNorm,
    flat_inputs,
    make_relu,
    num_flat,
)
from tengen.nets.modules.net import Tensors
from tengen.nets.modules.standard import Standard
from tengen.nets.modules.torso_net import Torso, TorsoNet
from tengen.tensors import Signature


class ImageTorso(Torso):
    """A torso with convolutions for each image and one dense layer for all images.

    The mean image is subtracted from uint8 images (``Centre``). Inputs that are not
    images are optionally standardized, then appended to the dense layer's output.
    """

    def __init__(
        self,
        wanted: Signature,
        make_layers: Callable[[int], nn.Sequential],
        num_units: int,
        *,
        pixel_scales: Mapping[str, float],
        standardizes: bool = False,
        layer_norm: bool = False,
    ) -> None:
        """Creates a torso with random weights.

        Args:
            wanted: The requested signature, with at least one image.
            make_layers: Returns the layers for an image, given its number of channels.
                The input of the layers is ``[B, C, H, W]`` float32.
            num_units: Number of units of the dense layer.
            pixel_scales: Divisor of each image's pixels, by the image's name.
            standardizes: Whether to standardize inputs that are not images.
            layer_norm: Whether layer normalization follows the dense layer.
        """
        images = images_of(wanted)
        others = tuple(name for name in wanted.inputs if name not in images)
        num_others = num_flat(wanted, others)
        super().__init__(num_units + num_others)
        self._images = images
        self._others = others
        self._scales = [1.0 / pixel_scales[name] for name in images]
        self.centres = nn.ModuleList(
            Centre(image.num_channels, image.height, image.width)
            if wanted.inputs[name].dtype == "uint8"
            else _Numbers()
            for name, image in images.items()
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
        self.norm = LayerNorm(num_units) if layer_norm else nn.Identity()
        self.standard: nn.Module = nn.Identity()
        if others and standardizes:
            self.standard = Standard(num_others)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """See ``Net.fix_dtype``.

        Casts the weights to ``dtype`` once, instead of once per batch.
        """
        for layers, scale in zip(self.layers, self._scales, strict=True):
            _first(layers).weight.data.mul_(scale)
        self._scales = [1.0] * len(self._scales)
        self.layers.to(dtype)
        self.dense.to(dtype)
        self.norm.to(dtype)
        for module in self.layers.modules():
            if isinstance(module, nn.Conv2d):
                weight = module.weight.data
                module.weight.data = weight.contiguous(
                    memory_format=torch.channels_last
                )

    def forward(self, inputs: Tensors) -> Tensor:
        """Returns the torso's output ``[B, N]`` for the inputs; see ``Torso``."""
        seen = [
            _convolved(_seen(centre, inputs[name], image), layers, scale).flatten(1)
            for (name, image), centre, layers, scale in zip(
                self._images.items(),
                self.centres,
                self.layers,
                self._scales,
                strict=True,
            )
        ]
        x: Tensor = self.norm(self.dense(torch.cat(seen, dim=1))).relu()
        if not self._others:
            return x
        rows = self.standard(flat_inputs(inputs, self._others))
        return torch.cat([x, rows], dim=1)


def _first(layers: nn.Module) -> nn.Conv2d:
    """Returns the first convolution in ``layers``, which reads the image."""
    return next(m for m in layers.modules() if isinstance(m, nn.Conv2d))


def _convolved(planes: Tensor, layers: nn.Module, scale: float) -> Tensor:
    """Returns the output of ``layers`` for ``planes * scale``.

    Scales the first layer's thousands of weights instead of a batch's millions of
    pixels.
    """
    assert isinstance(layers, nn.Sequential)
    if scale == 1.0:
        answer: Tensor = layers(planes)
        return answer
    first = layers[0]
    assert isinstance(first, nn.Conv2d)
    planes = nn.functional.conv2d(
        planes, first.weight * scale, first.bias, first.stride, first.padding
    )
    answer = layers[1:](planes)
    return answer


class _Numbers(nn.Module):
    """Casts images that are not uint8 to a dtype, in place of a ``Centre``."""

    def forward(self, images: Tensor, dtype: torch.dtype) -> Tensor:
        return images.contiguous(memory_format=torch.channels_last).to(dtype)


def _seen(centre: nn.Module, tensor: Tensor, image: Image) -> Tensor:
    """Returns centred images as ``[B, C, H, W]``, in autocast's dtype or float32."""
    kind = tensor.device.type
    dtype = torch.float32
    if torch.is_autocast_enabled(kind):
        dtype = torch.get_autocast_dtype(kind)
    if not image.is_channel_first:
        tensor = tensor.permute(0, 3, 1, 2)
    planes: Tensor = centre(tensor, dtype)
    return planes


def image_net(
    wanted: Signature,
    config: ImageConfig,
    make_layers: Callable[[int], nn.Sequential],
    num_units: int,
    *,
    layer_norm: bool = False,
) -> TorsoNet:
    """Returns a new network with an ``ImageTorso``.

    Args:
        wanted: The inputs and outputs that an agent needs.
        config: The network's config.
        make_layers: Returns the layers for an image, given its number of channels.
        num_units: Number of units of the dense layer.
        layer_norm: Whether layer normalization follows the dense layer.
    """

    def torso(seen: Signature) -> ImageTorso:
        return ImageTorso(
            seen,
            make_layers,
            num_units,
            pixel_scales=config.pixel_scales(seen),
            standardizes=config.standardizes,
            layer_norm=layer_norm,
        )

    return TorsoNet(wanted, config, torso)
