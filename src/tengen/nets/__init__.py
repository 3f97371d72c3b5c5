"""Torch networks and what they read and answer.

A board network answers ``(policy logits [B, A], outcome logits [B, 3])``, a vector
network ``(policy logits [B, A], baseline [B])``; ``InferenceHead`` makes of either the
pair that actors ask for. Importing this package imports no torch before a network's
name is used, because processes that only read configs live without it.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tengen.nets.spec import (
    FeatureSpec,
    MlpConfig,
    NetConfig,
    PolicyLayout,
    ResNetConfig,
    check_grows,
    game_features,
    parse_net,
)

if TYPE_CHECKING:
    from tengen.nets.auxiliary import Auxiliary
    from tengen.nets.build import InferenceHead, build_net
    from tengen.nets.grow import grow_net
    from tengen.nets.mlp import Mlp
    from tengen.nets.resnet import ResNet

__all__ = [
    "Auxiliary",
    "FeatureSpec",
    "InferenceHead",
    "Mlp",
    "MlpConfig",
    "NetConfig",
    "PolicyLayout",
    "ResNet",
    "ResNetConfig",
    "build_net",
    "check_grows",
    "game_features",
    "grow_net",
    "parse_net",
]

_TORCH_NAMES = {
    "Auxiliary": "auxiliary",
    "InferenceHead": "build",
    "Mlp": "mlp",
    "ResNet": "resnet",
    "build_net": "build",
    "grow_net": "grow",
}


def __getattr__(name: str) -> Any:
    if name not in _TORCH_NAMES:
        raise AttributeError(f"module 'tengen.nets' has no attribute {name!r}")
    module = importlib.import_module(f"tengen.nets.{_TORCH_NAMES[name]}")
    return getattr(module, name)
