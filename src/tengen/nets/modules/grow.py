"""Growing a trained residual network without changing what it computes.

Source: Chen et al. 2016, "Net2Net", which copies units; here, as in Wei et al. 2016,
"Network Morphism", new units are random and their outputs are not used at first.

Differs from the papers: a new unit has random incoming and zero outgoing weights, so
that the outgoing weights learn from the first step and the incoming ones from the
second. A new block ends in a zero convolution and so starts as the identity.

Average and optimizer state are not carried over. The average of the weights restarts
from the grown network. The optimizer starts with empty state, because the old momenta
have the old shapes and would be out of date within some tens of steps. The optimizer's
warm-up makes the restart harmless.
"""

from __future__ import annotations

import torch
from torch import Tensor

from tengen.nets.config import NetConfig
from tengen.nets.modules.resnet import ResNet
from tengen.nets.resnet import ResNetConfig

__all__ = ["grow_net"]


def grow_net(net: ResNet, config: NetConfig) -> ResNet:
    """Returns a larger network with the same outputs, in evaluation mode exactly.

    In training mode the outputs are equal too: new channels have their own statistics,
    and their outputs are not used. The larger network is on the CPU.

    Args:
        net: The network to grow; it is not changed.
        config: At least as deep and as wide as ``net.config``, its heads included, and
            equal otherwise. It may also have auxiliary heads or a head for the lead
            that ``net`` does not have; these start random.

    Raises:
        UsageError: ``config`` is smaller or differs in another field.
    """
    net.config.check_grows(config)
    assert isinstance(config, ResNetConfig)
    grown = ResNet(net.wanted, config)
    grown.compute_dtype = net.compute_dtype
    grown.train(net.training)
    for index in range(net.config.num_blocks, config.num_blocks):
        torch.nn.init.zeros_(grown.get_parameter(f"blocks.{index}.conv2.weight"))
    axes = _AxisMaps(net, config)
    # The grown network is made on the CPU, wherever the old one is.
    old = {name: tensor.cpu() for name, tensor in net.state_dict().items()}
    for name, target in grown.state_dict().items():
        if name in old:
            _embed(old[name], target, axes.of(name))
    return grown


class _AxisMaps:
    """For each axis of each tensor, the new indices of the old entries."""

    def __init__(self, net: ResNet, config: ResNetConfig) -> None:
        self._trunk = torch.arange(net.config.num_channels)
        self._head = torch.arange(net.config.head_channels)
        old, new = net.config.num_pool_channels, config.num_pool_channels
        # New pooled channels follow the old pooled ones, so the rest moves up.
        rest = self._trunk[: net.config.num_channels - old] + new
        self._inner_pool = torch.cat([torch.arange(old), rest])
        self._pooled = _three_sections(torch.arange(old), new)
        self._pooled_head = _three_sections(self._head, config.head_channels)
        num_cells = net.board.height * net.board.width
        self._flat_head = torch.arange(net.config.head_channels * num_cells)
        self._columns_head = torch.cat([self._head, self._head + config.head_channels])
        self._layout = net.board.policy_layout
        self._pools = config.pools

    def of(self, name: str) -> tuple[Tensor | None, Tensor | None]:
        """Returns the maps of axis 0 (outputs) and axis 1 (inputs); None: unchanged."""
        parts = name.split(".")
        if parts[0] == "stem":
            return self._trunk, None
        if parts[0] == "tip":
            return self._trunk, None
        if parts[0] == "blocks":
            pools = self._pools(int(parts[1]))
            inner = self._inner_pool if pools else self._trunk
            return {
                "norm1": (self._trunk, None),
                "conv1": (inner, self._trunk),
                "norm2": (inner, None),
                "conv2": (self._trunk, inner),
                "pool": (inner, self._pooled),
            }[parts[2]]
        if parts[0] == "auxiliary_heads":
            # Their inputs are laid out as in the heads that they belong to.
            if parts[1] != "reply":
                return None, self._head if parts[1] == "ownership" else None
            parts = ["policy_head", *parts[2:]]
        if parts[1] in ("local", "pooled"):
            return self._head, self._trunk
        if parts[1] == "bias":
            return self._head, self._pooled_head
        if parts[1] in ("hidden", "out_pass"):
            return None, self._pooled_head
        if parts[0] == "policy_head":
            return None, {"flat": self._flat_head, "columns": self._columns_head}.get(
                self._layout, self._head
            )
        return None, None


def _three_sections(index: Tensor, size: int) -> Tensor:
    """Returns a pooled axis's map: mean, scaled mean and maximum, ``size`` each."""
    return torch.cat([index + section * size for section in range(3)])


def _embed(old: Tensor, new: Tensor, axes: tuple[Tensor | None, Tensor | None]) -> None:
    """Copies ``old`` into ``new`` in place; weights from new to old units become 0."""
    rows = torch.arange(old.shape[0]) if axes[0] is None else axes[0]
    if old.dim() == 1:
        new[rows] = old
        return
    columns = torch.arange(old.shape[1]) if axes[1] is None else axes[1]
    new[rows] = 0.0
    new[rows[:, None], columns[None, :]] = old
