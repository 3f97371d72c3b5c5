"""The multi-layer perceptron, with a tower per output or one shared tower."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tengen.nets.mlp import MlpConfig
from tengen.nets.modules.layers import (
    LayerNorm,
    QuantileHead,
    flat_inputs,
    make_small,
    num_flat,
    shaped,
)
from tengen.nets.modules.net import Net, Tensors
from tengen.nets.modules.standard import Standard
from tengen.nets.modules.torso_net import Torso, TorsoNet
from tengen.tensors import FRACTIONS, QUANTILES, Signature, TensorSpec

_TOWERS = {"value": "baseline"}
"""Module names of towers, by output, where the two names differ."""
# Minimum number of units for which lower precision is faster.
_LEAST_UNITS = 128


def _hidden(num_inputs: int, config: MlpConfig) -> list[nn.Module]:
    layers: list[nn.Module] = []
    activation = {"tanh": nn.Tanh, "relu": nn.ReLU}[config.activation]
    for _ in range(config.num_layers):
        norm = [LayerNorm(config.num_units)] if config.layer_norm else []
        layers += [nn.Linear(num_inputs, config.num_units), *norm, activation()]
        num_inputs = config.num_units
    return layers


def _standard(num_inputs: int, config: MlpConfig) -> nn.Module:
    return Standard(num_inputs) if config.standardizes else nn.Identity()


def _tower(
    num_inputs: int, name: str, spec: TensorSpec, config: MlpConfig
) -> nn.Sequential:
    hidden = _hidden(num_inputs, config)
    if name == QUANTILES:
        return nn.Sequential(*hidden, QuantileHead(config.num_units, spec.shape))
    last = nn.Linear(config.num_units, spec.num_entries)
    make_small(last)
    return nn.Sequential(*hidden, last)


class MlpTorso(Torso):
    """A torso of hidden layers, which all outputs share."""

    def __init__(self, wanted: Signature, config: MlpConfig) -> None:
        """Creates a torso with random weights for the inputs in ``wanted``."""
        super().__init__(config.num_units)
        self._names = tuple(wanted.inputs)
        num_inputs = num_flat(wanted, self._names)
        self.standard = _standard(num_inputs, config)
        self.layers = nn.Sequential(*_hidden(num_inputs, config))

    def forward(self, inputs: Tensors) -> Tensor:
        """Returns the torso's output ``[B, N]`` for the inputs; see ``Torso``."""
        rows = self.standard(flat_inputs(inputs, self._names))
        hidden: Tensor = self.layers(rows)
        return hidden


class Mlp(Net):
    """A multi-layer perceptron with a tower of hidden layers for each output.

    Attributes:
        config: The network's config.
    """

    config: MlpConfig

    def __init__(self, wanted: Signature, config: MlpConfig) -> None:
        """Creates a network with random weights from torch's generator."""
        super().__init__(wanted, config)
        num_inputs = num_flat(wanted, wanted.inputs)
        self.standard = _standard(num_inputs, config)
        # The layers of each output's tower, because looking them up takes long.
        self._layers: dict[str, list[nn.Module]] = {}
        for name, spec in self.signature.outputs.items():
            tower = _tower(num_inputs, name, spec, config)
            self.add_module(_TOWERS.get(name, name), tower)
            self._layers[name] = list(tower)

    def answer(self, inputs: Tensors, state: Tensors) -> tuple[Tensors, Tensors]:
        """Returns the outputs in float32, without bounds; see ``Net.answer``."""
        rows = self.standard(flat_inputs(inputs, self.signature.inputs))
        answers = {}
        for name, spec in self.signature.outputs.items():
            *hidden, last = self._layers[name]
            seen = self._climbed(hidden, rows)
            if name == QUANTILES:
                answers[name] = last(seen, inputs.get(FRACTIONS))
            else:
                answers[name] = shaped(last(seen), spec.shape)
        return answers, {}

    def _climbed(self, hidden: list[nn.Module], rows: Tensor) -> Tensor:
        """Returns the output of a tower's hidden layers in float32.

        Only the hidden layers after the first compute in ``compute_dtype``, because
        inputs and outputs may need more precision.
        """
        if self.compute_dtype == torch.float32 or self.config.num_units < _LEAST_UNITS:
            return _through(hidden, rows)
        first = len(hidden) // self.config.num_layers  # modules of a hidden layer
        seen = _through(hidden[:first], rows)
        with self.arithmetic(rows):
            seen = _through(hidden[first:], seen)
        return seen.float()


def build(wanted: Signature, config: MlpConfig) -> Net:
    """Returns a new network with random weights; see ``NetConfig.build``."""
    if not config.state(wanted):
        return Mlp(wanted, config)
    return TorsoNet(wanted, config, lambda seen: MlpTorso(seen, config))


def _through(layers: list[nn.Module], rows: Tensor) -> Tensor:
    # Use a loop, because creating an nn.Sequential takes as long as evaluating a layer,
    # and ``forward``, because looking for hooks takes half as long.
    for layer in layers:
        rows = layer.forward(rows)
    return rows
