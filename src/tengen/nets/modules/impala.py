"""Builds IMPALA's deep residual network from an ``ImpalaConfig``.

Legend: B batch, C channels, H W image.
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn import functional

from tengen.nets.impala import ImpalaConfig
from tengen.nets.modules.images import image_net
from tengen.nets.modules.torso_net import TorsoNet
from tengen.tensors import Signature

_NUM_BLOCKS = 2


class _Block(nn.Module):
    """A residual block of two convolutions."""

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(num_channels, num_channels, 3, padding=1)
        self.conv2 = nn.Conv2d(num_channels, num_channels, 3, padding=1)

    def forward(self, x: Tensor) -> Tensor:
        # Not an in-place ReLU, because the residual connection needs x.
        y = self.conv1(functional.relu(x))
        out: Tensor = x + self.conv2(functional.relu(y))
        return out


def build(wanted: Signature, config: ImpalaConfig) -> TorsoNet:
    """Returns a new network with random weights; see ``NetConfig.build``."""
    return image_net(wanted, config, lambda n: _layers(n, config), config.num_units)


def _layers(num_channels: int, config: ImpalaConfig) -> nn.Sequential:
    """Returns the sections and the last ReLU for an image of ``num_channels``."""
    layers: list[nn.Module] = []
    for num_outputs in config.channels:
        layers.append(nn.Conv2d(num_channels, num_outputs, 3, padding=1))
        layers.append(nn.MaxPool2d(3, stride=2, padding=1))
        layers += [_Block(num_outputs) for _ in range(_NUM_BLOCKS)]
        num_channels = num_outputs
    return nn.Sequential(*layers, nn.ReLU())
