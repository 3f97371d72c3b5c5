"""The network of line patterns, for games about rows of stones.

Four lines run through each cell: across, down and both diagonals, ``reach`` cells to
both sides. A small network maps each line to features, which are added and rectified.
The means and maxima of all cells' features give a context, from which follow the value
and the weights of the policy: a cell's logit is the dot product of these weights with
its features. A line and its reverse have equal features, so the network is equivariant
under all symmetries of the board.

A line has few patterns, so the core tabulates the small network (core/lines). In
training each pattern of a minibatch is evaluated once, and the core adds features and
their gradients, on the CPU. All layers compute in float32.

Source: the idea of tabulated line patterns is that of Rapfi (Jin et al. 2025, arXiv
2503.13178). Differs from Rapfi: no convolution mixes neighbouring cells, a position is
evaluated from scratch, and the policy's weights depend on the whole board.

Legend: B batch, A actions, U patterns, F features.
"""

from __future__ import annotations

import functools
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from tengen import _core
from tengen.nets.config import NetConfig
from tengen.nets.lines import FIRST_OTHER_PLANE, LinesConfig
from tengen.nets.modules.board_net import BoardNet, embed
from tengen.tensors import Signature


class LinesNet(BoardNet):
    """A network of line patterns that predicts policy and value of a board position.

    Attributes:
        config: The network's config.
    """

    config: LinesConfig

    def __init__(self, wanted: Signature, config: LinesConfig) -> None:
        """Creates a network with random weights from torch's generator.

        Raises:
            UsageError: See ``LinesConfig.signature``.
        """
        super().__init__(wanted, config)
        layers = {
            name: nn.Linear(num_inputs, num_outputs)
            for name, (num_outputs, num_inputs) in config.layers(
                self.board.num_planes
            ).items()
        }
        self.line = nn.Sequential(
            layers["line.0"], nn.ReLU(), layers["line.2"], nn.ReLU(), layers["line.4"]
        )
        self.context = layers["context"]
        self.policy = layers["policy"]
        self.value = nn.Sequential(layers["value.0"], nn.ReLU(), layers["value.2"])

    def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
        """Returns the logits of policy and outcome; see ``BoardNet.forward``."""
        finder, all_inputs = _patterns(self.config.reach)
        patterns, rows = finder.find(_to_core(planes))
        features = self.line(all_inputs[torch.from_numpy(patterns)].to(planes.device))
        cells, mean, top = _PoolLines.apply(  # type: ignore[no-untyped-call]
            features, rows
        )
        others = planes[:, FIRST_OTHER_PLANE:].mean((2, 3))
        context = self.context(torch.cat([mean, top, others], 1)).relu()
        logits = _DotLines.apply(  # type: ignore[no-untyped-call]
            cells, self.policy(context), features.detach(), rows
        )
        return logits, self.value(context)

    def grown(self, config: NetConfig) -> LinesNet:
        """Returns a larger network with the same outputs, on the CPU.

        Nothing that is old reads what is new.

        Args:
            config: A config with at least as many units and channels, otherwise equal.

        Raises:
            UsageError: ``config`` is smaller or differs in another field.
        """
        self.config.check_grows(config)
        assert isinstance(config, LinesConfig)
        grown = LinesNet(self.wanted, config).train(self.training)
        num_old, num_new = self.config.num_channels, config.num_channels
        old = torch.arange(num_old)
        # Means, then maxima, then the other planes.
        others = torch.arange(self.context.in_features - 2 * num_old) + 2 * num_new
        pooled = torch.cat([old, old + num_new, others])
        for layer in (grown.policy.weight, grown.policy.bias):
            nn.init.zeros_(layer)
        target = grown.state_dict()
        for name, tensor in self.state_dict().items():
            columns = pooled if name == "context.weight" else None
            embed(tensor.cpu(), target[name], (None, columns))
        return grown


@functools.cache
def _patterns(reach: int) -> tuple[_core.LinePatterns, Tensor]:
    """Returns the patterns of lines, and the inputs ``[patterns, inputs]`` of each."""
    patterns = _core.LinePatterns(reach)
    return patterns, torch.from_numpy(patterns.inputs())


class _PoolLines(torch.autograd.Function):
    """The mean and maximum of cells, whose features are sums of those of patterns."""

    @staticmethod
    def forward(
        ctx: Any, features: Tensor, rows: NDArray[Any]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Returns a stand-in ``[B, A + F]`` for the cells, mean and maximum ``[B, F]``.

        The features ``[B, A, F]`` of the cells are never stored. The gradient of the
        stand-in is that of the features as two factors: of cells, and of channels.

        Args:
            ctx: What torch keeps for the gradient.
            features: Features of the patterns, ``[U, F]`` float32.
            rows: Patterns of the lines through each cell, ``[B, 4, A]`` uint32.
        """
        outputs = _core.pool_lines(_to_core(features), rows)
        mean, top = (_from_core(x, features) for x in outputs)
        ctx.rows = rows
        ctx.save_for_backward(features, top)
        size = rows.shape[2] + features.shape[1]
        return features.new_empty(1).expand(len(rows), size), mean, top

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Returns the gradient of the features."""
        features, top = ctx.saved_tensors
        of_cells, of_mean, of_top = gradients
        dots, weights = torch.split(of_cells, [ctx.rows.shape[2], features.shape[1]], 1)
        arrays = map(_to_core, (weights, dots, of_mean, top, of_top))
        found = _core.lines_gradient(_to_core(features), ctx.rows, *arrays)
        return _from_core(found, features), None


class _DotLines(torch.autograd.Function):
    """The dot products of each cell's features with the weights of its position."""

    @staticmethod
    def forward(
        ctx: Any, cells: Tensor, weights: Tensor, features: Tensor, rows: NDArray[Any]
    ) -> Tensor:
        """Returns ``[B, A]`` for weights ``[B, F]``; see ``_PoolLines.forward``."""
        ctx.rows = rows
        ctx.save_for_backward(weights, features)
        found = _core.dot_lines(_to_core(features), rows, _to_core(weights))
        return _from_core(found, weights)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        """Returns the gradients of cells and weights."""
        weights, features = ctx.saved_tensors
        found = _core.dot_lines_gradient(
            _to_core(features), ctx.rows, _to_core(gradient)
        )
        of_cells = torch.cat([gradient, weights], 1)
        return of_cells, _from_core(found, weights), None, None


def _to_core(tensor: Tensor) -> NDArray[Any]:
    return tensor.detach().float().cpu().contiguous().numpy()


def _from_core(array: Any, like: Tensor) -> Tensor:
    return torch.from_numpy(array).to(like.device)


build = LinesNet
"""Returns a new network with random weights; see ``NetConfig.build``."""
