"""A small transformer for boards, with a token per cell and full attention.

Source: Vaswani et al. 2017, "Attention Is All You Need"; Xiong et al. 2020, "On Layer
Normalization in the Transformer Architecture" (pre-norm).

Differs from the papers: a cell's position embedding is the sum of a learned vector for
its row and a learned vector for its column, and there is no dropout.

Legend: B batch, C planes, H W board, A actions, D size of a token.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.nets.config import NetConfig, check_board
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.nets.modules.board_net import BoardNet


@dataclass(frozen=True, kw_only=True)
class TransformerConfig(NetConfig):
    """The config of a transformer for one board size, in float32 with torch."""

    kind: Literal["transformer"] = "transformer"
    """The kind of network."""
    num_layers: int = bounded(4, 1, 64)
    """Number of layers, each with attention and two dense layers, 1 to 64."""
    num_units: int = bounded(64, 1, 4096)
    """Size D of a cell's token, a multiple of ``num_heads``, at most 4096."""
    num_heads: int = bounded(4, 1, 4096)
    """Number of attention heads, 1 to 4096."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check(
            self.num_units % self.num_heads == 0,
            "num_units",
            self.num_units,
            f"must be a multiple of num_heads, {self.num_heads}; round it",
        )

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted``; see ``NetConfig.signature``.

        Raises:
            UsageError: The task is not a board game.
        """
        check_board(self, wanted)
        return wanted

    def build(self, wanted: Signature) -> BoardNet:
        """Returns a new network; see ``NetConfig.build``."""
        return _build(wanted, self)


def _build(wanted: Signature, config: TransformerConfig) -> BoardNet:
    # Import torch here, because processes without networks import this module too.
    import torch
    from torch import Tensor, nn
    from torch.nn import functional

    from tengen.nets.modules.board_net import BoardNet
    from tengen.nets.modules.heads import GlobalPool, PolicyLogits

    num_units, num_heads = config.num_units, config.num_heads

    class Layer(nn.Module):
        """A transformer layer: attention and two dense layers, with residuals.

        Used instead of torch's layer, which computes differently in evaluation mode.
        """

        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(num_units)
            self.qkv = nn.Linear(num_units, 3 * num_units)
            self.out = nn.Linear(num_units, num_units)
            self.norm2 = nn.LayerNorm(num_units)
            self.wide = nn.Linear(num_units, 4 * num_units)
            self.narrow = nn.Linear(4 * num_units, num_units)

        def forward(self, cells: Tensor) -> Tensor:
            """Returns the tokens ``[B, H * W, D]`` after this layer, from ``cells``."""
            parts = self.qkv(self.norm1(cells)).chunk(3, dim=2)
            q, k, v = (
                part.unflatten(2, (num_heads, -1)).transpose(1, 2) for part in parts
            )
            seen = functional.scaled_dot_product_attention(q, k, v)
            cells = cells + self.out(seen.transpose(1, 2).flatten(2))
            hidden = functional.gelu(self.wide(self.norm2(cells)))
            narrowed: Tensor = cells + self.narrow(hidden)
            return narrowed

    class Transformer(BoardNet):
        """A transformer that predicts the policy and the outcome of a position."""

        def __init__(self) -> None:
            super().__init__(wanted, config)
            board = self.board
            self.stem = nn.Linear(board.num_planes, num_units)
            self.rows = nn.Parameter(0.02 * torch.randn(board.height, 1, num_units))
            self.columns = nn.Parameter(0.02 * torch.randn(board.width, num_units))
            self.layers = nn.ModuleList(Layer() for _ in range(config.num_layers))
            self.norm = nn.LayerNorm(num_units)
            self.pool = GlobalPool()
            self.policy = PolicyLogits(board, num_units)
            self.outcome = nn.Linear(num_units, 3)

        def forward(self, planes: Tensor) -> tuple[Tensor, Tensor]:
            """See ``BoardNet.forward``; planes must have the size of the board."""
            cells = self.stem(planes.flatten(2).transpose(1, 2))
            cells = cells + (self.rows + self.columns).flatten(0, 1)
            for layer in self.layers:
                cells = layer(cells)
            cells = self.norm(cells)
            local = cells.transpose(1, 2).unflatten(2, planes.shape[2:])
            context = self.pool(local, planes[:, :1].sum((2, 3)))
            return self.policy(local, context), self.outcome(cells.mean(1))

    return Transformer()
