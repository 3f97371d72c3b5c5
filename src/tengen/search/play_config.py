"""Search settings of trained players, in matches and gates and against people."""

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

# Search fields that a player never uses, because it does not explore.
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
    """Search settings of a trained player; the caller sets the number of simulations.

    The defaults are the behaviour before runs had these settings, so that older runs
    and models play as before. Recipes choose stronger settings.
    """

    search: SearchConfig = field(default_factory=SearchConfig)
    """The settings of the search. A player does not explore, so root noise, root
    temperature and forced playouts must keep their defaults."""
    precision: PlayPrecision = "fp32"
    """Precision of the trunk on a CPU. ``run``: the precision of the run's self-play,
    which was chosen by a speed trial and a check of rounding errors. A model that loses
    too much strength in int8 plays in bf16, and fp32 replaces a precision that this CPU
    does not support natively."""
    keeps_tree: bool = False
    """Whether a PUCT search in matches, ratings and gates reuses the tree of the
    player's last search; its visits count as simulations. Against people, trees are
    reused unless ``--fresh`` is given. A minigo search always reuses its tree, and its
    visits do not count as simulations; this field must then be false."""

    batch_rows: int = bounded(0, 0, 64)
    """Maximum number of leaves in a batch of one search thread; fewer if the leaves of
    all threads would exceed 1/32 of the simulations. 0: 8 if several threads search one
    tree, otherwise 1. A larger batch takes less time per leaf, but the search continues
    without the values of leaves in flight. Games written in Python and parallel games
    of a match use 1. In matches, minigo uses ``search.minigo_virtual_losses``, and this
    field must be 0."""

    def in_precision(self, precision: str) -> PlayConfig:
        """Returns these settings with ``run`` replaced by the run's precision.

        Args:
            precision: The run's precision. ``auto``, if none has been chosen yet,
                becomes fp32.
        """
        if self.precision != "run":
            return self
        known = "fp32" if precision == "auto" else precision
        return dataclasses.replace(self, precision=cast(PlayPrecision, known))

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: A field has an invalid value, or a field only for self-play is
                set.
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


_MASK = (1 << 64) - 1


def draw_seed(*numbers: int) -> int:
    """Returns a seed that depends on several numbers, such as match, game and ply."""
    seed = 0
    for number in numbers:
        # Mixes the bits as splitmix64 does.
        seed = (seed + number + 0x9E3779B97F4A7C15) & _MASK
        seed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        seed = ((seed ^ (seed >> 27)) * 0x94D049BB133111EB) & _MASK
        seed ^= seed >> 31
    return seed


@dataclass(frozen=True, kw_only=True)
class Level:
    """A strength level of a model.

    A strong level searches and plays the best move found. A weak level samples its move
    from the network's policy; a higher temperature makes the policy more uniform.
    """

    simulations: int = bounded(1, 1, MAX_SIMULATIONS)
    """Simulations per move."""
    temperature: float = bounded(0.0, 0.0, 100.0)
    """Temperature of the policy that moves are sampled from; 0 plays the best move."""

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
            priors: The network's probability of each action, in [0, 1].
            best: The best action of a search, returned if the temperature is 0.
            seed: Random seed; the same seed gives the same action.
        """
        if self.temperature == 0:
            return best
        rows = sorted(zip(actions, priors, strict=True))
        most = max(prior for _, prior in rows)
        if not most > 0:
            return best
        # Relative to the largest prior, so that at least one weight does not underflow.
        weights = [(prior / most) ** (1 / self.temperature) for _, prior in rows]
        (drawn,) = random.Random(seed).choices([a for a, _ in rows], weights)
        return drawn
