"""Builds the convolutional network of the Nature DQN paper from a ``NatureConfig``."""

from __future__ import annotations

from torch import nn

from tengen.nets.modules.images import image_net
from tengen.nets.modules.layers import LayerNorm, make_relu
from tengen.nets.modules.torso_net import TorsoNet
from tengen.nets.nature import NatureConfig
from tengen.tensors import Signature


def build(wanted: Signature, config: NatureConfig) -> TorsoNet:
    """Returns a new network with random weights; see ``NetConfig.build``."""
    return image_net(
        wanted,
        config,
        lambda n: _layers(n, config),
        config.num_units,
        layer_norm=config.layer_norm,
    )


def _layers(num_channels: int, config: NatureConfig) -> nn.Sequential:
    """Returns the convolutions for an image with ``num_channels`` channels."""
    layers: list[nn.Module] = []
    for num_outputs, kernel, stride in zip(
        config.channels, config.kernels, config.strides, strict=True
    ):
        layer = nn.Conv2d(num_channels, num_outputs, kernel, stride)
        make_relu(layer)
        norm = [LayerNorm(num_outputs)] if config.layer_norm else []
        layers += [layer, *norm, nn.ReLU()]
        num_channels = num_outputs
    return nn.Sequential(*layers)
