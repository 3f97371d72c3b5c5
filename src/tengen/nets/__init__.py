"""Networks, whose inputs and outputs are the named tensors of a ``Signature``.

A config defines a network's kind and size (``tengen.nets.config``); each kind is one
file. Importing this package does not import torch, which processes that only read
configs do not need. The first access to a network class imports torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tengen.nets.config import NetConfig, board_of
from tengen.nets.mlp import MlpConfig
from tengen.nets.resnet import ResNetConfig, parse_net, parse_size

if TYPE_CHECKING:
    from tengen.nets.modules.board_net import Auxiliary, BoardNet
    from tengen.nets.modules.net import InferenceHead, Net
    from tengen.nets.modules.resnet import ResNet

__all__ = [
    "Auxiliary",
    "BoardNet",
    "InferenceHead",
    "MlpConfig",
    "Net",
    "NetConfig",
    "ResNet",
    "ResNetConfig",
    "board_of",
    "parse_net",
    "parse_size",
]

_TORCH_NAMES = {
    "Auxiliary": "board_net",
    "BoardNet": "board_net",
    "InferenceHead": "net",
    "Net": "net",
    "ResNet": "resnet",
}


def __getattr__(name: str) -> Any:
    if name not in _TORCH_NAMES:
        raise AttributeError(f"module 'tengen.nets' has no attribute {name!r}")
    module = importlib.import_module(f"tengen.nets.modules.{_TORCH_NAMES[name]}")
    return getattr(module, name)
