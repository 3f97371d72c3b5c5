"""The network of line patterns, for games about rows of stones.

Four lines run through each cell: across, down and both diagonals, ``reach`` cells to
both sides. A small network maps each line to features, which are added and rectified.
The means and maxima of all cells' features give a context, from which follow the value
and the weights of the policy: a cell's logit is the dot product of these weights with
its features.

A line has few patterns, so the core tabulates the small network (core/lines), and in
training each pattern of a minibatch is evaluated once. All layers compute in float32.

Source: the idea of tabulated line patterns is that of Rapfi (Jin et al. 2025, arXiv
2503.13178). Differs from Rapfi: no convolution mixes neighbouring cells, a position is
evaluated from scratch, and the policy's weights depend on the whole board.

Legend: B batch, C planes, H W board, A actions, L cells of a line, U patterns, F
features.
"""

from __future__ import annotations

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional

from tengen.nets.lines import FIRST_OTHER_PLANE, LinesConfig
from tengen.nets.modules.board_net import BoardNet
from tengen.tensors import Signature

_DIRECTIONS = ((0, 1), (1, 0), (1, 1), (1, -1))  # rows, columns
# States of a cell: 0 empty, 1 own stone, 2 opponent's stone, 3 off the board.
_OFF, _STATE_BITS = 3, 2


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
        codes = self._codes(planes)
        present = torch.zeros(
            1 << (_STATE_BITS * (2 * self.config.reach + 1)),
            dtype=torch.long,
            device=planes.device,
        )
        present[codes] = 1
        patterns = present.nonzero().squeeze(1)
        place = present.cumsum(0) - 1
        cells = functional.embedding_bag(
            place[codes].reshape(-1, len(_DIRECTIONS)),
            self._features(patterns),
            mode="sum",
        ).relu()
        cells = cells.reshape(len(planes), -1, self.config.num_channels)
        others = planes[:, FIRST_OTHER_PLANE:].mean((2, 3))
        pooled = torch.cat([cells.mean(1), cells.amax(1), others], 1)
        context = self.context(pooled).relu()
        weights = self.policy(context)
        return torch.einsum("baf,bf->ba", cells, weights), self.value(context)

    def _codes(self, planes: Tensor) -> Tensor:
        """Returns the pattern of each line ``[B * H * W * 4]`` int64."""
        num_rows, _, height, width = planes.shape
        own, other = planes[:, 1].flatten(1) > 0.5, planes[:, 2].flatten(1) > 0.5
        stones = torch.where(own, 1, torch.where(other, 2, 0)).to(torch.int32)
        off = torch.full((num_rows, 1), _OFF, dtype=torch.int32, device=planes.device)
        states = torch.cat([stones, off], 1)
        codes = torch.zeros((), dtype=torch.int64, device=planes.device)
        for index in _windows(height, width, self.config.reach):
            codes = codes * (1 << _STATE_BITS) + states[:, index.to(planes.device)]
        return codes.flatten()

    def _features(self, patterns: Tensor) -> Tensor:
        """Returns the features ``[U, F]`` of patterns ``[U]`` int64."""
        length = 2 * self.config.reach + 1
        shifts = _STATE_BITS * torch.arange(length - 1, -1, -1, device=patterns.device)
        states = (patterns[:, None] >> shifts) & _OFF
        known = torch.arange(1, _OFF + 1, device=patterns.device)
        inputs = (states[:, :, None] == known).flatten(1)
        features: Tensor = self.line(inputs.float())
        return features


@functools.lru_cache(maxsize=32)
def _windows(height: int, width: int, reach: int) -> tuple[Tensor, ...]:
    """Returns the L cells of all lines, each ``[H * W * 4]`` int64.

    Entry i has the i-th cell of the lines, ordered by centre and direction; H * W is a
    cell off the board.
    """
    rows, columns = torch.arange(height)[:, None, None], torch.arange(width)[:, None]
    down, across = torch.tensor(_DIRECTIONS).T
    windows = []
    for i in range(-reach, reach + 1):
        row, column = rows + i * down, columns + i * across
        is_on = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        cell = torch.where(is_on, row * width + column, height * width)
        windows.append(cell.flatten())
    return tuple(windows)


build = LinesNet
"""Returns a new network with random weights; see ``NetConfig.build``."""
