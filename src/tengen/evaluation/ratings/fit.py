"""Ratings of many players from the results of their matches.

Source: Bradley and Terry 1952, "Rank analysis of incomplete block designs"; ratings
are on Elo's scale. Differs from the paper: draws count as half a win, some ratings are
fixed, a weak prior keeps perfect scores finite, and another one ties a player to its
earlier self, as in Coulom 2008, "Whole-History Rating".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.evaluation.elo import Z_95, Tally

__all__ = ["PRIOR_DRAWS", "Link", "Pairing", "Rating", "fit_ratings"]

PRIOR_DRAWS = 1.0
"""Virtual drawn games added to each pair of players that met: the prior. Its pull is
that of half a point, and vanishes as real games are played."""

_ELO = 400.0 / math.log(10.0)  # Elo in one natural unit of strength
_MAX_STEPS = 500
_TOLERANCE = 1e-10
# The furthest that one step moves a player, in natural units (174 Elo). Beyond it the
# quadratic that Newton's method climbs says little: far out the curve is a line.
_MAX_MOVE = 1.0


@dataclass(frozen=True)
class Pairing:
    """Results of two named players."""

    a: str
    """One player."""
    b: str
    """The other."""
    tally: Tally
    """Results as A sees them."""


@dataclass(frozen=True)
class Link:
    """Two players that are one at different times, hence of about the same strength."""

    a: str
    """One of them; neither is fixed."""
    b: str
    """The other."""
    standard_deviation: float
    """Elo, positive: of the normal prior, of mean 0, of their difference."""


@dataclass(frozen=True)
class Rating:
    """One player's strength."""

    elo: float
    """Elo on the scale of the fixed players."""
    standard_error: float
    """Of ``elo``, from the observed information; 0 where it was fixed."""
    num_games: int
    """Games it rests on."""

    @property
    def error(self) -> float:
        """Half the 95 % interval, in Elo."""
        return Z_95 * self.standard_error


def fit_ratings(
    pairings: Iterable[Pairing],
    fixed: Mapping[str, float],
    links: Sequence[Link] = (),
) -> dict[str, Rating]:
    """Returns the most likely ratings of all players of ``pairings`` and ``fixed``.

    Maximises the likelihood of the results with ``PRIOR_DRAWS`` virtual draws a pair,
    by Newton's method; the maximum is unique. Errors are those of the free players
    given the fixed ones: what is uncertain about a fixed rating is not in them.

    Args:
        pairings: Results; a pair may come many times and either way round. Pairings
            without games are passed over.
        fixed: Known ratings, Elo by name; at least one.
        links: What is known beside games; players that appear in pairings.

    Raises:
        UsageError: A player has no chain of opponents to a fixed one, or nothing is
            fixed.
    """
    if not fixed:
        raise UsageError("fixed (no rating) must name a player; fix random at 0")
    pairs = _merge(pairings)
    num_games = dict.fromkeys(fixed, 0)
    for (a, b), tally in pairs.items():
        num_games[a] = num_games.get(a, 0) + tally.num_games
        num_games[b] = num_games.get(b, 0) + tally.num_games
    _check_connected(pairs, fixed)
    names = [name for name in num_games if name not in fixed]
    problem = _Problem(pairs, names, fixed, links)
    strength = problem.solve()
    errors = problem.standard_errors(strength)
    ratings = {name: Rating(elo, 0.0, num_games[name]) for name, elo in fixed.items()}
    for index, name in enumerate(names):
        elo = float(strength[index]) * _ELO
        ratings[name] = Rating(elo, float(errors[index]) * _ELO, num_games[name])
    return ratings


def _merge(pairings: Iterable[Pairing]) -> dict[tuple[str, str], Tally]:
    """Returns one tally a pair of names in order; a player's own games say nothing."""
    pairs: dict[tuple[str, str], Tally] = {}
    for pairing in pairings:
        a, b, tally = pairing.a, pairing.b, pairing.tally
        if a == b or tally.num_games == 0:
            continue
        if a > b:
            a, b, tally = b, a, -tally
        pairs[a, b] = pairs.get((a, b), Tally()) + tally
    return pairs


def _check_connected(
    pairs: Iterable[tuple[str, str]], fixed: Mapping[str, float]
) -> None:
    opponents: dict[str, set[str]] = {}
    for a, b in pairs:
        opponents.setdefault(a, set()).add(b)
        opponents.setdefault(b, set()).add(a)
    reached, frontier = set(fixed), list(fixed)
    while frontier:
        new = opponents.get(frontier.pop(), set()) - reached
        reached |= new
        frontier += new
    lost = sorted(set(opponents) - reached)
    if lost:
        raise UsageError(
            f"pairings (of {lost[0]}) must lead to a player of known rating; "
            f"play it against {min(fixed)}"
        )


class _Problem:
    """The posterior over strengths in natural units: concave, twice differentiable."""

    def __init__(
        self,
        pairs: Mapping[tuple[str, str], Tally],
        names: list[str],
        fixed: Mapping[str, float],
        links: Sequence[Link],
    ) -> None:
        order = {name: index for index, name in enumerate([*names, *fixed])}
        self._num_free = len(names)
        self._fixed = np.array(list(fixed.values()), np.float64) / _ELO
        self._a = np.array([order[a] for a, _ in pairs], np.intp)
        self._b = np.array([order[b] for _, b in pairs], np.intp)
        tallies = pairs.values()
        self._games = np.array([t.num_games + PRIOR_DRAWS for t in tallies])
        self._points = np.array([t.points + 0.5 * PRIOR_DRAWS for t in tallies])
        self._later = np.array([order[link.a] for link in links], np.intp)
        self._earlier = np.array([order[link.b] for link in links], np.intp)
        deviations = np.array([link.standard_deviation for link in links], np.float64)
        self._precision = (deviations / _ELO) ** -2.0

    def solve(self) -> NDArray[np.float64]:
        """Returns the maximum, ``[num_free]``."""
        free = np.full(self._num_free, float(self._fixed.mean()))
        value = self._log_posterior(free)
        for _ in range(_MAX_STEPS):
            gradient, information = self._derivatives(free)
            if np.abs(gradient).max(initial=0.0) < _TOLERANCE:
                break
            step = np.linalg.solve(information, gradient)
            scale = min(1.0, _MAX_MOVE / float(np.abs(step).max()))
            # A step may still overshoot; along it the value rises at first, so
            # halving ends.
            while scale > 1e-12:
                moved = free + scale * step
                moved_value = self._log_posterior(moved)
                if moved_value >= value:
                    break
                scale *= 0.5
            free, value = moved, moved_value
        return free

    def standard_errors(self, free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns ``[num_free]`` errors in natural units."""
        _, information = self._derivatives(free)
        errors: NDArray[np.float64] = np.sqrt(np.diag(np.linalg.inv(information)))
        return errors

    def _difference(
        self, free: NDArray[np.float64], a: NDArray[np.intp], b: NDArray[np.intp]
    ) -> NDArray[np.float64]:
        strength = np.concatenate([free, self._fixed])
        difference: NDArray[np.float64] = strength[a] - strength[b]
        return difference

    def _log_posterior(self, free: NDArray[np.float64]) -> float:
        difference = self._difference(free, self._a, self._b)
        log_win = -np.logaddexp(0.0, -difference)
        log_loss = -np.logaddexp(0.0, difference)
        lost = self._games - self._points
        moved = self._difference(free, self._later, self._earlier)
        prior = 0.5 * self._precision @ moved**2
        return float(self._points @ log_win + lost @ log_loss - prior)

    def _derivatives(
        self, free: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Returns the gradient and the negative second derivative."""
        size = self._num_free + len(self._fixed)
        gradient = np.zeros(size)
        information = np.zeros((size, size))

        def add(
            a: NDArray[np.intp],
            b: NDArray[np.intp],
            slope: NDArray[np.float64],
            weight: NDArray[np.float64],
        ) -> None:
            np.add.at(gradient, a, slope)
            np.add.at(gradient, b, -slope)
            np.add.at(information, (a, a), weight)
            np.add.at(information, (b, b), weight)
            np.add.at(information, (a, b), -weight)
            np.add.at(information, (b, a), -weight)

        difference = self._difference(free, self._a, self._b)
        win = 0.5 + 0.5 * np.tanh(0.5 * difference)
        # p (1 - p), written so that it never rounds to 0: the information stays
        # positive definite at any distance.
        weight = self._games / (2.0 * np.cosh(0.5 * difference)) ** 2
        add(self._a, self._b, self._points - self._games * win, weight)
        moved = self._difference(free, self._later, self._earlier)
        add(self._later, self._earlier, -self._precision * moved, self._precision)
        n = self._num_free
        return gradient[:n], information[:n, :n]
