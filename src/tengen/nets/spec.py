"""What a network reads and answers, and how large it is; no torch here.

Legend: B batch, C planes, H W board, A actions.

Plane 0 of every observation is the on-board mask (1 on the board, 0 beyond it), so
that one network serves boards of several sizes inside one plane size.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tengen import _core
from tengen.config import check, check_literals, check_range
from tengen.errors import UsageError
from tengen.games.protocol import Game

__all__ = [
    "NUM_HORIZONS",
    "FeatureSpec",
    "MlpConfig",
    "NetConfig",
    "PolicyLayout",
    "ResNetConfig",
    "check_grows",
    "game_features",
    "parse_net",
]

# A run that would need more is a typing error.
_MAX_BLOCKS = 256
_MAX_WEIGHTS = 250_000_000
_MAX_CHANNELS = 2048
_MAX_LAYERS = 64
_MAX_UNITS = 16_384
_MAX_SCORE = 10_000

NUM_HORIZONS: int = _core.NUM_HORIZONS
"""Later values that a network with auxiliary heads is asked for."""

PolicyLayout: TypeAlias = Literal["cells", "cells_and_pass", "columns", "flat"]


@dataclass(frozen=True, kw_only=True)
class FeatureSpec:
    """Shapes of one observation and of the policy that answers it.

    A game network reads ``[B, num_planes, height, width]`` float32; a vector
    network reads ``[B, num_planes]`` and its height and width are 1.
    """

    num_planes: int
    """Planes C of an observation, or the length of a vector observation."""
    height: int = 1
    """Rows H of a plane."""
    width: int = 1
    """Columns W of a plane."""
    num_actions: int
    """Policy logits A."""
    policy_layout: PolicyLayout = "flat"
    """How actions lie on the board: one a cell (row * width + column), cells and a
    last one for pass, one a column, or no relation (flat)."""
    max_score: int = 0
    """Points that a game is hardly ever won by more than; 0 for games without a score
    and owners of cells."""

    def __post_init__(self) -> None:
        """Checks the fields against each other.

        Raises:
            UsageError: A count is not positive, or the layout does not give A.
        """
        check_literals(self)
        check_range("max_score", self.max_score, 0, _MAX_SCORE)
        for name in ("num_planes", "height", "width", "num_actions"):
            value = getattr(self, name)
            check(value >= 1, name, value, "must be at least 1; correct the game")
        cells = self.height * self.width
        expected = {
            "cells": cells,
            "cells_and_pass": cells + 1,
            "columns": self.width,
        }.get(self.policy_layout, self.num_actions)
        check(
            self.num_actions == expected,
            "num_actions",
            self.num_actions,
            f"must be {expected} for policy_layout {self.policy_layout}; "
            "change one of them",
        )


@dataclass(frozen=True, kw_only=True)
class ResNetConfig:
    """A pre-activation residual network with global pooling."""

    kind: Literal["resnet"] = "resnet"
    """Tells this config from the other networks'."""
    num_blocks: int = 4
    """Residual blocks of two 3x3 convolutions each, at least 2."""
    num_channels: int = 64
    """Channels of the trunk, a multiple of 4, at least 8."""
    pool_every: int = 3
    """One block in so many sees the whole board by global pooling, at least 2."""
    head_channels: int = 32
    """Channels of the policy head and of the value head, at least 1."""
    auxiliary: bool = False
    """Whether training also asks for the opponent's reply, the value some plies on and,
    where the game has them, the score and who owns which cell at the end."""
    lead: bool = False
    """Whether training asks for the lead too, which self-play estimates where
    ``actor.lead_share`` is above 0; with ``auxiliary``, in games with komi."""
    mixed_sizes: bool = False
    """Whether one batch may hold boards of several sizes. When False every board
    fills its planes and the masking, which would change nothing, is left out."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        check(
            self.auxiliary or not self.lead,
            "lead",
            self.lead,
            "needs auxiliary heads; set auxiliary too",
        )
        check_range(
            "num_blocks", self.num_blocks, 2, _MAX_BLOCKS, "one of them has to pool"
        )
        check(
            8 <= self.num_channels <= _MAX_CHANNELS and self.num_channels % 4 == 0,
            "num_channels",
            self.num_channels,
            f"must be a multiple of 4 from 8 to {_MAX_CHANNELS}; round it",
        )
        check(
            self.pool_every >= 2,
            "pool_every",
            self.pool_every,
            "must be at least 2; use 3",
        )
        check_range("head_channels", self.head_channels, 1, _MAX_CHANNELS, "use 32")
        num_weights = 18 * self.num_blocks * self.num_channels**2
        check(
            num_weights <= _MAX_WEIGHTS,
            "net",
            f"{self.num_blocks}x{self.num_channels}",
            f"must have at most {_MAX_WEIGHTS / 1e6:.0f} million weights, not "
            f"{num_weights / 1e6:.0f}; training takes some 20 bytes a weight",
        )

    @property
    def num_pool_channels(self) -> int:
        """Channels of a pooling block that are pooled over the board."""
        return self.num_channels // 4

    def estimates_score(self, features: FeatureSpec) -> bool:
        """Whether the network of a game estimates its final score."""
        return self.auxiliary and features.max_score > 0

    def pools(self, block: int) -> bool:
        """Whether block ``block`` (from 0) has global pooling.

        The rule looks at the index alone, so a deeper network keeps the pooling
        blocks of a shallower one (see ``tengen.nets.grow``).
        """
        return block % self.pool_every == 1


@dataclass(frozen=True, kw_only=True)
class MlpConfig:
    """A multi-layer perceptron for vector observations."""

    kind: Literal["mlp"] = "mlp"
    """Tells this config from the other networks'."""
    num_layers: int = 2
    """Hidden layers of the policy and of the baseline, at least 1."""
    num_units: int = 64
    """Units of a hidden layer, at least 1."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        check_range("num_layers", self.num_layers, 1, _MAX_LAYERS)
        check_range("num_units", self.num_units, 1, _MAX_UNITS)


NetConfig: TypeAlias = ResNetConfig | MlpConfig


def check_grows(old: ResNetConfig, new: ResNetConfig) -> None:
    """Makes sure that a network can grow from another, see ``grow_net``.

    Args:
        old: What it grows from.
        new: At least as deep, as wide and with heads as wide, and equal otherwise; it
            may have auxiliary heads and one for the lead where that has none.

    Raises:
        UsageError: ``new`` is smaller or differs in another field.
    """
    for name in ("num_blocks", "num_channels", "head_channels"):
        before, after = getattr(old, name), getattr(new, name)
        check(after >= before, name, after, f"must not shrink from {before}; raise it")
    for name in ("pool_every", "mixed_sizes"):
        before, after = getattr(old, name), getattr(new, name)
        check(after == before, name, after, f"must stay {before}; keep it")
    for name in ("auxiliary", "lead"):
        before, after = getattr(old, name), getattr(new, name)
        check(after or not before, name, after, "must stay True; keep it")


def game_features(game: Game) -> FeatureSpec:
    """Returns the shapes of a game's positions and actions."""
    return FeatureSpec(
        num_planes=game.num_planes,
        height=game.height,
        width=game.width,
        num_actions=game.num_actions,
        policy_layout=game.policy_layout,
        max_score=game.max_score,
    )


def parse_net(text: str) -> ResNetConfig:
    """Returns the residual network that ``"6x96"`` names: 6 blocks, 96 channels.

    Raises:
        UsageError: ``text`` is not BLOCKSxCHANNELS or a number is out of range.
    """
    match = re.fullmatch("([0-9]{1,9})x([0-9]{1,9})", text)
    if match is None:
        raise UsageError(f"net ({text}) must be BLOCKSxCHANNELS; for example 6x96")
    return ResNetConfig(num_blocks=int(match[1]), num_channels=int(match[2]))
