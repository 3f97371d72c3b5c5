"""Reads the weights of the benchmark's network from a TensorFlow file.

Source: MLPerf training v2.1, minigo, ``dual_net.py``. Its layers have no names, so
TensorFlow numbers the layers of each kind in order of creation. Convolutions and batch
norms: the stem, the blocks (two per block), the policy head, the value head. Dense
layers: the policy, the value's hidden layer, the value.

N is the side length of the board.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.errors import RunError
from tengen.experience.rows.imported import MAX_SIDE
from tengen.minigo.tensors import TensorFile
from tengen.nets.minigo import NUM_MINIGO_PLANES, MinigoConfig

_STEP = "global_step"
_MAX_WEIGHTS = 1 << 26
_KIND = "download a checkpoint of minigo 0.7 or later"


@dataclass(frozen=True)
class MinigoWeights:
    """The configuration and weights of a benchmark network."""

    config: MinigoConfig
    """The network's config, as found in the file."""
    side: int
    """N, the side length of the network's board."""
    tensors: dict[str, NDArray[np.float32]]
    """The complete state of the network, with ``MinigoNet``'s tensor names."""
    num_steps: int
    """Number of learner steps with which the network was trained; 0 if unknown."""


def read_weights(file: TensorFile) -> MinigoWeights:
    """Returns the benchmark network in a file, without the optimizer's state.

    The file's tensor names and shapes determine the network's size.

    Args:
        file: A checkpoint or a frozen graph.

    Raises:
        UsageError: The network exceeds the size limits of ``MinigoConfig``.
        RunError: The file is damaged, or does not contain the benchmark's network.
    """
    num_convs = 0
    while _numbered("conv2d", num_convs) + "/kernel" in file.shapes:
        num_convs += 1
    # One convolution in the stem, two in each block, and one in each of the two heads.
    num_blocks, rest = divmod(num_convs - 3, 2)
    if num_blocks < 1 or rest:
        raise RunError(
            f"{file.name} has {num_convs} convolutions, and the benchmark's network "
            f"has 3, plus 2 per block; {_KIND}"
        )
    config = MinigoConfig(
        num_blocks=num_blocks,
        num_channels=_last_axis(file, "conv2d/kernel"),
        policy_channels=_last_axis(file, f"conv2d_{num_convs - 2}/kernel"),
        value_channels=_last_axis(file, f"conv2d_{num_convs - 1}/kernel"),
        fc_width=_last_axis(file, "dense_1/kernel"),
    )
    num_cells = _last_axis(file, "dense/kernel") - 1
    side = math.isqrt(max(num_cells, 0))
    if side * side != num_cells or not 2 <= side <= MAX_SIDE:
        raise RunError(
            f"{file.name} has {num_cells + 1} actions, not those of a board of size 2 "
            f"to {MAX_SIDE}; {_KIND}"
        )
    # A graph of a few bytes can declare huge tensors, which would use up all memory.
    if 18 * num_blocks * config.num_channels**2 > _MAX_WEIGHTS:
        raise RunError(f"{file.name} has too many weights; {_KIND}")
    tensors = _convolutions(file, config) | _dense_layers(file, config, num_cells)
    for name, tensor in tensors.items():
        if not np.isfinite(tensor).all():
            raise RunError(f"{file.name} has non-finite values in {name}; {_KIND}")
    return MinigoWeights(config, side, tensors, _num_steps(file))


def _convolutions(
    file: TensorFile, config: MinigoConfig
) -> dict[str, NDArray[np.float32]]:
    """Returns the tensors of the convolutions and of the batch norms after them."""
    num_channels = config.num_channels
    places = [("stem", "stem_norm", (3, 3, NUM_MINIGO_PLANES - 1, num_channels))]
    for block in range(config.num_blocks):
        for half in (1, 2):
            name = f"blocks.{block}"
            shape = (3, 3, num_channels, num_channels)
            places.append((f"{name}.conv{half}", f"{name}.norm{half}", shape))
    num_scaled = len(places)
    for name, num_outputs in (
        ("policy_head", config.policy_channels),
        ("value_head", config.value_channels),
    ):
        shape = (1, 1, num_channels, num_outputs)
        places.append((f"{name}.conv", f"{name}.norm", shape))
    tensors: dict[str, NDArray[np.float32]] = {}
    for index, (conv, norm, shape) in enumerate(places):
        kernel = _read(file, _numbered("conv2d", index) + "/kernel", shape)
        # Transpose from TensorFlow's HWIO to PyTorch's OIHW.
        tensors[f"{conv}.weight"] = kernel.transpose(3, 2, 0, 1)
        theirs = _numbered("batch_normalization", index)
        parts = {"moving_mean": "running_mean", "moving_variance": "running_var"}
        if index < num_scaled:
            parts |= {"gamma": "weight", "beta": "bias"}
        for part, ours in parts.items():
            tensors[f"{norm}.{ours}"] = _read(file, f"{theirs}/{part}", shape[3:])
    return tensors


def _dense_layers(
    file: TensorFile, config: MinigoConfig, num_cells: int
) -> dict[str, NDArray[np.float32]]:
    sizes = {
        "policy_out": (config.policy_channels * num_cells, num_cells + 1),
        "value_hidden": (config.value_channels * num_cells, config.fc_width),
        "value_out": (config.fc_width, 1),
    }
    tensors = {}
    for index, (name, shape) in enumerate(sizes.items()):
        theirs = _numbered("dense", index)
        tensors[f"{name}.weight"] = _read(file, f"{theirs}/kernel", shape).T
        tensors[f"{name}.bias"] = _read(file, f"{theirs}/bias", shape[1:])
    return tensors


def _num_steps(file: TensorFile) -> int:
    if file.shapes.get(_STEP) != ():
        return 0
    step = int(file.read(_STEP))
    if step < 0:
        raise RunError(f"{file.name} has a negative {_STEP}, {step}; {_KIND}")
    return step


def _numbered(name: str, index: int) -> str:
    return f"{name}_{index}" if index else name


def _last_axis(file: TensorFile, name: str) -> int:
    shape = file.shapes.get(name, ())
    if not shape:
        raise RunError(f"{file.name} has no tensor {name}; {_KIND}")
    return shape[-1]


def _read(file: TensorFile, name: str, shape: tuple[int, ...]) -> NDArray[np.float32]:
    found = file.shapes.get(name)
    if found != shape:
        told = "no tensor" if found is None else f"the shape {found} of"
        raise RunError(f"{file.name} has {told} {name}, not {shape}; {_KIND}")
    return file.read(name).astype(np.float32)
