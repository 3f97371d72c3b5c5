"""How a trained player searches: in matches, ratings and gates, and against people."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import Literal, cast

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.search.settings import SearchConfig

__all__ = ["PlayConfig", "PlayPrecision"]

PlayPrecision = Literal["run", "fp32", "bf16", "int8"]

# Fields of a search that a player never reads, for it does not explore.
_EXPLORING = (
    "noise_alpha_total",
    "noise_weight",
    "noise_shaped",
    "root_temperature",
    "forced_playouts",
    "minigo_noise_alpha",
)


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """What a trained player does; how long it thinks belongs to the caller.

    The defaults are how every player searched before runs had these settings, so that
    runs and models of then play as they did; recipes choose stronger ones.
    """

    search: SearchConfig = field(default_factory=SearchConfig)
    """How it searches. It does not explore, so that noise, the root's temperature and
    forced playouts stay as they are."""
    precision: PlayPrecision = "fp32"
    """Arithmetic of the trunk on a CPU. ``run``: what the run's self-play computes in,
    which a trial and a check of the rounding chose. int8 is bf16 for a model that
    loses too much by it, and what this CPU does not compute natively is fp32."""
    keeps_tree: bool = False
    """Whether in matches, ratings and gates a search by PUCT goes on from what the
    moves since have left of the one before, whose visits count towards its simulations.
    Against people trees are kept, but for ``--fresh``. A search by minigo always goes
    on so, and has all its simulations beside those visits: this stays false."""

    batch_rows: int = bounded(0, 0, 64)
    """Most leaves that each thread of one search gathers for the network, fewer where
    they were more than 1/32 of the simulations; 0: 8 where several threads search one
    tree, 1 where one does. A batch costs less a leaf; a leaf on its way is not known
    yet. Games in Python, and those that a match plays side by side, have 1; in matches
    a search by minigo gathers ``search.minigo_virtual_losses``, and this stays 0."""

    def in_precision(self, precision: str) -> PlayConfig:
        """Returns these settings where ``run`` is said by the precision itself.

        Args:
            precision: What the run computes in; ``auto`` where none is chosen yet,
                which is fp32 here.
        """
        if self.precision != "run":
            return self
        known = "fp32" if precision == "auto" else precision
        return dataclasses.replace(self, precision=cast(PlayPrecision, known))

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field is unknown, or one that only exploring reads is set.
        """
        check_fields(self)
        usual = SearchConfig()
        for name in _EXPLORING:
            value = getattr(self.search, name)
            rule = "is for self-play, a player does not explore; leave it out"
            check(value == getattr(usual, name), f"search.{name}", value, rule)
        if self.search.policy == "minigo":
            rule = "must stay false where search.policy is minigo, which keeps trees"
            advice = "leave it out"
            check(
                not self.keeps_tree, "keeps_tree", self.keeps_tree, f"{rule}; {advice}"
            )
            rule = "must stay 0 where search.policy is minigo, whose leaves are its own"
            check(
                self.batch_rows == 0, "batch_rows", self.batch_rows, f"{rule}; {advice}"
            )
