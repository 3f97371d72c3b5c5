"""The network of the MLPerf benchmark minigo.

Source: MLPerf training v2.1, minigo, ``dual_net.py``. The layers, their initial
weights (Glorot and Bengio 2010, uniform; biases 0) and the constants of the norms are
those of the benchmark.

Differs from the benchmark: the network ignores the on-board mask; the value is that of
the side to move, not of Black; the value is output as WDL logits (win, draw, loss), so
that p(win) - p(loss) equals the benchmark's tanh.

Legend: B batch, C channels, H W board, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.nets.minigo import MinigoConfig
from tengen.nets.modules.board_net import BoardNet
from tengen.nets.modules.norm import BoardNorm, FoldedConv
from tengen.tensors import Signature

# Weight of a batch in the running statistics; the benchmark decays them by 0.95.
_MOMENTUM = 0.05
_EPSILON = 1e-5
# Index of the plane that is all ones if Black is to move, else all zeros.
_BLACK_PLANE = 9
# Logit of a draw, which is finite but gives a probability of 0 in float32.
_NO_DRAW = -128.0


class _Conv(nn.Module):
    """A convolution without bias that computes in its input's dtype."""

    def __init__(self, num_inputs: int, num_outputs: int, side: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_outputs, num_inputs, side, side))
        nn.init.xavier_uniform_(self.weight)
        self.padding = side // 2

    def forward(self, x: Tensor) -> Tensor:
        return functional.conv2d(x, self.weight.to(x.dtype), padding=self.padding)


class _PlainNorm(nn.Module):
    """Batch normalisation without scale and shift.

    Attributes:
        running_mean: Running mean of each channel, ``[C]`` float32 buffer.
        running_var: Running variance of each channel, ``[C]`` float32 buffer.
    """

    running_mean: Tensor
    running_var: Tensor

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(num_channels))
        self.register_buffer("running_var", torch.ones(num_channels))

    def forward(self, x: Tensor) -> Tensor:
        return functional.batch_norm(
            x,
            self.running_mean,
            self.running_var,
            None,
            None,
            self.training,
            _MOMENTUM,
            _EPSILON,
        )


def _norm(num_channels: int) -> BoardNorm:
    return BoardNorm(num_channels, momentum=_MOMENTUM, epsilon=_EPSILON)


class _Block(nn.Module):
    """A residual block of two convolutions, each followed by a norm."""

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.conv1 = _Conv(num_channels, num_channels, 3)
        self.norm1 = _norm(num_channels)
        self.conv2 = _Conv(num_channels, num_channels, 3)
        self.norm2 = _norm(num_channels)

    def forward(self, x: Tensor) -> Tensor:
        y = self.norm1(self.conv1(x), None).relu()
        y = self.norm2(self.conv2(y), None)
        out: Tensor = (x + y).relu()
        return out

    def folded(self) -> _FoldedBlock:
        return _FoldedBlock(
            self.norm1.folded_into(self.conv1.weight),
            self.norm2.folded_into(self.conv2.weight),
        )


class _FoldedBlock(nn.Module):
    """A residual block whose norms are folded into its convolutions."""

    def __init__(self, conv1: FoldedConv, conv2: FoldedConv) -> None:
        super().__init__()
        self.conv1 = conv1
        self.conv2 = conv2

    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.conv2(self.conv1(x), x)
        return out


class _Head(nn.Module):
    """The first layer of a head: a 1x1 convolution, a norm and a ReLU, flattened."""

    def __init__(self, num_inputs: int, num_channels: int) -> None:
        super().__init__()
        self.conv = _Conv(num_inputs, num_channels, 1)
        self.norm = _PlainNorm(num_channels)

    def forward(self, x: Tensor) -> Tensor:
        seen: Tensor = self.norm(self.conv(x)).relu()
        return seen.flatten(1)


def _dense(num_inputs: int, num_outputs: int) -> nn.Linear:
    layer = nn.Linear(num_inputs, num_outputs)
    nn.init.xavier_uniform_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


class MinigoNet(BoardNet):
    """Minigo's network, which predicts policy and outcome, for one board size.

    Attributes:
        config: The network's config.
        compute_dtype: Dtype of the trunk: float32, or bfloat16 if that is faster. The
            heads always compute in float32.
    """

    config: MinigoConfig

    def __init__(self, wanted: Signature, config: MinigoConfig) -> None:
        """Creates a network with random weights from torch's generator.

        Raises:
            UsageError: See ``MinigoConfig.signature``.
        """
        super().__init__(wanted, config)
        board, num_channels = self.board, config.num_channels
        num_cells = board.height * board.width
        self.stem = _Conv(board.num_planes - 1, num_channels, 3)
        self.stem_norm = _norm(num_channels)
        self.folded_stem: FoldedConv | None = None
        self.blocks = nn.ModuleList(
            _Block(num_channels) for _ in range(config.num_blocks)
        )
        self.policy_head = _Head(num_channels, config.policy_channels)
        self.policy_out = _dense(config.policy_channels * num_cells, board.num_actions)
        self.value_head = _Head(num_channels, config.value_channels)
        self.value_hidden = _dense(config.value_channels * num_cells, config.fc_width)
        self.value_out = _dense(config.fc_width, 1)

    def fold_norms(self) -> None:
        """Folds the trunk's norms; see ``Net.fold_norms``."""
        self.folded_stem = self.stem_norm.folded_into(self.stem.weight)
        self.blocks = nn.ModuleList(
            block.folded() if isinstance(block, _Block) else block
            for block in self.blocks
        )

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Sets the trunk's dtype permanently, for inference only.

        Casts the convolution weights once instead of in every call.
        """
        self.compute_dtype = dtype
        for module in (self.stem, self.folded_stem, *self.blocks.modules()):
            if isinstance(module, FoldedConv):
                module.fix_dtype(dtype)
            elif isinstance(module, _Conv):
                cast = module.weight.detach().to(
                    dtype, memory_format=torch.channels_last
                )
                module.weight = nn.Parameter(cast, requires_grad=False)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of policy and outcome; see ``BoardNet.forward``."""
        x = planes[:, 1:].to(self.compute_dtype, memory_format=torch.channels_last)
        if self.folded_stem is None:
            x = self.stem_norm(self.stem(x), None).relu()
        else:
            x = self.folded_stem(x)
        for block in self.blocks:
            x = block(x)
        x = x.float()
        hidden = self.value_hidden(self.value_head(x)).relu()
        black = self.value_out(hidden)
        is_black = planes[:, _BLACK_PLANE, 0, 0].unsqueeze(1)
        # tanh(v) = 2 sigmoid(2 v) - 1, so the logit of a win is 2 v, or -2 v for White.
        win = black * (4.0 * is_black - 2.0)
        outcome = torch.cat(
            [win, torch.full_like(win, _NO_DRAW), torch.full_like(win, 0.0)], dim=1
        )
        return self.policy_out(self.policy_head(x)), outcome


build = MinigoNet
"""Returns a new network with random weights; see ``NetConfig.build``."""
