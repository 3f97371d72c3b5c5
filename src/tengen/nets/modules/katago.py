"""KataGo's convolutional networks.

Source: KataGo (lightvector/KataGo), versions 8 to 17 of its networks; Wu 2019,
"Accelerating Self-Play Learning in Go", for the layers.

Differs from KataGo's networks: there are no optimistic policy and no outputs for
variances and errors. A norm has no batch statistics. It is a constant scale and shift,
folded into the preceding convolution if there is one. So these networks are only for
playing, not for training.

Legend: B batch, C channels, H W board, A actions.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.nets.katago import (
    NUM_KATAGO_PLANES,
    NUM_KATAGO_POINT_PLANES,
    KatagoBlock,
    KatagoConfig,
)
from tengen.nets.modules.board_net import BoardNet
from tengen.nets.modules.net import Tensors
from tengen.tensors import Signature

# Index of the plane that is all ones under superko rules, which rule out games without
# a result.
_SUPERKO_PLANE = 24
# A logit so low that its probability is 0 in a float32 softmax.
_IMPOSSIBLE = -10000.0
# Board side at which the second pooled value, the mean times ``side``, is 0.
_MIDDLE_SIDE = 14.0


class _Conv(nn.Module):
    """A convolution that computes in the dtype of its input."""

    def __init__(
        self, num_inputs: int, num_outputs: int, side: int, *, has_bias: bool = False
    ) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(num_outputs, num_inputs, side, side))
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        self.bias = nn.Parameter(torch.zeros(num_outputs)) if has_bias else None
        self.padding = side // 2

    def forward(self, x: Tensor) -> Tensor:
        bias = None if self.bias is None else self.bias.to(x.dtype)
        weight = self.weight.to(x.dtype)
        return functional.conv2d(x, weight, bias, padding=self.padding)


class _Affine(nn.Module):
    """A norm without statistics: a scale and a shift per channel."""

    def __init__(self, num_channels: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(num_channels, 1, 1))
        self.bias = nn.Parameter(torch.zeros(num_channels, 1, 1))

    def forward(self, x: Tensor) -> Tensor:
        return x * self.weight.to(x.dtype) + self.bias.to(x.dtype)


class _Board:
    """Pooling and activation for a batch of boards that fill their planes."""

    def __init__(self, planes: Tensor, config: KatagoConfig) -> None:
        self.area = planes[:, :1].sum((2, 3))
        self.activation = config.activation

    @property
    def side(self) -> Tensor:
        """Scale of the second pooled value: (board side - 14) / 10, ``[B, 1]``."""
        return (self.area.sqrt() - _MIDDLE_SIDE) / 10.0

    def active(self, x: Tensor) -> Tensor:
        """Applies the configured activation function to ``x``."""
        if self.activation == "relu":
            return x.relu()
        if self.activation == "mish":
            return functional.mish(x)
        return functional.silu(x)

    def mean(self, x: Tensor) -> Tensor:
        """Returns the mean of ``x`` over the board, ``[B, C]``."""
        return x.sum((2, 3)) / self.area

    def pooled(self, x: Tensor) -> Tensor:
        """Returns the mean, the mean times ``side`` and the maximum, ``[B, 3C]``."""
        mean = self.mean(x)
        return torch.cat([mean, mean * self.side, x.amax((2, 3))], dim=1)


class _Block(nn.Module):
    """A residual block; see ``KatagoBlock``."""

    def __init__(self, num_inputs: int, config: KatagoBlock) -> None:
        super().__init__()
        num_channels, num_pooled = config.num_channels, config.num_pooled
        side = config.first_side
        is_nested = bool(config.inner)
        self.norm = _Affine(num_inputs)
        self.conv1 = _Conv(num_inputs, num_channels, side, has_bias=not is_nested)
        if num_pooled:
            self.pool_conv = _Conv(num_inputs, num_pooled, side, has_bias=True)
            self.pool = nn.Linear(3 * num_pooled, num_channels, bias=False)
        if is_nested:
            self.inner = nn.ModuleList(
                _Block(num_channels, block) for block in config.inner
            )
            self.last_norm = _Affine(num_channels)
        self.conv2 = _Conv(num_channels, num_inputs, config.last_side)
        self.is_nested = is_nested
        self.is_pooled = num_pooled > 0

    def forward(self, x: Tensor, board: _Board) -> Tensor:
        seen = board.active(self.norm(x))
        y: Tensor = self.conv1(seen)
        if self.is_pooled:
            pooled = board.pooled(board.active(self.pool_conv(seen)).float())
            y = y + self.pool(pooled)[:, :, None, None].to(y.dtype)
        if self.is_nested:
            for block in self.inner:
                y = block(y, board)
            y = self.last_norm(y)
        out: Tensor = x + self.conv2(board.active(y))
        return out


class _PolicyHead(nn.Module):
    """KataGo's policy head, which computes logits of all points and of a pass."""

    def __init__(self, config: KatagoConfig) -> None:
        super().__init__()
        num_channels, num_pooled = config.policy_channels, config.pooled_policy_channels
        self.conv = _Conv(config.num_channels, num_channels, 1, has_bias=True)
        self.pool_conv = _Conv(config.num_channels, num_pooled, 1, has_bias=True)
        self.pool = nn.Linear(3 * num_pooled, num_channels, bias=False)
        self.out = _Conv(num_channels, 1, 1)
        num_inputs = 3 * num_pooled
        self.has_units = config.pass_units > 0
        if self.has_units:
            self.pass_hidden = nn.Linear(num_inputs, config.pass_units)
            num_inputs = config.pass_units
        self.pass_out = nn.Linear(num_inputs, 1)

    def forward(self, x: Tensor, board: _Board) -> Tensor:
        pooled = board.pooled(board.active(self.pool_conv(x)))
        y = self.conv(x) + self.pool(pooled)[:, :, None, None]
        points = self.out(board.active(y)).flatten(1)
        if self.has_units:
            pooled = board.active(self.pass_hidden(pooled))
        return torch.cat([points, self.pass_out(pooled)], dim=1)


class _ValueHead(nn.Module):
    """KataGo's value head, which predicts outcome, score, lead and ownership."""

    score_scale: Tensor

    def __init__(self, config: KatagoConfig) -> None:
        super().__init__()
        num_channels, num_units = config.value_channels, config.value_units
        self.conv = _Conv(config.num_channels, num_channels, 1, has_bias=True)
        self.hidden = nn.Linear(3 * num_channels, num_units)
        self.out = nn.Linear(num_units, 3)
        self.score = nn.Linear(num_units, 2)
        self.lead = nn.Linear(num_units, 1)
        self.ownership = _Conv(num_channels, 1, 1)
        # Factor from the output for the score's standard deviation to points.
        self.register_buffer("score_scale", torch.full((1,), 20.0))

    def see(self, x: Tensor, board: _Board) -> tuple[Tensor, Tensor]:
        """Returns the head's channels ``[B, C, H, W]`` and hidden units ``[B, N]``."""
        cells = board.active(self.conv(x))
        mean, side = board.mean(cells), board.side
        parts = [mean, mean * side, mean * (side * side - 0.1)]
        return cells, board.active(self.hidden(torch.cat(parts, dim=1)))


class KatagoNet(BoardNet):
    """A KataGo network, which predicts policy, outcome and score of a Go position.

    Attributes:
        config: The network's config.
        compute_dtype: Dtype of the trunk: float32, or bfloat16 if that is faster. The
            heads always compute in float32.
    """

    config: KatagoConfig

    def __init__(self, wanted: Signature, config: KatagoConfig) -> None:
        """Creates a network with random weights from torch's random generator.

        Raises:
            UsageError: See ``KatagoConfig.signature``.
        """
        super().__init__(wanted, config)
        num_channels = config.num_channels
        num_constants = NUM_KATAGO_PLANES - NUM_KATAGO_POINT_PLANES
        self.stem = _Conv(NUM_KATAGO_POINT_PLANES, num_channels, config.stem_side)
        self.constants = nn.Linear(num_constants, num_channels, bias=False)
        self.blocks = nn.ModuleList(
            _Block(num_channels, block) for block in config.blocks
        )
        self.tip = _Affine(num_channels)
        self.policy_head = _PolicyHead(config)
        self.value_head = _ValueHead(config)

    def fix_dtype(self, dtype: torch.dtype) -> None:
        """Sets the trunk's dtype permanently, for inference only.

        Casts the convolution weights once instead of in every call.
        """
        self.compute_dtype = dtype
        for module in (self.stem, *self.blocks.modules()):
            if isinstance(module, _Conv):
                cast = module.weight.detach().to(
                    dtype, memory_format=torch.channels_last
                )
                module.weight = nn.Parameter(cast, requires_grad=False)

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of policy and outcome; see ``BoardNet.forward``.

        A draw means a game without a result, which superko rules make impossible.
        """
        x, board = self._trunk(planes)
        _, hidden = self.value_head.see(x, board)
        return self.policy_head(x, board), self._outcome(planes, hidden)

    def estimate(self, planes: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Returns the policy, outcome and score; see ``BoardNet.estimate``."""
        x, board = self._trunk(planes)
        _, hidden = self.value_head.see(x, board)
        outcome = self._outcome(planes, hidden)
        score = self._score(hidden, outcome)
        return self.policy_head(x, board), outcome, score

    def expect(self, planes: Tensor) -> Tensors:
        """Returns predictions of the final positions; see ``BoardNet.expect``."""
        x, board = self._trunk(planes)
        cells, hidden = self.value_head.see(x, board)
        outcome = self._outcome(planes, hidden)
        return {
            "ownership": self.value_head.ownership(cells).squeeze(1).tanh(),
            "score": self._score(hidden, outcome),
            "lead": self.value_head.lead(hidden).squeeze(1) * _decided(outcome)[:, 0],
        }

    def _trunk(self, planes: Tensor) -> tuple[Tensor, _Board]:
        board = _Board(planes, self.config)
        points = planes[:, :NUM_KATAGO_POINT_PLANES]
        # Constant planes have one value on all points, so read it from one point.
        constants = planes[:, NUM_KATAGO_POINT_PLANES:, 0, 0]
        x = points.to(self.compute_dtype, memory_format=torch.channels_last)
        x = self.stem(x)
        x = x + self.constants(constants)[:, :, None, None].to(x.dtype)
        for block in self.blocks:
            x = block(x, board)
        return board.active(self.tip(x)).float(), board

    def _outcome(self, planes: Tensor, hidden: Tensor) -> Tensor:
        logits = self.value_head.out(hidden)
        superko = planes[:, _SUPERKO_PLANE, 0, 0].unsqueeze(1)
        none = logits[:, 2:] + superko * _IMPOSSIBLE
        return torch.cat([logits[:, :1], none, logits[:, 1:2]], dim=1)

    def _score(self, hidden: Tensor, outcome: Tensor) -> Tensor:
        score = self.value_head.score(hidden)
        mean = score[:, :1]
        stdev = functional.softplus(score[:, 1:]) * self.value_head.score_scale
        # A game without a result counts as a score of 0 points.
        decided = _decided(outcome)
        square = (mean * mean + stdev * stdev) * decided
        mean = mean * decided
        variance = (square - mean * mean).clamp(min=0.0)
        return torch.cat([mean, variance.sqrt()], dim=1)


def _decided(outcome: Tensor) -> Tensor:
    """Returns the probability that a game ends with a result, ``[B, 1]``."""
    share = outcome.softmax(1)
    return share[:, :1] + share[:, 2:]


build = KatagoNet
"""Returns a new network with random weights; see ``NetConfig.build``."""
