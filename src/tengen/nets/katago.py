"""The config of KataGo's convolutional networks.

Source: KataGo (lightvector/KataGo), versions 8 to 17 of its networks.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.nets.config import NetConfig, check_board
from tengen.tensors import Signature, TensorSpec

NUM_KATAGO_PLANES = 29
"""Number of observation planes of a game whose name ends with ``/planes=katago``."""
NUM_KATAGO_POINT_PLANES = 18
"""Number of leading planes that vary over points; later planes are constant."""

_MAX_CHANNELS = 8192
_MAX_SIDE = 9


@dataclass(frozen=True, kw_only=True)
class KatagoBlock:
    """The config of a residual block of two convolutions and optional inner blocks."""

    num_channels: int = bounded(64, 1, _MAX_CHANNELS)
    """Number of channels between the block's two convolutions."""
    num_pooled: int = bounded(0, 0, _MAX_CHANNELS)
    """Number of channels of a third convolution, parallel to the first, whose output is
    pooled over the board; 0: no third convolution."""
    first_side: int = bounded(3, 1, _MAX_SIDE)
    """Kernel size of the first and the third convolution, odd."""
    last_side: int = bounded(3, 1, _MAX_SIDE)
    """Kernel size of the last convolution, odd."""
    inner: tuple[KatagoBlock, ...] = ()
    """Blocks between the two convolutions (a nested bottleneck); empty for none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        for name in ("first_side", "last_side"):
            side = getattr(self, name)
            check(side % 2 == 1, name, side, "must be odd; use 3")
        rule = "must be 0 in a block with inner blocks; pool in an inner block"
        check(not (self.inner and self.num_pooled), "num_pooled", self.num_pooled, rule)


@dataclass(frozen=True, kw_only=True)
class KatagoConfig(NetConfig):
    """The config of a KataGo network, for boards of any size that fill their planes."""

    kind: Literal["katago"] = "katago"
    """The kind of network."""
    num_channels: int = bounded(96, 1, _MAX_CHANNELS)
    """Number of channels of the trunk."""
    stem_side: int = bounded(3, 1, _MAX_SIDE)
    """Kernel size of the network's first convolution, odd."""
    blocks: tuple[KatagoBlock, ...] = (KatagoBlock(),)
    """Residual blocks of the trunk, at least one."""
    activation: Literal["relu", "mish", "silu"] = "relu"
    """Activation function after each norm."""
    policy_channels: int = bounded(32, 1, _MAX_CHANNELS)
    """Number of channels of the policy head."""
    pooled_policy_channels: int = bounded(32, 1, _MAX_CHANNELS)
    """Number of channels of the policy head that are pooled over the board."""
    pass_units: int = bounded(0, 0, _MAX_CHANNELS)
    """Number of hidden units for the logit of a pass; 0: the logit is a linear function
    of the pooled channels."""
    value_channels: int = bounded(32, 1, _MAX_CHANNELS)
    """Number of channels of the value head."""
    value_units: int = bounded(64, 1, _MAX_CHANNELS)
    """Number of hidden units of the value head."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check(self.stem_side % 2 == 1, "stem_side", self.stem_side, "must be odd")
        rule = "must have at least one; add one"
        check(len(self.blocks) > 0, "blocks", self.blocks, rule)

    @property
    def can_quantise(self) -> bool:
        """True, because the convolutions can be computed in 8-bit integers."""
        return True

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted`` plus the output ``score``; see ``ResNetConfig.signature``.

        Raises:
            UsageError: The task is not a game of Go with KataGo's planes.
        """
        board = check_board(self, wanted)
        check(
            board.num_planes == NUM_KATAGO_PLANES
            and board.policy_layout == "cells_and_pass",
            "net.kind",
            self.kind,
            f"needs the {NUM_KATAGO_PLANES} planes of go/N/planes=katago, not "
            f"{board.num_planes} with policy_layout {board.policy_layout}; change the "
            "task, or choose resnet",
        )
        outputs = {**wanted.outputs, "score": TensorSpec(shape=(2,))}
        return dataclasses.replace(wanted, outputs=outputs)
