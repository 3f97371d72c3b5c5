"""How strong a player is to be: how long it searches, or how freely it moves."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.bounds import bounded, check_fields
from tengen.config import check
from tengen.search.settings import MAX_SIMULATIONS

__all__ = ["Level", "draw_seed"]

_MASK = (1 << 64) - 1


def draw_seed(*numbers: int) -> int:
    """Returns one seed of several numbers, as of a match, a game and a ply."""
    seed = 0
    for number in numbers:
        # Spreads neighbours, as splitmix64 does.
        seed = (seed + number + 0x9E3779B97F4A7C15) & _MASK
        seed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        seed = ((seed ^ (seed >> 27)) * 0x94D049BB133111EB) & _MASK
        seed ^= seed >> 31
    return seed


@dataclass(frozen=True, kw_only=True)
class Level:
    """One strength of a model.

    A strong one searches and plays the best move found. A weak one draws its move from
    the network's policy, the more evenly the higher its temperature.
    """

    simulations: int = bounded(1, 1, MAX_SIMULATIONS)
    """Of each move."""
    temperature: float = bounded(0.0, 0.0, 100.0)
    """Of the policy that moves are drawn from; 0: the best move, without a draw."""

    def __post_init__(self) -> None:
        """Checks the fields.

        Raises:
            UsageError: One is out of its range, or a draw has a search before it.
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
            actions: The legal ones, in any order.
            priors: The network's probability of each, in [0, 1].
            best: What a search plays; the answer where the temperature is 0.
            seed: Of the draw; the same gives the same action.
        """
        if self.temperature == 0:
            return best
        rows = sorted(zip(actions, priors, strict=True))
        most = max(prior for _, prior in rows)
        if not most > 0:
            return best
        # Relative to the most likely: no power of it is 0.
        weights = [(prior / most) ** (1 / self.temperature) for _, prior in rows]
        (drawn,) = random.Random(seed).choices([a for a, _ in rows], weights)
        return drawn
