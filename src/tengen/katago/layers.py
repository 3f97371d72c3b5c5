"""The layers that a network's file is made of, each with its own numbers.

Legend: I input channels, O output channels, C channels, K side of a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.katago.stream import NotSupportedError, WeightStream

__all__ = [
    "Affine",
    "Conv",
    "Kind",
    "read_activation",
    "read_affine",
    "read_bias",
    "read_conv",
    "read_matrix",
]

_MAX_CHANNELS = 8192
_MAX_SIDE = 9
_ACTIVATIONS = {
    "ACTIVATION_IDENTITY": "identity",
    "ACTIVATION_RELU": "relu",
    "ACTIVATION_MISH": "mish",
    "ACTIVATION_SILU": "silu",
}
# The first version of the format that says a layer's activation.
_SAYS_ACTIVATION = 11

Kind = str
"""An activation: ``identity``, ``relu``, ``mish`` or ``silu``."""


@dataclass(frozen=True)
class Conv:
    """A convolution without bias, over the board with zeros around it."""

    name: str
    """In the file."""
    weight: NDArray[np.float32]
    """``[O, I, K, K]``, K odd."""

    @property
    def num_inputs(self) -> int:
        """I."""
        return int(self.weight.shape[1])

    @property
    def num_outputs(self) -> int:
        """O."""
        return int(self.weight.shape[0])

    @property
    def side(self) -> int:
        """K."""
        return int(self.weight.shape[2])


@dataclass(frozen=True)
class Affine:
    """What is left of a batch normalisation: ``x * scale + shift``."""

    name: str
    """In the file."""
    scale: NDArray[np.float32]
    """``[C]``."""
    shift: NDArray[np.float32]
    """``[C]``."""


def read_conv(stream: WeightStream, num_inputs: int | None = None) -> Conv:
    """Reads a convolution; of so many input channels, where that is known."""
    name = stream.word("a convolution's name")
    rows, columns = (stream.whole(f"{name}'s side", 1, _MAX_SIDE) for _ in "yx")
    if rows != columns or rows % 2 == 0:
        raise ValueError(f"{name} has a kernel of {rows}x{columns}, not an odd square")
    inputs, outputs = (
        stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS) for _ in "io"
    )
    dilations = [stream.whole(f"{name}'s dilation", 1, 64) for _ in "yx"]
    if dilations != [1, 1]:
        raise NotSupportedError(f"{name} is a dilated convolution")
    _check_channels(name, inputs, num_inputs)
    weight = stream.numbers(name, rows, columns, inputs, outputs)
    return Conv(name, np.ascontiguousarray(weight.transpose(3, 2, 0, 1)))


def read_affine(stream: WeightStream, num_channels: int) -> Affine:
    """Reads a batch normalisation; its statistics are folded into scale and shift."""
    name = stream.word("a norm's name")
    count = stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS)
    _check_channels(name, count, num_channels)
    epsilon = stream.positive(f"{name}'s epsilon")
    has_scale, has_shift = (stream.whole(f"{name}'s flag", 0, 1) for _ in "sb")
    mean = stream.numbers(name, count).astype(np.float64)
    variance = stream.numbers(name, count).astype(np.float64)
    if (variance + epsilon <= 0).any():
        raise ValueError(f"{name} has a variance below 0")
    scale = 1.0 / np.sqrt(variance + epsilon)
    if has_scale:
        scale *= stream.numbers(name, count)
    shift = -scale * mean
    if has_shift:
        shift += stream.numbers(name, count)
    with np.errstate(over="ignore"):
        norm = Affine(name, scale.astype(np.float32), shift.astype(np.float32))
    if not (np.isfinite(norm.scale).all() and np.isfinite(norm.shift).all()):
        raise ValueError(f"{name} has a scale that is not finite")
    return norm


def read_activation(stream: WeightStream, version: int) -> Kind:
    """Reads an activation; before version 11 all are ReLU, and only named."""
    name = stream.word("an activation's name")
    if version < _SAYS_ACTIVATION:
        return "relu"
    word = stream.word(f"{name}'s kind")
    if word not in _ACTIVATIONS:
        raise NotSupportedError(f"{name} has the activation {word}")
    return _ACTIVATIONS[word]


def read_matrix(
    stream: WeightStream, num_inputs: int, num_outputs: int | None = None
) -> NDArray[np.float32]:
    """Reads the weights ``[O, I]`` of a layer of all to all, without bias."""
    name = stream.word("a layer's name")
    inputs, outputs = (
        stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS) for _ in "io"
    )
    _check_channels(name, inputs, num_inputs)
    _check_channels(name, outputs, num_outputs)
    return np.ascontiguousarray(stream.numbers(name, inputs, outputs).T)


def read_bias(stream: WeightStream, num_channels: int) -> NDArray[np.float32]:
    """Reads the bias ``[C]`` of such a layer."""
    name = stream.word("a bias's name")
    count = stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS)
    _check_channels(name, count, num_channels)
    return stream.numbers(name, count)


def _check_channels(name: str, found: int, wanted: int | None) -> None:
    if wanted is not None and found != wanted:
        raise ValueError(f"{name} has {found} channels and not {wanted}")
