"""Elo: what a difference of ratings predicts, and what a score says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

__all__ = ["ELO_LIMIT", "Z_95", "Tally", "elo_of_score", "expected_score"]

Z_95 = 1.959963984540054
"""Half the width of a 95 % interval, in standard errors."""

ELO_LIMIT = 4000.0
"""No difference is reported as larger; it stands for an open end."""


def expected_score(difference: float) -> float:
    """Returns the score in (0, 1) of a player rated ``difference`` Elo higher.

    Source: Elo 1978, the logistic curve: 400 points are odds of ten to one.
    """
    return 0.5 + 0.5 * math.tanh(difference * math.log(10.0) / 800.0)


def elo_of_score(score: float) -> float:
    """Returns the difference of ratings at which ``score`` is expected.

    Args:
        score: In [0, 1].

    Returns:
        Elo, in [-ELO_LIMIT, ELO_LIMIT]; a score of 0 or 1 gives the ends.
    """
    if score <= 0.0:
        return -ELO_LIMIT
    if score >= 1.0:
        return ELO_LIMIT
    difference = 400.0 * math.log10(score / (1.0 - score))
    return min(max(difference, -ELO_LIMIT), ELO_LIMIT)


@dataclass(frozen=True)
class Tally:
    """Results of games between two players, as the first of them sees it."""

    wins: int = 0
    """Games won."""
    draws: int = 0
    """Games drawn; half a point each."""
    losses: int = 0
    """Games lost."""

    def __add__(self, other: Tally) -> Tally:
        """Returns both together."""
        return Tally(
            self.wins + other.wins, self.draws + other.draws, self.losses + other.losses
        )

    def __neg__(self) -> Tally:
        """Returns the same games as the other player sees them."""
        return Tally(self.losses, self.draws, self.wins)

    @property
    def num_games(self) -> int:
        """Games played."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Wins and half the draws."""
        return self.wins + 0.5 * self.draws

    @property
    def score(self) -> float:
        """Points a game in [0, 1]; a half where no game was played."""
        return self.points / self.num_games if self.num_games else 0.5

    @property
    def score_interval(self) -> tuple[float, float]:
        """The 95 % interval of the score, inside [0, 1].

        Source: Wilson 1927, the score interval, which stays sensible at 0 and 1 and
        with few games. Draws count as half a win; that they spread less than wins
        and losses is not used, so that the interval is never too narrow.
        """
        n = self.num_games
        if n == 0:
            return 0.0, 1.0
        shrink = 1.0 + Z_95**2 / n
        centre = (self.score + Z_95**2 / (2.0 * n)) / shrink
        spread = self.score * (1.0 - self.score) / n + Z_95**2 / (4.0 * n * n)
        half = Z_95 * math.sqrt(spread) / shrink
        # Exact ends where every point went to one side; rounding would miss them.
        low = 0.0 if self.points == 0.0 else centre - half
        high = 1.0 if self.points == n else centre + half
        return low, high

    @property
    def elo(self) -> float:
        """Elo above the other player, finite.

        A score of 0 or 1 says only that the difference is large; it is read as half
        a point away from that, so that more games without a loss give more.
        """
        n = self.num_games
        if n == 0:
            return 0.0
        return elo_of_score(min(max(self.points, 0.5), n - 0.5) / n)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """The 95 % interval of ``elo``, ``score_interval`` on the scale of Elo.

        An open end is ``ELO_LIMIT``.
        """
        low, high = self.score_interval
        return min(elo_of_score(low), self.elo), max(elo_of_score(high), self.elo)

    @property
    def elo_text(self) -> str:
        """``elo`` and its interval for people, ``+35, 95 % from -4 to no bound``."""
        low, high = (
            "no bound" if abs(end) >= ELO_LIMIT else f"{end:+.0f}"
            for end in self.elo_interval
        )
        return f"{self.elo:+.0f}, 95 % from {low} to {high}"
