"""The convolutions of ``NatureConfig``."""

from __future__ import annotations

from torch import nn

from tengen.nets.modules.layers import make_relu
from tengen.nets.nature import NatureConfig

__all__ = ["nature_layers"]


def nature_layers(num_channels: int, config: NatureConfig) -> nn.Sequential:
    """Returns the convolutions for an image with ``num_channels`` channels."""
    layers: list[nn.Module] = []
    for num_outputs, kernel, stride in zip(
        config.channels, config.kernels, config.strides, strict=True
    ):
        layer = nn.Conv2d(num_channels, num_outputs, kernel, stride)
        make_relu(layer)
        layers += [layer, nn.ReLU()]
        num_channels = num_outputs
    return nn.Sequential(*layers)
