"""Random network distillation: the novelty of observations as a prediction error.

Legend: T time, B batch, D features of an embedding.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tengen.nets.config import NetConfig
from tengen.nets.modules.layers import flat_inputs, shaped
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.tensors import EMBEDDING, NOVELTY, OBSERVATION, Signature, TensorSpec

_FEATURES = "features"
_NUM_FEATURES = 64
# Standardized entries are clipped to this number of deviations, as in the paper.
_MOST = 5.0
# Settings of a network that evaluates a single observation, already standardized.
_PLAIN = {
    "num_frames": 1,
    "lstm_units": 0,
    "standardizes": False,
    "pixel_scale": 1.0,
    "shares_parameters": True,
}


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
            seen[name] = shaped(rows, spec.shape)
        return seen


def _feature_net(
    config: NetConfig, observations: Mapping[str, TensorSpec], num_features: int
) -> Net:
    """Returns a new network from standardized observations to ``features``.

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
    features = {_FEATURES: TensorSpec(shape=(num_features,))}
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
        self.target = _feature_net(config, specs, _NUM_FEATURES).requires_grad_(False)
        self.predictor = _feature_net(config, specs, _NUM_FEATURES)

    def forward(self, inputs: Tensors) -> Tensor:
        """Returns the mean squared error of the predicted features, ``[B]``.

        Args:
            inputs: The observations ``[B, ...]``, by name, and possibly other tensors.
        """
        return self.errors(self.standardized(inputs))

    def errors(self, seen: Tensors) -> Tensor:
        """Does ``forward`` for observations that are already standardized."""
        features = self.target.answer(seen, {})[0][_FEATURES]
        predicted = self.predictor.answer(seen, {})[0][_FEATURES]
        errors = predicted - features
        return (errors * errors).mean(-1)


class Judged(NamedTuple):
    """What a ``CuriousNet`` finds in B observations."""

    embedding: Tensor
    """The output ``EMBEDDING``, ``[B, D]``."""
    errors: Tensor
    """``[B]``, the errors of the predictor, which are its loss."""
    novelty: Tensor
    """The output ``NOVELTY``, ``[B]``, which no loss uses."""


class CuriousNet(Net):
    """A network for some outputs, and separate networks for EMBEDDING and NOVELTY.

    The separate networks see only the current observation. Gradients of one part never
    reach another part.

    Attributes:
        inner: The network for all other outputs, with the state.
        embedding: The network of the embedding, whose inputs are standardized.
        novelty: The random network and its predictor.
        errors: The statistics of the predictor's errors.
    """

    def __init__(self, wanted: Signature, config: NetConfig) -> None:
        """Creates networks with random weights from torch's generator."""
        super().__init__(wanted, config)
        own = (EMBEDDING, NOVELTY)
        others = {n: spec for n, spec in wanted.outputs.items() if n not in own}
        self.inner: Net = config.build(dataclasses.replace(wanted, outputs=others))
        seen = {
            name: spec
            for name, spec in wanted.inputs.items()
            if name.split("/")[0] == OBSERVATION
        }
        self.novelty = Novelty(config, seen)
        specs = self.novelty.standardized.specs
        (num_features,) = wanted.outputs[EMBEDDING].shape
        self.embedding = _feature_net(config, specs, num_features)
        self.errors = Standard(1)

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns all outputs and the next state; see ``Net.answer``."""
        self.inner.compute_dtype = self.compute_dtype
        outputs, state = self.inner.answer(inputs, state)
        judged = self.judge(inputs)
        own = {EMBEDDING: judged.embedding, NOVELTY: judged.novelty}
        return {**outputs, **own}, state

    def unroll(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> tuple[Tensors, Tensors]:
        """Returns the inner network's outputs only; see ``Net.unroll``.

        A learner evaluates them for several networks and parts of an item, but needs
        ``judge`` once.
        """
        self.inner.compute_dtype = self.compute_dtype
        return self.inner.unroll(inputs, state, is_first)

    def judge(self, inputs: Tensors) -> Judged:
        """Returns the embeddings and the novelty of observations.

        In training mode, adds the observations and errors to the statistics.

        Args:
            inputs: The network's inputs ``[B, ...]``, by name.
        """
        seen = self.novelty.standardized(inputs)
        errors = self.novelty.errors(seen)
        novelty = self.errors(errors[:, None]).squeeze(1) + 1.0
        return Judged(self.embedding.answer(seen, {})[0][_FEATURES], errors, novelty)

    def states_of_inputs(
        self, inputs: Tensors, state: Tensors, is_first: Tensor
    ) -> Tensors:
        """See ``Net.states_of_inputs``."""
        return self.inner.states_of_inputs(inputs, state, is_first)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """See ``Net.fix_dtype``; novelty is a small difference, always in float32."""
        super().fix_dtype(dtype)
        self.inner.fix_dtype(dtype)


def build(wanted: Signature, config: NetConfig) -> CuriousNet:
    """Returns a new network with random weights; see ``NetConfig.build``."""
    return CuriousNet(wanted, config)
