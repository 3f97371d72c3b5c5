"""Reads a network's kind, size and signature from a model's ``meta.json``."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen.config import from_dict
from tengen.errors import UsageError
from tengen.nets import NetConfig
from tengen.tensors import BoardSpec, Signature, TensorSpec


@dataclass(frozen=True, kw_only=True)
class Architecture:
    """The fields of a model's ``meta.json`` from which its network is built."""

    net: NetConfig
    """The kind and size of the network."""
    signature: Signature
    """The network's inputs, outputs and state."""


@dataclass(frozen=True, kw_only=True)
class _OldArchitecture:
    """The fields that described the architecture in ``meta.json`` up to schema 2."""

    net: NetConfig
    features: BoardSpec


def _signature_of(features: BoardSpec, net: NetConfig) -> Signature:
    """Returns the signature of a model whose ``meta.json`` has schema 1 or 2.

    Args:
        features: The model's input planes; those of a vector network have one cell.
        net: The kind and size of the model's network.
    """
    wanted = features.signature
    if features.height * features.width == 1 and features.policy_layout == "flat":
        length = TensorSpec(shape=(features.num_planes,))
        wanted = Signature(inputs={"observation": length}, outputs=wanted.outputs)
    return net.signature(wanted)


def answered(signature: Signature, outputs: Sequence[str] | None) -> Signature:
    """Returns a copy of the signature that has only the requested outputs.

    Args:
        signature: A network's signature.
        outputs: Names of the outputs to include; unknown names are ignored. None for
            all outputs.

    Raises:
        UsageError: The network has none of the outputs.
    """
    if outputs is None:
        return signature
    found = {name: spec for name, spec in signature.outputs.items() if name in outputs}
    if not found:
        raise UsageError(
            f"outputs ({', '.join(outputs)}) are not outputs of the network; it has "
            f"{', '.join(signature.outputs)}"
        )
    return dataclasses.replace(signature, outputs=found)


def parse_architecture(content: Mapping[str, Any], where: str) -> Architecture:
    """Parses the architecture in a model's ``meta.json`` of any schema.

    Args:
        content: The file's JSON object.
        where: The path of the file, for error messages.

    Raises:
        UsageError: A field is missing or wrong.
    """
    is_old = "features" in content and "signature" not in content
    kind = _OldArchitecture if is_old else Architecture
    names = [field.name for field in dataclasses.fields(kind)]
    parts = {name: content[name] for name in names if name in content}
    found: Any = from_dict(kind, parts, where)
    if isinstance(found, Architecture):
        return found
    signature = _signature_of(found.features, found.net)
    return Architecture(net=found.net, signature=signature)


def read_architecture(directory: Path) -> Architecture:
    """Reads the architecture of the model in a model directory.

    Raises:
        UsageError: ``meta.json`` is missing or damaged.
    """
    path = directory / "meta.json"
    try:
        content: Any = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise UsageError(
            f"model ({directory}) cannot be built: {reason}; restore it, or export it "
            "again"
        ) from error
    return parse_architecture(content if isinstance(content, dict) else {}, str(path))
