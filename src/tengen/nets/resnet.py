"""The config of the residual network for boards, and the rules for growing it."""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import Literal

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.errors import UsageError
from tengen.nets.config import NetConfig, check_board
from tengen.tensors import BoardSpec, Signature, TensorSpec

# Upper bounds of settings; larger numbers are probably typing errors.
_MAX_BLOCKS = 256
_MAX_WEIGHTS = 250_000_000
_MAX_CHANNELS = 2048


@dataclass(frozen=True, kw_only=True)
class ResNetConfig(NetConfig):
    """The config of a pre-activation residual network with global pooling."""

    kind: Literal["resnet"] = "resnet"
    """The kind of network."""
    num_blocks: int = bounded(4, 2, _MAX_BLOCKS, "at least one must pool")
    """Number of residual blocks of two 3x3 convolutions, at least 2. A network with
    more blocks is stronger and slower."""
    num_channels: int = 64
    """Number of channels of the trunk, a multiple of 4, at least 8. A network with more
    channels is stronger and slower."""
    pool_every: int = bounded(3, 2, hint="use 3")
    """One in every ``pool_every`` blocks has global pooling, so that its output depends
    on the complete board; at least 2."""
    head_channels: int = bounded(32, 1, _MAX_CHANNELS, "use 32")
    """Number of channels in each of the policy and value heads, at least 1."""
    auxiliary: bool = False
    """Whether the network has auxiliary heads for training. They predict the opponent's
    reply, the values some plies ahead and, in games with a score, the final score and
    the final owner of each cell."""
    lead: bool = False
    """Whether an auxiliary head also predicts the lead, for games with komi. Needs
    ``auxiliary``. The head learns only from leads that self-play estimates, if
    ``agent.actor.lead_share`` is above 0."""
    mixed_sizes: bool = False
    """Whether a batch may contain boards of several sizes. If not, every board must
    fill its planes."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check(
            self.auxiliary or not self.lead,
            "lead",
            self.lead,
            "needs auxiliary heads; set auxiliary=true",
        )
        check(
            8 <= self.num_channels <= _MAX_CHANNELS and self.num_channels % 4 == 0,
            "num_channels",
            self.num_channels,
            f"must be a multiple of 4 from 8 to {_MAX_CHANNELS}; round it",
        )
        num_weights = 18 * self.num_blocks * self.num_channels**2
        check(
            num_weights <= _MAX_WEIGHTS,
            "net",
            f"{self.num_blocks}x{self.num_channels}",
            f"must have at most {_MAX_WEIGHTS / 1e6:.0f} million weights, not "
            f"{num_weights / 1e6:.0f}, at 20 bytes per weight in training; lower it",
        )

    @property
    def can_quantise(self) -> bool:
        """True, because the convolutions can be computed in 8-bit integers."""
        return True

    @property
    def num_pool_channels(self) -> int:
        """Number of channels that a pooling block pools over the board."""
        return self.num_channels // 4

    def pools(self, block: int) -> bool:
        """Returns whether the block with index ``block`` has global pooling.

        The result depends only on the index, so that a network that grows deeper keeps
        its pooling blocks (see ``tengen.nets.modules.resnet``).
        """
        return block % self.pool_every == 1

    def signature(self, wanted: Signature) -> Signature:
        """Returns ``wanted``, plus the output ``score`` if the network learns scores.

        ``score`` ``[2]`` holds the mean and the standard deviation of the final score
        in points, for the side to move.
        """
        if "score" not in self.targets(check_board(self, wanted)):
            return wanted
        outputs = {**wanted.outputs, "score": TensorSpec(shape=(2,))}
        return dataclasses.replace(wanted, outputs=outputs)

    def targets(self, board: BoardSpec) -> frozenset[str]:
        """Returns the auxiliary targets; see ``NetConfig.targets``."""
        if not self.auxiliary:
            return frozenset()
        found = {"reply", "horizons"}
        if board.max_score > 0:
            found |= {"ownership", "score"} | ({"lead"} if self.lead else set())
        return frozenset(found)

    def grown(self, size: NetConfig) -> ResNetConfig:
        """Returns a copy of this config with the blocks and channels of ``size``.

        Raises:
            UsageError: ``size`` is of a different kind.
        """
        size = self._of_my_kind(size)
        return dataclasses.replace(
            self, num_blocks=size.num_blocks, num_channels=size.num_channels
        )

    def check_grows(self, new: NetConfig) -> None:
        """Checks that this network can grow into ``new``; see ``ResNet.grown``.

        Args:
            new: A config at least as deep and as wide as this one, including its heads,
                and equal otherwise. It may add auxiliary heads or a head for the lead.

        Raises:
            UsageError: ``new`` is smaller or differs in another field.
        """
        new = self._of_my_kind(new)
        self._check_not_shrunk(new, "num_blocks", "num_channels", "head_channels")
        self._check_kept(new, "pool_every", "mixed_sizes")
        for name in ("auxiliary", "lead"):
            before, after = getattr(self, name), getattr(new, name)
            check(after or not before, name, after, "must stay True; keep it")


def parse_net(text: str) -> ResNetConfig:
    """Returns the config for a string such as ``"6x96"``: 6 blocks, 96 channels.

    Raises:
        UsageError: ``text`` is not BLOCKSxCHANNELS or a number is out of range.
    """
    num_blocks, num_channels = parse_size(text)
    return ResNetConfig(num_blocks=num_blocks, num_channels=num_channels)


def parse_size(text: str) -> tuple[int, int]:
    """Returns the numbers of blocks and channels in a string such as ``"6x96"``.

    Raises:
        UsageError: ``text`` is not BLOCKSxCHANNELS.
    """
    match = re.fullmatch("([0-9]{1,9})x([0-9]{1,9})", text)
    if match is None:
        raise UsageError(f"net ({text}) must be BLOCKSxCHANNELS; for example 6x96")
    return int(match[1]), int(match[2])
