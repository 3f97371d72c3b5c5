"""The config of the network of line patterns, for games about rows of stones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.errors import UsageError
from tengen.nets.config import NetConfig, check_board
from tengen.tensors import BoardSpec, Signature

NUM_CONTEXT = 64
"""Number of units of the layer that sees the whole board."""
NUM_VALUE_UNITS = 32
"""Number of units of the value's hidden layer."""
FIRST_OTHER_PLANE = 3
"""Index of the first plane of which the network sees only the mean. Planes 0 to 2 are
the board, own stones and the opponent's stones."""

# The core adds and multiplies blocks of this many features.
_LANES = 16
_MAX_UNITS = 512
# Maximum size of the table in the core, in numbers (256 MiB).
_MAX_TABLE = 1 << 26
_MAX_SIDE = 19  # as in core/lines/lines_net.h


@dataclass(frozen=True, kw_only=True)
class LinesConfig(NetConfig):
    """The config of a network of line patterns, which the core evaluates by lookup.

    For games whose planes 1 and 2 are own and the opponent's stones and whose actions
    are cells, such as gomoku. See ``tengen.nets.modules.lines``.
    """

    kind: Literal["lines"] = "lines"
    """The kind of network."""
    reach: int = bounded(4, 1, 5, "4 sees all rows of five through a cell")
    """Number of cells on each side of a cell that its four lines contain, 1 to 5. The
    core tabulates 22,143 patterns with 4, 199,290 with 5."""
    num_hidden: int = 64
    """Number of units of both hidden layers of the function of a line; a multiple of
    16. It costs time in training and when a model is loaded, not in evaluation."""
    num_channels: int = 64
    """Number of features of a cell, a multiple of 16."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        for name in ("num_hidden", "num_channels"):
            value = getattr(self, name)
            check(
                _LANES <= value <= _MAX_UNITS and value % _LANES == 0,
                name,
                value,
                f"must be a multiple of {_LANES} up to {_MAX_UNITS}; round it",
            )
        most = _MAX_TABLE // self.num_patterns
        check(
            self.num_channels <= most,
            "num_channels",
            self.num_channels,
            f"must be at most {most} with reach {self.reach}; lower it",
        )

    @property
    def num_patterns(self) -> int:
        """Number of patterns of a line, of which the reverse is the same pattern."""
        # A cell has 0 to reach cells on each side, each in one of three states.
        sides: int = sum(3**cells for cells in range(self.reach + 1))
        return 3 * sides * (sides + 1) // 2

    def layers(self, num_planes: int) -> dict[str, tuple[int, int]]:
        """Returns the numbers of outputs and inputs of the dense layers, by name.

        Args:
            num_planes: Number of planes of the board.
        """
        hidden, features = self.num_hidden, self.num_channels
        num_others = num_planes - FIRST_OTHER_PLANE
        return {
            "line.0": (hidden, 3 * (2 * self.reach + 1)),
            "line.2": (hidden, hidden),
            "line.4": (features, hidden),
            "context": (NUM_CONTEXT, 2 * features + num_others),
            "policy": (features, NUM_CONTEXT),
            "value.0": (NUM_VALUE_UNITS, NUM_CONTEXT),
            "value.2": (3, NUM_VALUE_UNITS),
        }

    @property
    def is_native(self) -> bool:
        """True, because the core evaluates this network."""
        return True

    def evaluator(self, board: BoardSpec, weights: Mapping[str, Any]) -> Any:
        """Returns the table of the network; see ``NetConfig.evaluator``."""
        layers = self.layers(board.num_planes)
        shapes: dict[str, tuple[int, ...]] = {}
        for layer, shape in layers.items():
            shapes |= {f"{layer}.weight": shape, f"{layer}.bias": shape[:1]}
        found = {name: array.shape for name, array in weights.items()}
        is_float = all(array.dtype == np.float32 for array in weights.values())
        if found != shapes or not is_float:
            raise UsageError(
                "weights are not those of the network's kind and size; export the "
                "model again"
            )
        return _core.LinesNet(
            self.reach,
            [
                (
                    np.ascontiguousarray(weights[f"{layer}.weight"]),
                    np.ascontiguousarray(weights[f"{layer}.bias"]),
                )
                for layer in layers
            ],
        )

    def grown(self, size: NetConfig) -> LinesConfig:
        """Returns a copy of this config with the units and channels of ``size``.

        Raises:
            UsageError: ``size`` is of a different kind.
        """
        size = self._of_my_kind(size)
        return dataclasses.replace(
            self, num_hidden=size.num_hidden, num_channels=size.num_channels
        )

    def check_grows(self, new: NetConfig) -> None:
        """Checks that this network can grow into ``new``; see ``LinesNet.grown``.

        Raises:
            UsageError: ``new`` has fewer units or channels, or another reach.
        """
        new = self._of_my_kind(new)
        self._check_not_shrunk(new, "num_hidden", "num_channels")
        self._check_kept(new, "reach")

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted``; see ``NetConfig.signature``.

        Raises:
            UsageError: The actions of the task are not the cells of its board, or the
                board is larger than 19x19.
        """
        board = check_board(self, wanted)
        check(
            max(board.height, board.width) <= _MAX_SIDE,
            "net.kind",
            self.kind,
            f"needs a board of at most {_MAX_SIDE}x{_MAX_SIDE}, not {board.height}x"
            f"{board.width}; choose resnet",
        )
        check(
            board.policy_layout == "cells" and board.num_planes >= FIRST_OTHER_PLANE,
            "net.kind",
            self.kind,
            "needs a game whose actions are cells and whose planes 1 and 2 are stones, "
            "such as gomoku; choose resnet",
        )
        return wanted
