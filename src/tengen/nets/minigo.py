"""The config of the network that MLPerf's benchmark minigo trains.

Source: MLPerf training v2.1, minigo, ``dual_net.py`` and ``ml_perf/flags/19``; Silver
et al. 2017, "Mastering the game of Go without human knowledge", methods, neural network
architecture.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.nets.config import NetConfig, check_board
from tengen.tensors import Signature

NUM_MINIGO_PLANES = 14
"""Number of observation planes of a game whose name ends with ``/planes=minigo``."""

# Upper bounds of settings; larger numbers are probably typing errors.
_MAX_BLOCKS = 256
_MAX_CHANNELS = 2048


@dataclass(frozen=True, kw_only=True)
class MinigoConfig(NetConfig):
    """The config of minigo's residual network with dense heads, for one board size."""

    kind: Literal["minigo"] = "minigo"
    """The kind of network."""
    num_blocks: int = bounded(6, 1, _MAX_BLOCKS)
    """Number of residual blocks of two 3x3 convolutions, at least 1."""
    num_channels: int = bounded(64, 1, _MAX_CHANNELS)
    """Number of channels of the trunk, at least 1."""
    fc_width: int = bounded(64, 1, _MAX_CHANNELS)
    """Number of units of the value head's hidden layer, at least 1."""
    policy_channels: int = bounded(2, 1, _MAX_CHANNELS)
    """Number of channels of the policy head, at least 1."""
    value_channels: int = bounded(1, 1, _MAX_CHANNELS)
    """Number of channels of the value head, at least 1."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    @property
    def fixed_size(self) -> bool:
        """True, because the dense heads have weights for each cell of the board."""
        return True

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted``; see ``NetConfig.signature``.

        Raises:
            UsageError: The task is not a game of Go with minigo's planes.
        """
        board = check_board(self, wanted)
        check(
            board.num_planes == NUM_MINIGO_PLANES
            and board.policy_layout == "cells_and_pass",
            "net.kind",
            self.kind,
            f"needs the {NUM_MINIGO_PLANES} planes of go/N/planes=minigo, not "
            f"{board.num_planes} with policy_layout {board.policy_layout}; change the "
            "task, or choose resnet",
        )
        return wanted
