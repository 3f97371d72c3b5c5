"""Simulated match results between players with a known rating difference."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tengen.evaluation import (
    MatchGate,
    SprtGate,
    expected_score,
    log_likelihood_ratio,
)


def draw_points(
    rng: np.random.Generator,
    *,
    elo: float,
    draw_share: float,
    opening_share: float,
    num_matches: int,
    num_pairs: int,
) -> NDArray[np.int64]:
    """Samples twice A's score in every game, ``[matches, pairs, 2]`` of 0 to 2.

    Args:
        rng: The random number generator.
        elo: A's rating minus B's; the mean score is the expected score.
        draw_share: Share of draws among the games of even openings.
        opening_share: Share of openings that the first player always wins, so
            that each side wins one game of the pair.
        num_matches: Number of matches.
        num_pairs: Number of pairs per match.
    """
    mean = (expected_score(elo) - 0.5 * opening_share) / (1.0 - opening_share)
    win_share = mean - 0.5 * draw_share
    assert 0.0 <= win_share <= 1.0 - draw_share
    drawn = rng.random((num_matches, num_pairs, 2))
    points = np.where(
        drawn < win_share, 2, np.where(drawn < win_share + draw_share, 1, 0)
    )
    is_decided = rng.random((num_matches, num_pairs, 1)) < opening_share
    return np.where(is_decided, np.array([2, 0]), points)


def judge_sprt(
    gate: SprtGate, points: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Returns whether each match passes, and its number of games.

    Args:
        gate: The gate; its longest match must fit in ``points``.
        points: ``[matches, pairs, 2]`` from ``draw_points``.
    """
    sums = points[:, : gate.max_games // 2].sum(-1)
    counts = (sums[..., None] == np.arange(5)).cumsum(1)
    low, high = gate.bounds
    ratios = log_likelihood_ratio(counts, gate.elo0, gate.elo1)
    is_over = (ratios <= low) | (ratios >= high)
    last = np.where(is_over.any(1), is_over.argmax(1), gate.max_games // 2 - 1)
    rows = np.arange(len(points))
    by_score = sums.sum(1) / (2 * gate.max_games) >= gate.min_score - 1e-9
    by_ratio = ratios[rows, last] >= high
    return np.where(is_over.any(1), by_ratio, by_score), 2 * (last + 1)


def judge_match(
    gate: MatchGate, points: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
    """Like ``judge_sprt``, for matches of fixed length that end when decided."""
    games = points.reshape(len(points), -1)[:, : gate.num_games]
    needed = 2 * gate.min_score * gate.num_games - 1e-9
    sums = games.cumsum(1)
    num_left = gate.num_games - np.arange(1, gate.num_games + 1)
    is_over = (sums >= needed) | (sums + 2 * num_left < needed)
    return sums[:, -1] >= needed, is_over.argmax(1) + 1
