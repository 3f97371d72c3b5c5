"""Random network distillation: the novelty of observations as a prediction error.

Legend: B batch, N entries of an observation.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from tengen.nets.config import NetConfig
from tengen.nets.modules.layers import flat_inputs
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.tensors import Signature, TensorSpec

__all__ = ["FEATURES", "Novelty", "Standardized", "feature_net"]

FEATURES = "features"
"""Name of the output of a ``feature_net``."""
_NUM_FEATURES = 64
# Standardized entries are clipped to this number of deviations, as in the paper.
_MOST = 5.0
# Settings of a network that evaluates a single observation, already standardized.
_PLAIN = {"num_frames": 1, "lstm_units": 0, "standardizes": False, "pixel_scale": 1.0}


class Standardized(nn.Module):
    """Standardizes each entry of observations, and clips it to [-5, 5].

    A random network cannot adapt to the scale of its inputs, and the pixels that never
    change would dominate its features.
    """

    def __init__(self, observations: Mapping[str, TensorSpec]) -> None:
        """Creates a module without statistics.

        Args:
            observations: The specs of the observations, by name.
        """
        super().__init__()
        self.specs = {n: TensorSpec(shape=s.shape) for n, s in observations.items()}
        self.standards = nn.ModuleList(
            Standard(spec.num_entries) for spec in self.specs.values()
        )

    def forward(self, inputs: Tensors) -> Tensors:
        """Returns the observations among ``inputs`` ``[B, ...]``, standardized."""
        seen = {}
        for (name, spec), standard in zip(
            self.specs.items(), self.standards, strict=True
        ):
            rows = standard(flat_inputs(inputs, [name])).clamp(-_MOST, _MOST)
            seen[name] = rows.reshape(-1, *spec.shape)
        return seen


def feature_net(
    config: NetConfig, observations: Mapping[str, TensorSpec], num_features: int
) -> Net:
    """Returns a new network from standardized observations to ``FEATURES``.

    Its kind and size are those of ``config``, without memory. Its weights are random
    and orthogonal, with a gain for ReLU, so that it preserves distances.

    Args:
        config: The config of the agent's network.
        observations: The specs of the standardized observations, by name.
        num_features: Number of features.
    """
    fields = {field.name for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    plain = {name: value for name, value in _PLAIN.items() if name in fields}
    config = dataclasses.replace(config, **plain)  # type: ignore[type-var]
    features = {FEATURES: TensorSpec(shape=(num_features,))}
    net: Net = config.build(Signature(inputs=dict(observations), outputs=features))
    for name, weight in net.named_parameters():
        if weight.dim() > 1:
            nn.init.orthogonal_(weight, 2.0**0.5)
        elif name.endswith("bias"):
            nn.init.zeros_(weight)
    return net


class Novelty(nn.Module):
    """The error of a network that learns to predict a random network's features.

    The error is small for observations like those that the predictor was trained on.
    In training mode the module adds its inputs to the statistics of observations.

    Source: Burda et al. 2018, "Exploration by Random Network Distillation"
    (arXiv:1810.12894), sections 2.2 and 2.4.
    Differs from the paper: both networks have the kind and size of the agent's network,
    and the predictor is no larger than the target; the statistics begin with the first
    batch, not with steps of a random policy.
    """

    def __init__(
        self, config: NetConfig, observations: Mapping[str, TensorSpec]
    ) -> None:
        """Creates networks with random weights from torch's random generator.

        Args:
            config: The config of the agent's network.
            observations: The specs of the observations, by name.
        """
        super().__init__()
        self.standardized = Standardized(observations)
        specs = self.standardized.specs
        self.target = feature_net(config, specs, _NUM_FEATURES).requires_grad_(False)
        self.predictor = feature_net(config, specs, _NUM_FEATURES)

    def forward(self, inputs: Tensors) -> Tensor:
        """Returns the mean squared error of the predicted features, ``[B]``.

        Args:
            inputs: The observations ``[B, ...]``, by name, and possibly other tensors.
        """
        return self.errors(self.standardized(inputs))

    def errors(self, seen: Tensors) -> Tensor:
        """Does ``forward`` for observations that are already standardized."""
        with torch.no_grad():
            features = self.target.answer(seen, {})[0][FEATURES]
        predicted = self.predictor.answer(seen, {})[0][FEATURES]
        return (predicted - features).square().mean(-1)
