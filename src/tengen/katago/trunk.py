"""Reads the layers of a KataGo network file, and converts its trunk for ``KatagoNet``.

Legend: I input channels, O output channels, C channels, K kernel size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.katago.stream import NotSupportedError, WeightStream
from tengen.nets.katago import KatagoBlock

_MAX_CHANNELS = 8192
_MAX_SIDE = 9
_ACTIVATIONS = {
    "ACTIVATION_IDENTITY": "identity",
    "ACTIVATION_RELU": "relu",
    "ACTIVATION_MISH": "mish",
    "ACTIVATION_SILU": "silu",
}
# From this version on, the file format stores each layer's activation.
_SAYS_ACTIVATION = 11

Kind = str
"""The kind of an activation: ``identity``, ``relu``, ``mish`` or ``silu``."""


@dataclass(frozen=True)
class Conv:
    """A convolution without bias, with zero padding around the board."""

    name: str
    """The layer's name in the network file."""
    weight: NDArray[np.float32]
    """Weights of the convolution, ``[O, I, K, K]``; K is odd."""

    @property
    def num_inputs(self) -> int:
        """Number of input channels of the convolution, I."""
        return int(self.weight.shape[1])

    @property
    def num_outputs(self) -> int:
        """Number of output channels of the convolution, O."""
        return int(self.weight.shape[0])

    @property
    def side(self) -> int:
        """Kernel size of the convolution, K."""
        return int(self.weight.shape[2])


@dataclass(frozen=True)
class Affine:
    """A batch normalization in inference form, ``x * scale + shift``."""

    name: str
    """The layer's name in the network file."""
    scale: NDArray[np.float32]
    """The factors, one per channel, ``[C]``."""
    shift: NDArray[np.float32]
    """The offsets, one per channel, ``[C]``."""


def read_conv(stream: WeightStream, num_inputs: int | None = None) -> Conv:
    """Reads a convolution, which must have ``num_inputs`` channels unless None."""
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
    """Reads a batch normalization; converts its statistics to scale and shift."""
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
    """Reads a layer's activation. Before version 11, it is always ReLU, not stored."""
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
    """Reads the weights ``[O, I]`` of a fully connected layer without bias."""
    name = stream.word("a layer's name")
    inputs, outputs = (
        stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS) for _ in "io"
    )
    _check_channels(name, inputs, num_inputs)
    _check_channels(name, outputs, num_outputs)
    return np.ascontiguousarray(stream.numbers(name, inputs, outputs).T)


def read_bias(stream: WeightStream, num_channels: int) -> NDArray[np.float32]:
    """Reads the bias ``[C]`` of a fully connected layer."""
    name = stream.word("a bias's name")
    count = stream.whole(f"{name}'s channels", 1, _MAX_CHANNELS)
    _check_channels(name, count, num_channels)
    return stream.numbers(name, count)


def _check_channels(name: str, found: int, wanted: int | None) -> None:
    if wanted is not None and found != wanted:
        raise ValueError(f"{name} has {found} channels, not {wanted}")


Tensors = dict[str, NDArray[np.float32]]
"""The weights of a network, by their names in ``KatagoNet``."""

_MAX_BLOCKS = 512
# Maximum nesting depth of bottlenecks. In published networks it is at most 2.
_MAX_DEPTH = 4


class Activations:
    """Checks that all layers of a network have the same activation.

    Args:
        version: Version of the file format.
    """

    def __init__(self, version: int) -> None:
        self.version = version
        self.kind: Kind | None = None

    def read(self, stream: WeightStream) -> None:
        """Reads a layer's activation; raises NotSupportedError if it differs."""
        self.take(read_activation(stream, self.version))

    def take(self, kind: Kind) -> None:
        """Records a layer's activation; raises NotSupportedError if it differs."""
        if self.kind not in (None, kind):
            raise NotSupportedError(f"it has the activations {self.kind} and {kind}")
        if kind == "identity":
            raise NotSupportedError("it has a norm without an activation after it")
        self.kind = kind


def folded(conv: Conv, norm: Affine) -> tuple[Tensors, NDArray[np.float32]]:
    """Folds a norm into the convolution before it; returns the tensors and the scale.

    The caller must multiply by this scale any other term that is added before the norm.
    """
    scale = norm.scale[:, None, None, None]
    return {"weight": conv.weight * scale, "bias": norm.shift}, norm.scale


def put_affine(tensors: Tensors, name: str, norm: Affine) -> None:
    """Adds a norm to ``tensors`` unfolded, because no convolution precedes it."""
    tensors[f"{name}.weight"] = norm.scale[:, None, None]
    tensors[f"{name}.bias"] = norm.shift[:, None, None]


def read_blocks(
    stream: WeightStream,
    activations: Activations,
    tensors: Tensors,
    place: str,
    num_blocks: int,
    num_channels: int,
    depth: int = 0,
) -> tuple[KatagoBlock, ...]:
    """Reads consecutive residual blocks; adds their weights to ``tensors``.

    Args:
        stream: The file, positioned at the first block.
        activations: Receives the activation of each layer.
        tensors: Receives the blocks' weights.
        place: Prefix of the blocks' weight names; the block's index follows it.
        num_blocks: Number of blocks to read.
        num_channels: Number of channels of the residual stream.
        depth: Number of bottlenecks that enclose the blocks.
    """
    if not 1 <= num_blocks <= _MAX_BLOCKS or depth > _MAX_DEPTH:
        raise ValueError(f"{place} are {num_blocks} blocks, {depth} deep")
    found = []
    for index in range(num_blocks):
        kind = stream.word("a block's kind")
        name = stream.word("a block's name")
        reader = _Block(stream, activations, tensors, f"{place}.{index}", num_channels)
        if kind == "ordinary_block":
            found.append(reader.ordinary())
        elif kind == "gpool_block":
            found.append(reader.pooling())
        elif kind == "nested_bottleneck_block":
            found.append(reader.bottleneck(depth))
        else:
            # Other kinds of blocks have layers that KatagoNet does not support.
            raise NotSupportedError(f"{name} is a {kind}")
    return tuple(found)


class _Block:
    """Reads one residual block of a network file."""

    def __init__(
        self,
        stream: WeightStream,
        activations: Activations,
        tensors: Tensors,
        place: str,
        num_channels: int,
    ) -> None:
        self._stream = stream
        self._activations = activations
        self._tensors = tensors
        self._place = place
        self._num_channels = num_channels

    def ordinary(self) -> KatagoBlock:
        """Reads an ordinary residual block, which has two convolutions."""
        first = self._first()
        norm = self._norm(first.num_outputs)
        last = self._last(first.num_outputs)
        self._put("conv1", folded(first, norm)[0])
        return self._config(first, last)

    def pooling(self) -> KatagoBlock:
        """Reads a residual block with global pooling."""
        first = self._first()
        pooled = read_conv(self._stream, self._num_channels)
        if pooled.side != first.side:
            raise NotSupportedError(
                f"{pooled.name} and {first.name} have different kernels"
            )
        pool_norm = self._norm(pooled.num_outputs)
        pool = read_matrix(self._stream, 3 * pooled.num_outputs, first.num_outputs)
        norm = self._norm(first.num_outputs)
        last = self._last(first.num_outputs)
        tensors, scale = folded(first, norm)
        self._put("conv1", tensors)
        self._put("pool_conv", folded(pooled, pool_norm)[0])
        self._put("pool", {"weight": pool * scale[:, None]})
        return self._config(first, last, num_pooled=pooled.num_outputs)

    def bottleneck(self, depth: int) -> KatagoBlock:
        """Reads a bottleneck residual block, which contains further blocks."""
        num_blocks = self._stream.whole("a bottleneck's blocks", 1, _MAX_BLOCKS)
        first = self._first()
        self._put("conv1", {"weight": first.weight})
        inner = read_blocks(
            self._stream,
            self._activations,
            self._tensors,
            f"{self._place}.inner",
            num_blocks,
            first.num_outputs,
            depth + 1,
        )
        norm = self._norm(first.num_outputs)
        put_affine(self._tensors, f"{self._place}.last_norm", norm)
        return self._config(first, self._last(first.num_outputs), inner=inner)

    def _first(self) -> Conv:
        norm = self._norm(self._num_channels)
        put_affine(self._tensors, f"{self._place}.norm", norm)
        return read_conv(self._stream, self._num_channels)

    def _norm(self, num_channels: int) -> Affine:
        norm = read_affine(self._stream, num_channels)
        self._activations.read(self._stream)
        return norm

    def _last(self, num_inputs: int) -> Conv:
        conv = read_conv(self._stream, num_inputs)
        if conv.num_outputs != self._num_channels:
            raise ValueError(
                f"{conv.name} has {conv.num_outputs} channels, not {self._num_channels}"
            )
        self._put("conv2", {"weight": conv.weight})
        return conv

    def _put(self, layer: str, tensors: Tensors) -> None:
        for name, tensor in tensors.items():
            self._tensors[f"{self._place}.{layer}.{name}"] = tensor

    @staticmethod
    def _config(
        first: Conv,
        last: Conv,
        num_pooled: int = 0,
        inner: Sequence[KatagoBlock] = (),
    ) -> KatagoBlock:
        return KatagoBlock(
            num_channels=first.num_outputs,
            num_pooled=num_pooled,
            first_side=first.side,
            last_side=last.side,
            inner=tuple(inner),
        )
