"""The small network for vector observations, with an unbounded baseline."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tengen.nets.spec import FeatureSpec, MlpConfig

__all__ = ["Mlp"]


def _tower(num_inputs: int, num_outputs: int, config: MlpConfig) -> nn.Sequential:
    layers: list[nn.Module] = []
    for _ in range(config.num_layers):
        layers += [nn.Linear(num_inputs, config.num_units), nn.Tanh()]
        num_inputs = config.num_units
    layers.append(nn.Linear(num_inputs, num_outputs))
    return nn.Sequential(*layers)


class Mlp(nn.Module):
    """Policy and baseline of a vector observation, each with its own layers.

    Attributes:
        features: What it was built for; ``num_planes`` is the observation's length.
        config: Its size.
    """

    def __init__(self, features: FeatureSpec, config: MlpConfig) -> None:
        """Makes a network with random weights from torch's generator."""
        super().__init__()
        self.features = features
        self.config = config
        self.policy = _tower(features.num_planes, features.num_actions, config)
        self.baseline = _tower(features.num_planes, 1, config)
        # A nearly uniform first policy explores; a nearly zero baseline is unbiased.
        for tower in (self.policy, self.baseline):
            last = tower[-1]
            assert isinstance(last, nn.Linear)
            with torch.no_grad():
                last.weight.mul_(0.01)
                last.bias.zero_()

    def forward(self, observations: Tensor) -> tuple[Tensor, Tensor]:
        """Returns policy logits and the baseline.

        Args:
            observations: ``[B, num_planes]`` float32, or ``[B, num_planes, 1, 1]`` as
                ports show them.

        Returns:
            ``[B, A]`` float32 logits and ``[B]`` float32 expected return, unbounded,
            of the acting side.
        """
        rows = observations.flatten(1)
        return self.policy(rows), self.baseline(rows).squeeze(1)
