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
_NATIVE_POLICY = {
    "puct": RootPolicy.PUCT,
    "gumbel": RootPolicy.GUMBEL,
    "minigo": RootPolicy.MINIGO,
}
_MAX_LEAVES = 256


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """What a search does; how long it is belongs to the caller.

    The native twin is ``SearchSettings`` in core/search/settings.h; the two list the
    same fields. `tengen.search.ReferenceSearch` shows what every field does. What the
    policy does not read keeps its default.
    """

    policy: Literal["puct", "gumbel", "minigo"] = "puct"
    """``puct``: AlphaZero's rule, for 100 simulations a move and more. ``gumbel``:
    sequential halving at the root, which improves the policy from 2 simulations on
    (Danihelka et al. 2022). ``minigo``: the search of the MLPerf benchmark minigo,
    for self-play and matches of games of the core, see
    `tengen.search.reference_minigo`."""

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
    """PUCT, Gumbel: whether the root's priors and value are the mean over all
    symmetries of the board, not those of one. It costs seven evaluations more a search.
    The root of a kept tree gets new priors, and keeps its visits."""

    noise_alpha_total: float = bounded(10.83, 0, above=True, hint="raise it")
    """PUCT, exploring: total concentration of the Dirichlet noise on the root prior,
    spread evenly over the legal moves; above 0. 10.83 is AlphaZero's 0.03 on the 361
    points of Go (KataGo)."""

    noise_weight: float = bounded(0.25, 0, 1, "0 is no noise")
    """PUCT, minigo, exploring: share of the noise in the root prior, 0 to 1
    (AlphaGo Zero's 0.25; the benchmark's is 0.3)."""

    noise_shaped: bool = False
    """PUCT, exploring: half of that concentration goes to the moves whose prior is not
    far below the others' (KataGo's way)."""

    root_temperature: float = bounded(1.0, 0, above=True, hint="raise it")
    """PUCT, exploring: the root prior becomes prior^(1/T) before the noise; above 0,
    more than 1 flattens it (KataGo begins at 1.25)."""

    forced_playouts: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT, exploring: a visited root move gets at least sqrt(this * prior * N)
    visits, and the policy target is pruned of those that its value does not justify;
    0 for none, else above 0 (KataGo's 2). Did not pay on 7x7, see
    docs/howto/train/go.md."""

    lcb_stdevs: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: the best action is the one with the highest mean value less this many
    standard errors, among those with 15 % of the most visits; 0 for the most visits,
    else above 0 (KataGo's 5 in play)."""

    score_weight: float = bounded(0.0, 0, 1, "0 does without")
    """PUCT, Gumbel: how much the final score counts beside the result, in games with a
    score: what is maximised is win minus loss, and this times a function of the
    expected score from -1 to 1 that is steepest near what the search began with. 0 to
    1, 0 for none (KataGo's 0.4). Needs a network with ``net.auxiliary=true``. Values
    that are reported and learned stay win minus loss."""

    score_center_zero_weight: float = bounded(0.25, 0, 1, "0 does without")
    """PUCT, Gumbel: how far the middle of that function is pulled from the expected
    score towards zero, as a share of the score, 0 to 1; 0 makes a side far ahead play
    for the next point as one in a close game does (KataGo's 0.25)."""

    score_scale: float = bounded(0.5, 0, above=True, hint="raise it")
    """PUCT, Gumbel: the points that lift the function from 0 to a half, in sides of the
    board; above 0 (KataGo's 0.5)."""

    gumbel_considered: int = bounded(16, 1, 65535, "16 is the paper's")
    """Gumbel: actions that sequential halving begins with, at least 1; fewer where
    the simulations or the legal moves are fewer (the paper's m = 16)."""

    gumbel_visit: float = bounded(50.0, 0, rule="must not be negative; raise it")
    """Gumbel: c_visit in sigma(q) = (c_visit + most visits of a child) * c_scale * q,
    at least 0 (the paper's 50)."""

    gumbel_scale: float = bounded(1.0, 0, above=True, hint="raise it")
    """Gumbel: c_scale in sigma, above 0, for values in [-1, 1] (the paper's 1)."""

    minigo_c_init: float = bounded(1.25, 0, rule="must not be negative; raise it")
    """Minigo: exploration where a node has few visits, at least 0; the factor of the
    exploration term is 2 * (this + ln((1 + N + c_base) / c_base)) (the benchmark's
    1.25)."""

    minigo_c_base: float = bounded(19652.0, 0, above=True, hint="raise it")
    """Minigo: c_base in that factor, visits at which it sets in to grow, above 0 (the
    benchmark's 19652)."""

    minigo_value_penalty: float = bounded(0.2, 0, 2, "the benchmark's is 0.2")
    """Minigo: each move of a position begins with a value, which counts as one visit:
    the position's own less this, not below -1; 0 to 2 (the benchmark's 0.2)."""

    minigo_virtual_losses: int = bounded(4, 1, _MAX_LEAVES, "the benchmark's is 4")
    """Minigo: descents of one tree that wait at once for the network, 1 to 256. Each
    has a virtual loss on its path (the benchmark's 4)."""

    minigo_noise_alpha: float = bounded(0.03, 0, above=True, hint="raise it")
    """Minigo, exploring: concentration of the Dirichlet noise for each legal move,
    above 0, and not a total (the benchmark's 0.03)."""

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

    def check_game(self, is_external: bool) -> None:
        """Checks that the policy can search a game.

        Args:
            is_external: Whether Python makes the game's moves.

        Raises:
            UsageError: It cannot.
        """
        check(
            not is_external or self.policy != "minigo",
            "search.policy",
            self.policy,
            "must be puct or gumbel for a game that Python plays; choose one",
        )

    def check_single(self) -> None:
        """Checks that the policy can search a position outside self-play and matches.

        Raises:
            UsageError: It cannot.
        """
        check(
            self.policy != "minigo",
            "search.policy",
            self.policy,
            "must be puct or gumbel where positions are searched one by one; "
            "give --set search.policy=puct",
        )

    def point_utility(self, num_points: int) -> float:
        """Returns the most that a point more is worth in what a search maximises.

        Args:
            num_points: Cells of the board.
        """
        width = self.score_scale * math.sqrt(num_points)
        return self.score_weight * 2 / math.pi / width

    @property
    def leaves_at_once(self) -> int:
        """The most leaves of one search that wait for the network at once."""
        return self.minigo_virtual_losses if self.policy == "minigo" else 1

    def _refuse_unread(self) -> None:
        """Refuses a setting that would do nothing; its name tells whose it is."""
        for field in fields(self):
            readers = _readers(field.name)
            if self.policy in readers:
                continue
            value, default = getattr(self, field.name), field.default
            rule = (
                f"must stay {default} where policy is {self.policy}, which does not "
                f"read it; leave it out or set policy to {' or '.join(readers)}"
            )
            check(value == default, field.name, value, rule)

    def to_native(self) -> SearchSettings:
        """Returns the same settings for the native search; a fresh object."""
        policy = _NATIVE_POLICY[self.policy]
        return fill_native(self, SearchSettings(), policy=policy)


def _readers(name: str) -> tuple[str, ...]:
    """Returns the policies that read a field."""
    if name == "policy":
        return tuple(_NATIVE_POLICY)
    if name == "root_symmetries" or name.startswith("score_"):
        return ("puct", "gumbel")
    if name == "noise_weight":
        return ("puct", "minigo")
    own = name.split("_")[0]
    return (own,) if own in _NATIVE_POLICY else ("puct",)
