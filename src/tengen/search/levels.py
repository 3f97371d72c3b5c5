"""Levels of strength: how long a player searches, or how randomly it moves."""

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
