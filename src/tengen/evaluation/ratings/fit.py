"""Fits Elo ratings of many players to their match results.

Source: Bradley and Terry 1952, "Rank analysis of incomplete block designs". Differs
from the paper: ratings use the Elo scale, a draw counts as half a win, some ratings are
fixed, a weak prior keeps ratings finite after only wins or only losses, and another
prior links a player to its earlier version, as in Coulom 2008, "Whole-History Rating".
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tengen.errors import UsageError
from tengen.evaluation.elo import Z_95, Tally

PRIOR_DRAWS = 1.0
"""Number of virtual draws added as a prior to each pair of players with results."""

_ELO = 400.0 / math.log(10.0)  # Elo per natural unit of strength (log-odds).
_MAX_STEPS = 500
_TOLERANCE = 1e-10
# The maximum change of a strength per Newton step, in natural units (1 is 174 Elo).
# Beyond it, the quadratic approximation of the log-likelihood is poor.
_MAX_MOVE = 1.0


@dataclass(frozen=True)
class Pairing:
    """The results of all games between two players."""

    a: str
    """Name of player A."""
    b: str
    """Name of player B."""
    tally: Tally
    """Results of the games from A's view."""


@dataclass(frozen=True)
class Link:
    """A prior on ratings: two versions of a player have similar ratings."""

    a: str
    """Name of one version; its rating must not be fixed."""
    b: str
    """Name of the other version; its rating must not be fixed."""
    standard_deviation: float
    """Standard deviation of the rating difference under the prior, in Elo; above 0."""


@dataclass(frozen=True)
class Rating:
    """A player's Elo rating and its uncertainty."""

    elo: float
    """The rating, on the Elo scale that the fixed players define."""
    standard_error: float
    """Standard error of ``elo``, from the observed Fisher information; 0 if ``elo`` is
    fixed."""
    num_games: int
    """Number of games that the player has played."""

    @property
    def error(self) -> float:
        """The half-width of the rating's 95 % confidence interval, in Elo."""
        return Z_95 * self.standard_error


def fit_ratings(
    pairings: Iterable[Pairing],
    fixed: Mapping[str, float],
    links: Sequence[Link] = (),
) -> dict[str, Rating]:
    """Returns the maximum a posteriori ratings of all players, by player name.

    Newton's method maximizes the posterior probability of the ratings given the match
    results. The maximum is unique. Standard errors treat fixed ratings as exact.

    Args:
        pairings: Match results. Two players may occur in several pairings and in either
            order. Pairings without games are ignored.
        fixed: Known Elo ratings by player name, at least one.
        links: Priors that link versions of players in ``pairings``.

    Raises:
        UsageError: No rating is fixed, or a player is not connected through opponents
            to a player with a fixed rating.
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
    """Returns one tally per pair of players; ignores games of a player with itself."""
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
            f"pairings (of {lost[0]}) must connect it to a player of known rating; "
            f"play it against {min(fixed)}"
        )


class _Problem:
    """The log posterior of the free strengths, in natural units; smooth and concave."""

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
        """Returns the strengths that maximize the log posterior, ``[num_free]``."""
        free = np.full(self._num_free, float(self._fixed.mean()))
        value = self._log_posterior(free)
        for _ in range(_MAX_STEPS):
            gradient, information = self._derivatives(free)
            if np.abs(gradient).max(initial=0.0) < _TOLERANCE:
                break
            step = np.linalg.solve(information, gradient)
            scale = min(1.0, _MAX_MOVE / float(np.abs(step).max()))
            # A step may overshoot the maximum, so halve it until the log posterior does
            # not decrease. This ends, because the step points in an ascent direction.
            while scale > 1e-12:
                moved = free + scale * step
                moved_value = self._log_posterior(moved)
                if moved_value >= value:
                    break
                scale *= 0.5
            free, value = moved, moved_value
        return free

    def standard_errors(self, free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the strengths' standard errors in natural units, ``[num_free]``."""
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
        """Returns the gradient and the negative Hessian of the log posterior."""
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
        # This form of p (1 - p) never rounds to 0, which keeps the information matrix
        # positive definite.
        weight = self._games / (2.0 * np.cosh(0.5 * difference)) ** 2
        add(self._a, self._b, self._points - self._games * win, weight)
        moved = self._difference(free, self._later, self._earlier)
        add(self._later, self._earlier, -self._precision * moved, self._precision)
        n = self._num_free
        return gradient[:n], information[:n, :n]
