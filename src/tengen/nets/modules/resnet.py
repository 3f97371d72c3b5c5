"""The residual network for boards, and the function that grows it.

Source: He et al. 2016, "Identity Mappings in Deep Residual Networks" (pre-activation);
Wu 2019, "Accelerating Self-Play Learning in Go", section 3.3 (global pooling).

Differs from Wu: the pooled channels of a block also remain ordinary channels, so every
convolution is as wide as the trunk.

Legend: B batch, C planes, H W board, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tengen.nets.config import NetConfig
from tengen.nets.modules.board_net import (
    Auxiliary,
    AuxiliaryHeads,
    BoardNet,
    embed,
    score_moments,
)
from tengen.nets.modules.heads import GlobalPool, PolicyHead, ValueHead
from tengen.nets.modules.net import Tensors
from tengen.nets.modules.norm import BoardNorm, Conv, FoldedConv, fix_convolutions
from tengen.nets.resnet import ResNetConfig
from tengen.tensors import Signature


def _masked(x: Tensor, mask: Tensor | None) -> Tensor:
    return x if mask is None else x * mask.to(x.dtype)


class _Block(nn.Module):
    """A residual block of two convolutions with optional global pooling."""

    def __init__(self, num_channels: int, num_pool_channels: int) -> None:
        super().__init__()
        self.num_pool_channels = num_pool_channels
        self.norm1 = BoardNorm(num_channels)
        self.conv1 = Conv(num_channels, num_channels)
        self.norm2 = BoardNorm(num_channels)
        self.conv2 = Conv(num_channels, num_channels)
        if num_pool_channels:
            self.summary = GlobalPool()
            self.pool = nn.Linear(3 * num_pool_channels, num_channels, bias=False)
        self.folded: FoldedConv | None = None

    def fold_norms(self) -> None:
        """Folds the second norm, unless pooling adds a bias before the ReLU."""
        if not self.num_pool_channels:
            self.folded = self.norm2.folded_into(self.conv1.weight)

    def forward(self, x: Tensor, mask: Tensor | None, area: Tensor) -> Tensor:
        y = _masked(self.norm1(x, mask).relu(), mask)
        if self.folded is None:
            y = self._second(self.conv1(y), mask, area)
        else:
            y = self.folded(y)
        out: Tensor = x + self.conv2(_masked(y, mask))
        return out

    def _second(self, y: Tensor, mask: Tensor | None, area: Tensor) -> Tensor:
        """Returns the second convolution's input, given the first's output ``y``."""
        y = self.norm2(y, mask)
        if self.num_pool_channels:
            pooled = _masked(y[:, : self.num_pool_channels].relu(), mask)
            bias = self.pool(self.summary(pooled, area))
            y = y + bias[:, :, None, None].to(y.dtype)
        return y.relu()


class ResNet(BoardNet):
    """A residual network that predicts policy and value of a board position.

    The forward pass has no data-dependent branch. Unless the policy layout is ``flat``,
    it accepts any H and W, so one exported graph is valid for every board size.

    Attributes:
        config: The network's config.
        compute_dtype: Dtype of the trunk: float32, or bfloat16 if that is faster. The
            heads always compute in float32.
    """

    config: ResNetConfig

    def __init__(self, wanted: Signature, config: ResNetConfig) -> None:
        """Creates a network with random weights from torch's generator.

        Raises:
            UsageError: See ``BoardNet``.
        """
        super().__init__(wanted, config)
        board = self.board
        num_channels = config.num_channels
        self.stem = Conv(board.num_planes, num_channels)
        self.blocks = nn.ModuleList(
            _Block(num_channels, config.num_pool_channels if config.pools(i) else 0)
            for i in range(config.num_blocks)
        )
        self.tip = BoardNorm(num_channels)
        self.policy_head = PolicyHead(board, num_channels, config.head_channels)
        self.value_head = ValueHead(num_channels, config.head_channels)
        self.auxiliary_heads = (
            AuxiliaryHeads(board, config.head_channels, config.lead)
            if config.auxiliary
            else None
        )

    def fold_norms(self) -> None:
        """Folds norms into the preceding convolutions; see ``Net.fold_norms``."""
        for block in self.blocks:
            if isinstance(block, _Block):
                block.fold_norms()

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Sets the trunk's dtype permanently, for inference only."""
        self.compute_dtype = dtype
        fix_convolutions(self.modules(), dtype)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of policy and outcome; see ``BoardNet.forward``."""
        policy, value = self._see(planes)
        return self.policy_head(*policy), self.value_head(value[1])

    def learn(self, planes: Tensor) -> tuple[Tensor, Tensor, Auxiliary | None]:
        """Returns the outputs of ``forward`` and of the auxiliary heads, if any."""
        policy, value = self._see(planes)
        heads = self.auxiliary_heads
        auxiliary = None if heads is None else heads(policy, value)
        return self.policy_head(*policy), self.value_head(value[1]), auxiliary

    def estimate(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the outputs of ``forward`` and the score; see ``BoardNet``."""
        policy, value = self._see(planes)
        assert self.auxiliary_heads is not None
        score = self.auxiliary_heads.estimate_score(value[1])
        return self.policy_head(*policy), self.value_head(value[1]), score

    def expect(self, planes: Tensor) -> Tensors:
        """Returns predictions of the final position; see ``BoardNet.expect``."""
        _, _, auxiliary = self.learn(planes)
        assert auxiliary is not None
        assert auxiliary.ownership is not None
        assert auxiliary.score is not None
        found = {
            # 2 p - 1, where p is the probability of owning the cell.
            "ownership": torch.tanh(auxiliary.ownership / 2),
            "score": score_moments(auxiliary.score),
        }
        return found if auxiliary.lead is None else found | {"lead": auxiliary.lead}

    def grown(self, config: NetConfig) -> ResNet:
        """Returns a larger network with the same outputs; see ``grow_net``."""
        return grow_net(self, config)

    def _see(
        self, planes: Tensor
    ) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
        """Returns the activations of the policy head and of the value head."""
        board = planes[:, :1]
        area = board.sum((2, 3))
        mask = board if self.config.mixed_sizes else None
        x = planes.to(self.compute_dtype, memory_format=torch.channels_last)
        x = self.stem(x)
        for block in self.blocks:
            x = block(x, mask, area)
        x = _masked(self.tip(x, mask).relu(), mask).float()
        return self.policy_head.see(x, mask, area), self.value_head.see(x, mask, area)


def grow_net(net: ResNet, config: NetConfig) -> ResNet:
    """Returns a larger network with the same outputs, on the CPU.

    The outputs are exactly equal in evaluation mode. They are equal in training mode
    too, because new channels have their own statistics and no old channel reads them.

    Args:
        net: The network to grow; it is not changed.
        config: A config at least as deep and as wide as ``net.config``, including its
            heads, and otherwise equal. It may add auxiliary heads or a head for the
            lead, with random weights.

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
    # The grown network is on the CPU, but the old network may be on a GPU.
    old = {name: tensor.cpu() for name, tensor in net.state_dict().items()}
    for name, target in grown.state_dict().items():
        if name in old:
            embed(old[name], target, axes.of(name))
    return grown


class _AxisMaps:
    """Maps the old indices on each axis of each tensor to indices in the new tensor."""

    def __init__(self, net: ResNet, config: ResNetConfig) -> None:
        self._trunk = torch.arange(net.config.num_channels)
        self._head = torch.arange(net.config.head_channels)
        old, new = net.config.num_pool_channels, config.num_pool_channels
        # New pooled channels follow the old ones, which shifts the unpooled channels.
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
        """Returns the index maps of a tensor's axes 0 and 1; None for the identity."""
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
            # Auxiliary heads read the activations of the policy and value heads.
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
    """Returns the map of an axis with three pooled values per channel of ``size``."""
    return torch.cat([index + section * size for section in range(3)])


build = ResNet
"""Returns a new network with random weights; see ``NetConfig.build``."""
