"""Settings of a search; one set serves self-play, matches and play."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Literal

from tengen._core import RootPolicy, SearchSettings
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native

__all__ = ["MAX_SIMULATIONS", "SearchConfig"]

MAX_SIMULATIONS = 1 << 24
"""Most simulations of one search; as the core has it."""

# Of every real number; what comes of them stays far from the end of float32.
_MOST = 1e6
_NATIVE_POLICY = {"puct": RootPolicy.PUCT, "gumbel": RootPolicy.GUMBEL}


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """What a search does; how long it is belongs to the caller.

    The native twin is ``SearchSettings`` in core/search/settings.h; the two list the
    same fields. `tengen.search.ReferenceSearch` shows what every field does. What the
    policy does not read keeps its default.
    """

    policy: Literal["puct", "gumbel"] = "puct"
    """``puct``: AlphaZero's rule, for 100 simulations a move and more. ``gumbel``:
    sequential halving at the root, which improves the policy from 2 simulations on
    (Danihelka et al. 2022)."""

    cpuct: float = bounded(1.1, 0, rule="must not be negative; raise it")
    """PUCT: exploration where few children were visited, at least 0 (KataGo's 1.1;
    AlphaZero's c_init is 1.25)."""

    cpuct_log: float = bounded(0.45, 0, rule="must not be negative; raise it")
    """PUCT: how fast exploration grows with the logarithm of the visits, at least 0;
    0 keeps it constant (KataGo's 0.45; AlphaZero's is 1)."""

    cpuct_base: float = bounded(500.0, 0, above=True, hint="raise it")
    """PUCT: visits at which that growth sets in, above 0 (KataGo's 500; AlphaZero's
    c_base is 19652)."""

    cpuct_stdev_scale: float = bounded(
        0.0, 0, 1, "0 keeps exploration the same in every node"
    )
    """PUCT: exploration follows the standard deviation s of a node's values, by the
    factor 1 + this * (s / 0.4 - 1); 0 to 1, 0 for none (KataGo's 0.85 in play, 0 in
    self-play)."""

    fpu_reduction: float = bounded(0.2, 0, rule="must not be negative; raise it")
    """PUCT: an unvisited child is worth its parent's value less this times the square
    root of the prior mass already visited; at least 0 (KataGo's 0.2)."""

    root_fpu_reduction: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: the same at the root, at least 0. Root noise wants 0, so that a noisy
    move is tried at all (KataGo's 0 in self-play)."""

    root_symmetries: bool = False
    """Both: whether the root's priors and value are the mean over all symmetries of the
    board, not those of one. It costs seven evaluations more a search. The root of a
    kept tree gets new priors, and keeps its visits."""

    noise_alpha_total: float = bounded(10.83, 0, above=True, hint="raise it")
    """PUCT, exploring: total concentration of the Dirichlet noise on the root prior,
    spread evenly over the legal moves; above 0. 10.83 is AlphaZero's 0.03 on the 361
    points of Go (KataGo)."""

    noise_weight: float = bounded(0.25, 0, 1, "0 is no noise")
    """PUCT, exploring: share of that noise in the root prior, 0 to 1 (AlphaGo Zero's
    0.25)."""

    noise_shaped: bool = False
    """PUCT, exploring: half of that concentration goes to the moves whose prior is not
    far below the others' (KataGo's way)."""

    root_temperature: float = bounded(1.0, 0, above=True, hint="raise it")
    """PUCT, exploring: the root prior becomes prior^(1/T) before the noise; above 0,
    more than 1 flattens it (KataGo begins at 1.25)."""

    forced_playouts: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT, exploring: a visited root move gets at least sqrt(this * prior * N)
    visits, and the policy target is pruned of those that its value does not justify;
    0 for none, else above 0 (KataGo's 2). Did not pay on 7x7, see docs/go.md."""

    lcb_stdevs: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: the best action is the one with the highest mean value less this many
    standard errors, among those with 15 % of the most visits; 0 for the most visits,
    else above 0 (KataGo's 5 in play)."""

    score_weight: float = bounded(0.0, 0, 1, "0 does without")
    """Both: how much the final score counts beside the result, in games with a score:
    what is maximised is win minus loss, and this times a function of the expected
    score from -1 to 1 that is steepest near what the search began with. 0 to 1, 0 for
    none (KataGo's 0.4). Needs a network with ``net.auxiliary=true``. Values that are
    reported and learned stay win minus loss."""

    score_center_zero_weight: float = bounded(0.25, 0, 1, "0 does without")
    """Both: how far the middle of that function is pulled from the expected score
    towards zero, as a share of the score, 0 to 1; 0 makes a side far ahead play for
    the next point as one in a close game does (KataGo's 0.25)."""

    score_scale: float = bounded(0.5, 0, above=True, hint="raise it")
    """Both: the points that lift the function from 0 to a half, in sides of the board;
    above 0 (KataGo's 0.5)."""

    gumbel_considered: int = bounded(16, 1, 65535, "16 is the paper's")
    """Gumbel: actions that sequential halving begins with, at least 1; fewer where
    the simulations or the legal moves are fewer (the paper's m = 16)."""

    gumbel_visit: float = bounded(50.0, 0, rule="must not be negative; raise it")
    """Gumbel: c_visit in sigma(q) = (c_visit + most visits of a child) * c_scale * q,
    at least 0 (the paper's 50)."""

    gumbel_scale: float = bounded(1.0, 0, above=True, hint="raise it")
    """Gumbel: c_scale in sigma, above 0, for values in [-1, 1] (the paper's 1)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float):
                rule = f"must be at most {_MOST:.0f}; lower it"
                check(value <= _MOST, field.name, value, rule)
        check_fields(self)
        self._refuse_unread()

    def check_scores(self, has_scores: bool) -> None:
        """Checks that evaluations give what the settings read.

        Args:
            has_scores: Whether they come with the expected final score.

        Raises:
            UsageError: The score shall count, and they do not.
        """
        check(
            has_scores or self.score_weight == 0,
            "search.score_weight",
            self.score_weight,
            "needs a network that estimates the final score; train one of a game with "
            "a score by net.auxiliary=true, or leave it out",
        )

    def point_utility(self, num_points: int) -> float:
        """Returns the most that a point more is worth in what a search maximises.

        Args:
            num_points: Cells of the board.
        """
        width = self.score_scale * math.sqrt(num_points)
        return self.score_weight * 2 / math.pi / width

    def _refuse_unread(self) -> None:
        """Refuses a setting that would do nothing; its name tells whose it is."""
        for field in fields(self):
            reader = "gumbel" if field.name.startswith("gumbel_") else "puct"
            is_shared = field.name in ("policy", "root_symmetries")
            is_shared = is_shared or field.name.startswith("score_")
            if is_shared or reader == self.policy:
                continue
            value, default = getattr(self, field.name), field.default
            rule = (
                f"must stay {default} where policy is {self.policy}, which does not "
                f"read it; leave it out or set policy to {reader}"
            )
            check(value == default, field.name, value, rule)

    def to_native(self) -> SearchSettings:
        """Returns the same settings for the native search; a fresh object."""
        policy = _NATIVE_POLICY[self.policy]
        return fill_native(self, SearchSettings(), policy=policy)
