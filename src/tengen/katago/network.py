"""Reads a complete KataGo network file: header, trunk and heads.

Legend: C channels, O output channels.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.katago.stream import NotSupportedError, WeightStream, open_stream
from tengen.katago.trunk import (
    Activations,
    Conv,
    Tensors,
    folded,
    put_affine,
    read_activation,
    read_affine,
    read_bias,
    read_blocks,
    read_conv,
    read_matrix,
)
from tengen.nets.katago import NUM_KATAGO_POINT_PLANES, KatagoConfig

_VERSIONS = (8, 17)
_NUM_SPATIAL, _NUM_GLOBAL = 22, 19
# Indices of the KataGo planes and global inputs that are used with area scoring and
# without group tax, in the order of core/games/planes.h. All other inputs would be 0,
# so their weights are dropped.
_SPATIAL = (*range(7), *range(9, 20))
_GLOBAL = (0, 1, 2, 3, 4, 5, 6, 7, 8, 14, 18)
_MAX_CHANNELS = 8192
# Points per unit of the outputs for score mean, score standard deviation and lead.
# Files before format version 13 do not store these scales.
_USUAL_POINTS = (20.0, 20.0, 20.0)


@dataclass(frozen=True)
class KatagoNetwork:
    """A KataGo network, converted to tengen's ``KatagoNet``."""

    name: str
    """The network's name, as stored in the file."""
    version: int
    """Version of the file format."""
    config: KatagoConfig
    """The network's architecture."""
    tensors: Tensors
    """The network's weights, by ``KatagoNet``'s tensor names."""


@dataclass(frozen=True)
class _Header:
    """The header of a network file, which precedes the layers."""

    name: str
    version: int
    points: tuple[float, float, float]
    """Points per unit of the score outputs; see ``_USUAL_POINTS``."""


def read_network(path: Path) -> KatagoNetwork:
    """Returns the network in a file. Blocks for about 1 s per 10 million weights.

    Args:
        path: A network file published by KataGo, ``.bin.gz`` or ``.txt.gz``.

    Raises:
        UsageError: The file cannot be read, is damaged, or has an unsupported feature.
            The message names the feature.
    """
    with open_stream(path) as stream:
        header = _read_header(stream)
        activations = Activations(header.version)
        tensors: Tensors = {}
        try:
            fields = _read_trunk(stream, header, activations, tensors)
            fields |= _read_policy(stream, header, activations, tensors)
            fields |= _read_value(stream, header, activations, tensors)
            stream.end()
            config = KatagoConfig(**{**fields, "activation": activations.kind})
        except UsageError as error:
            # A ValueError reports a damaged file; the user did not set these fields.
            raise ValueError(str(error)) from error
        for name, tensor in tensors.items():
            if not np.isfinite(tensor).all():
                raise ValueError(f"{name} is not finite after merging its norm")
        return KatagoNetwork(header.name, header.version, config, tensors)


def _read_header(stream: WeightStream) -> _Header:
    name = stream.word("its name")
    low, high = _VERSIONS
    version = stream.whole("its version", 0, 10**9)
    if not low <= version <= high:
        raise NotSupportedError(f"it is of version {version}")
    stream.whole("its planes", _NUM_SPATIAL, _NUM_SPATIAL)
    stream.whole("its global inputs", _NUM_GLOBAL, _NUM_GLOBAL)
    points = _USUAL_POINTS
    if version >= 13:
        # Output scales: TD score, score mean, score deviation, lead, and 3 unused.
        scales = [stream.positive("a scale of its outputs") for _ in range(7)]
        points = (scales[1], scales[2], scales[3])
    if version >= 15:
        if stream.whole("its kind of metadata", 0, 1 << 30):
            raise NotSupportedError("it also reads who plays, for human play")
        if stream.whole("its rule of pass-alive areas", 0, 1):
            raise NotSupportedError(
                "its rule of pass-alive areas differs from the game's"
            )
        _read_unused(stream, 6, "options")
    return _Header(name, version, points)


def _read_unused(stream: WeightStream, count: int, what: str) -> None:
    for _ in range(count):
        if stream.whole(what, -(1 << 31), 1 << 31):
            raise NotSupportedError(f"it has {what} that are unknown")


def _read_trunk(
    stream: WeightStream, header: _Header, activations: Activations, tensors: Tensors
) -> dict[str, Any]:
    stream.word("the trunk's name")
    num_blocks = stream.whole("its blocks", 1, 1 << 20)
    num_channels = stream.whole("its channels", 1, _MAX_CHANNELS)
    for _ in range(4):
        # Ignore these channel counts: each block stores its own.
        stream.whole("channels", -(1 << 20), 1 << 20)
    if header.version >= 15:
        if stream.whole("the trunk's last norm", 0, 1 << 20):
            raise NotSupportedError("its trunk ends with a norm of root mean squares")
        _read_unused(stream, 5, "options of the trunk")
    stem = read_conv(stream, _NUM_SPATIAL)
    _check_outputs(stem, num_channels)
    tensors["stem.weight"] = np.ascontiguousarray(stem.weight[:, list(_SPATIAL)])
    assert len(_SPATIAL) == NUM_KATAGO_POINT_PLANES
    constants = read_matrix(stream, _NUM_GLOBAL, num_channels)
    tensors["constants.weight"] = np.ascontiguousarray(constants[:, list(_GLOBAL)])
    blocks = read_blocks(
        stream, activations, tensors, "blocks", num_blocks, num_channels
    )
    put_affine(tensors, "tip", read_affine(stream, num_channels))
    activations.read(stream)
    return {"num_channels": num_channels, "stem_side": stem.side, "blocks": blocks}


def _read_policy(
    stream: WeightStream, header: _Header, activations: Activations, tensors: Tensors
) -> dict[str, Any]:
    num_inputs = tensors["tip.weight"].shape[0]
    stream.word("the policy head's name")
    # Policy outputs: the policy, then unused optimistic policies and Q values.
    num_policies = 1 if header.version < 12 else 4 if header.version == 16 else 2
    if header.version >= 17:
        num_policies = stream.whole("its policies", 2, 4)
        _read_unused(stream, 3, "options of the policy head")
    conv, pooled = (
        _read_head_conv(stream, num_inputs),
        _read_head_conv(stream, num_inputs),
    )
    pool_norm = read_affine(stream, pooled.num_outputs)
    activations.read(stream)
    num_pooled = 3 * pooled.num_outputs
    pool = read_matrix(stream, num_pooled, conv.num_outputs)
    norm = read_affine(stream, conv.num_outputs)
    activations.read(stream)
    out = _read_head_conv(stream, conv.num_outputs)
    _check_outputs(out, num_policies)
    scaled, scale = folded(conv, norm)
    for layer, found in (
        ("conv", scaled),
        ("pool_conv", folded(pooled, pool_norm)[0]),
        ("pool", {"weight": pool * scale[:, None]}),
        ("out", {"weight": out.weight[:1]}),
    ):
        for name, tensor in found.items():
            tensors[f"policy_head.{layer}.{name}"] = tensor
    fields = {
        "policy_channels": conv.num_outputs,
        "pooled_policy_channels": pooled.num_outputs,
    }
    if header.version < 15:
        last = read_matrix(stream, num_pooled, num_policies)
        _put_pass(tensors, last[:1], np.zeros(1, np.float32))
        return fields
    hidden = read_matrix(stream, num_pooled)
    bias = read_bias(stream, len(hidden))
    activation = read_activation(stream, header.version)
    last = read_matrix(stream, len(hidden), num_policies)[:1]
    if activation == "identity":
        _put_pass(tensors, last @ hidden, last @ bias)
        return fields
    activations.take(activation)
    tensors["policy_head.pass_hidden.weight"] = hidden
    tensors["policy_head.pass_hidden.bias"] = bias
    _put_pass(tensors, last, np.zeros(1, np.float32))
    return {**fields, "pass_units": len(hidden)}


def _put_pass(
    tensors: Tensors, weight: NDArray[np.float32], bias: NDArray[np.float32]
) -> None:
    tensors["policy_head.pass_out.weight"] = weight
    tensors["policy_head.pass_out.bias"] = bias


def _read_value(
    stream: WeightStream, header: _Header, activations: Activations, tensors: Tensors
) -> dict[str, Any]:
    stream.word("the value head's name")
    if header.version >= 17:
        _read_unused(stream, 3, "options of the value head")
    conv = _read_head_conv(stream, tensors["tip.weight"].shape[0])
    norm = read_affine(stream, conv.num_outputs)
    activations.read(stream)
    hidden = read_matrix(stream, 3 * conv.num_outputs)
    num_units = len(hidden)
    hidden_bias = read_bias(stream, num_units)
    activations.read(stream)
    out, out_bias = read_matrix(stream, num_units, 3), read_bias(stream, 3)
    # Number of score outputs: mean, standard deviation, lead, and unused ones.
    num_scores = 4 if header.version < 9 else 6
    score = read_matrix(stream, num_units, num_scores)
    score_bias = read_bias(stream, num_scores)
    ownership = _read_head_conv(stream, conv.num_outputs)
    _check_outputs(ownership, 1)
    mean, deviation, lead = (np.float32(points) for points in header.points)
    scale = np.array([[mean], [1.0]], np.float32)
    found: dict[str, Tensors] = {
        "conv": folded(conv, norm)[0],
        "hidden": {"weight": hidden, "bias": hidden_bias},
        "out": {"weight": out, "bias": out_bias},
        "score": {"weight": score[:2] * scale, "bias": score_bias[:2] * scale[:, 0]},
        "lead": {"weight": score[2:3] * lead, "bias": score_bias[2:3] * lead},
        "ownership": {"weight": ownership.weight},
    }
    for layer, layer_tensors in found.items():
        for name, tensor in layer_tensors.items():
            tensors[f"value_head.{layer}.{name}"] = tensor
    tensors["value_head.score_scale"] = np.array([deviation], np.float32)
    return {"value_channels": conv.num_outputs, "value_units": num_units}


def _read_head_conv(stream: WeightStream, num_inputs: int) -> Conv:
    conv = read_conv(stream, num_inputs)
    if conv.side != 1:
        raise NotSupportedError(f"{conv.name} has a kernel of {conv.side}, not 1")
    return conv


def _check_outputs(conv: Conv, wanted: int) -> None:
    if conv.num_outputs != wanted:
        raise ValueError(f"{conv.name} has {conv.num_outputs} channels, not {wanted}")
