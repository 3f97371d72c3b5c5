"""How a trained player searches: in matches, ratings and gates, and against people."""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, cast

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.search.settings import MAX_SIMULATIONS, SearchConfig

__all__ = ["Level", "PlayConfig", "PlayPrecision", "draw_seed"]

PlayPrecision = Literal["run", "fp32", "bf16", "int8"]


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """How a trained player searches; the caller says how long it thinks.

    The defaults are what every player did before runs had these settings, so that runs
    and models of that time still play the same. Recipes choose stronger settings.
    """

    search: SearchConfig = field(default_factory=SearchConfig)
    """How the player searches. A player does not explore, so the settings of root
    noise, the root's temperature and forced playouts must keep their defaults."""
    precision: PlayPrecision = "fp32"
    """Arithmetic of the trunk on a CPU. ``run``: the precision of the run's self-play,
    which a trial and a check of the rounding chose. A model that loses too much by int8
    plays in bf16, and a precision that this CPU does not compute natively becomes
    fp32."""
    keeps_tree: bool = False
    """Whether a search by PUCT in matches, ratings and gates starts from the subtree
    that the player's last search left, whose visits count towards the simulations.
    Against people trees are kept unless ``--fresh`` is given. A search by minigo always
    keeps its tree, and makes all its simulations besides the kept visits: with it this
    field stays false."""

    batch_rows: int = bounded(0, 0, 64)
    """Most leaves that each thread of one search gathers for the network; fewer if the
    leaves of all threads would be more than 1/32 of the simulations. 0: 8 where several
    threads search one tree, 1 where one thread does. A larger batch costs less time a
    leaf, but the search goes on without the values of leaves in flight. Games in
    Python, and games that a match plays side by side, gather 1. In matches a search by
    minigo gathers ``search.minigo_virtual_losses``, and this field stays 0."""

    def in_precision(self, precision: str) -> PlayConfig:
        """Returns these settings with ``run`` replaced by the run's precision.

        Args:
            precision: The run's precision; ``auto`` where none is chosen yet, which
                becomes fp32.
        """
        if self.precision != "run":
            return self
        known = "fp32" if precision == "auto" else precision
        return dataclasses.replace(self, precision=cast(PlayPrecision, known))

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field has an unknown value, or one that only self-play reads
                is set.
        """
        check_fields(self)
        for name, value in self.search.exploring().items():
            rule = "is for self-play, a player does not explore; leave it out"
            check(False, f"search.{name}", value, rule)
        if not self.search.has_own_worker:
            return
        where = f"where search.policy is {self.search.policy}"
        for name, rule in (
            ("keeps_tree", f"must stay false {where}, which keeps trees"),
            ("batch_rows", f"must stay 0 {where}, whose leaves are its own"),
        ):
            value = getattr(self, name)
            check(not value, name, value, f"{rule}; leave it out")


_MASK = (1 << 64) - 1


def draw_seed(*numbers: int) -> int:
    """Returns one seed made from several numbers, such as match, game and ply."""
    seed = 0
    for number in numbers:
        # Spreads neighbouring numbers, as splitmix64 does.
        seed = (seed + number + 0x9E3779B97F4A7C15) & _MASK
        seed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        seed = ((seed ^ (seed >> 27)) * 0x94D049BB133111EB) & _MASK
        seed ^= seed >> 31
    return seed


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of strength of a model.

    A strong level searches and plays the best move found. A weak level draws its move
    from the network's policy, the more evenly the higher its temperature.
    """

    simulations: int = bounded(1, 1, MAX_SIMULATIONS)
    """Simulations of each move."""
    temperature: float = bounded(0.0, 0.0, 100.0)
    """Temperature of the policy that moves are drawn from; 0: the best move, without a
    draw."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field is out of its range, or both a search and a temperature
                are set.
        """
        check_fields(self)
        is_plain = self.temperature == 0 or self.simulations == 1
        rule = "must be 1 where moves are drawn by a temperature; leave one out"
        check(is_plain, "simulations", self.simulations, rule)

    def draw(
        self, actions: Sequence[int], priors: Sequence[float], best: int, seed: int
    ) -> int:
        """Returns the action to play.

        Args:
            actions: The legal actions, in any order.
            priors: The network's probability of each, in [0, 1].
            best: The action that a search plays, which is returned if the temperature
                is 0.
            seed: Seed of the draw; the same seed gives the same action.
        """
        if self.temperature == 0:
            return best
        rows = sorted(zip(actions, priors, strict=True))
        most = max(prior for _, prior in rows)
        if not most > 0:
            return best
        # Relative to the most likely action, whose power is never 0.
        weights = [(prior / most) ** (1 / self.temperature) for _, prior in rows]
        (drawn,) = random.Random(seed).choices([a for a, _ in rows], weights)
        return drawn
