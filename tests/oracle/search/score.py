"""The utility of the final score in the reference search.

Source: Wu 2019, "Accelerating self-play learning in Go", appendix D (score
maximization); defaults and the zero weight of the center are from KataGo
(lightvector/KataGo).

Differs from KataGo: there is no static term; the expectation is computed by quadrature
instead of a table; a reused tree keeps its center.
"""

from __future__ import annotations

import math

from tengen.search import SearchConfig
from tests.oracle.search.tree import Node

Score = tuple[float, float]
"""Mean and standard deviation of the final score, in points of the side to play."""


def expected_saturated(mean: float, stdev: float) -> float:
    """Returns E[2 / pi * atan(x)] for normal x, by summation over a fine grid."""
    total = weights = 0.0
    for step in range(-1200, 1201):
        z = step / 200
        weight = math.exp(-0.5 * z * z)
        total += weight * math.atan(mean + stdev * z)
        weights += weight
    return 2 / math.pi * total / weights


class ScoreUtility:
    """Utility of the final score, added to win minus loss if the score counts.

    Args:
        config: The settings.
        board_side: Side length of the board: the square root of its number of cells.

    Attributes:
        center_to_first: The score where the function is steepest, in points for the
            first player; set by ``center_on``.
    """

    def __init__(self, config: SearchConfig, board_side: float) -> None:
        self._config = config
        self._width = config.score_scale * board_side
        self.center_to_first = 0.0

    def center_on(self, score_to_first: float) -> None:
        """Sets the center for a new tree from its root's expected score.

        The center is the score minus a share of it, by at most one width.
        """
        pull = self._config.score_center_zero_weight * score_to_first
        self.center_to_first = score_to_first - max(
            -self._width, min(self._width, pull)
        )

    def of(self, win_loss: float, score: Score, to_play: int) -> float:
        """Returns win minus loss plus the weighted utility of the score."""
        weight = self._config.score_weight
        if weight == 0:
            return win_loss
        sign = 1 if to_play == 0 else -1
        mean, stdev = score
        mean = (mean - sign * self.center_to_first) / self._width
        return win_loss + weight * expected_saturated(mean, stdev / self._width)

    def settled(self, node: Node) -> float:
        """Returns the utility of a settled node from its result and its exact score."""
        return self.of(node.proof.value, (node.score[0], 0.0), node.state.to_play)
