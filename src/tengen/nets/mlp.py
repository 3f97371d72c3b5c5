"""The config of the multi-layer perceptron (MLP), a network for vectors."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check_literals
from tengen.nets.memory import MAX_UNITS, MemoryConfig, check_environment
from tengen.tensors import Signature


@dataclass(frozen=True, kw_only=True)
class MlpConfig(MemoryConfig):
    """The config of a multi-layer perceptron, which flattens inputs to vectors.

    Each output has its own tower of hidden layers. With an LSTM or stacked images, all
    outputs share one tower, which the LSTM follows, and each output has a linear layer.
    """

    kind: Literal["mlp"] = "mlp"
    """The kind of network."""
    num_layers: int = bounded(2, 1, 64)
    """Number of hidden layers in a tower, 1 to 64."""
    num_units: int = bounded(64, 1, MAX_UNITS)
    """Number of units in each hidden layer, 1 to 16384."""
    activation: Literal["tanh", "relu"] = "tanh"
    """Activation function after each hidden layer."""
    layer_norm: bool = False
    """Whether layer normalization precedes each activation function."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_literals(self)

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted`` plus the network's state; see ``NetConfig.signature``.

        Raises:
            UsageError: See ``check_environment``.
        """
        check_environment(self, wanted)
        return dataclasses.replace(wanted, state=self.state(wanted))
