"""Transfer of a board network to another board size."""

from __future__ import annotations

import torch
from torch import Tensor

from tengen.config import check
from tengen.nets.modules.net import Net
from tengen.tensors import Signature

_SCORES = (".score.weight", ".score.bias")


def on_board(net: Net, wanted: Signature) -> Net:
    """Returns a network with the weights of ``net`` for another board size, on the CPU.

    Convolutions and global pooling have the same weights on every board. The score
    distribution has two weights per point of the board: scores that both boards have
    keep their logits, and all others become as improbable as the least probable score.

    Args:
        net: The network; it is not changed.
        wanted: The signature to provide, of a board with the same planes and layout.

    Raises:
        UsageError: Other weights of the network depend on the board size.
    """
    other: Net = net.config.build(wanted).train(net.training)
    target = other.state_dict()
    for name, tensor in net.state_dict().items():
        fits = tensor.shape == target[name].shape
        check(
            fits or name.endswith(_SCORES),
            "net.kind",
            net.config.kind,
            f"must have no weights that depend on the board size, not {name}; "
            "choose a network of this board size",
        )
        target[name].copy_(tensor if fits else _resized(tensor, len(target[name])))
    return other


def _resized(scores: Tensor, size: int) -> Tensor:
    """Returns weights or biases ``[size, ...]`` of the scores nearest to zero."""
    common = min(size, len(scores))
    if scores.dim() == 1:
        found = torch.full((size,), float(scores.min()))
    else:
        found = torch.zeros(size, *scores.shape[1:])
    first, source = (size - common) // 2, (len(scores) - common) // 2
    found[first : first + common] = scores[source : source + common]
    return found
