"""Settings of a search; one set serves self-play, matches and play."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, Literal

from tengen._core import RootPolicy, SearchSettings
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native

__all__ = ["MAX_SIMULATIONS", "SearchConfig"]

MAX_SIMULATIONS = 1 << 24
"""Most simulations of one search; as the core has it."""

# The largest value of every real-valued field: results stay far below float32's limit.
_MOST = 1e6
_NATIVE_POLICY = {
    "puct": RootPolicy.PUCT,
    "gumbel": RootPolicy.GUMBEL,
    "minigo": RootPolicy.MINIGO,
}
_MAX_LEAVES = 256
# The policies whose self-play and matches run in a worker of their own.
_OWN_WORKER = ("minigo",)
# The fields that only self-play reads, because a player does not explore.
_EXPLORING = (
    "noise_alpha_total",
    "noise_weight",
    "noise_shaped",
    "root_temperature",
    "forced_playouts",
    "minigo_noise_alpha",
)


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How a search works; the caller says how many simulations it makes.

    The native twin is ``SearchSettings`` in core/search/settings.h; the two list the
    same fields. `tests/oracle/search/` shows what every field does. A field
    that the policy does not read must keep its default.
    """

    policy: Literal["puct", "gumbel", "minigo"] = "puct"
    """``puct``: AlphaZero's rule, for 100 simulations a move and more. ``gumbel``:
    sequential halving at the root, which improves the policy from 2 simulations on
    (Danihelka et al. 2022). ``minigo``: the search of the MLPerf benchmark minigo, for
    self-play and matches in native games, see `tests/oracle/search/minigo.py`."""

    cpuct: float = bounded(1.1, 0, rule="must not be negative; raise it")
    """PUCT: exploration where few children were visited, at least 0 (KataGo's 1.1;
    AlphaZero's c_init is 1.25)."""

    cpuct_log: float = bounded(0.45, 0, rule="must not be negative; raise it")
    """PUCT: how fast exploration grows with the logarithm of the visits, at least 0;
    0 keeps it constant (KataGo's 0.45; AlphaZero's is 1)."""

    cpuct_base: float = bounded(500.0, 0, above=True, hint="raise it")
    """PUCT: visits at which the growth by ``cpuct_log`` sets in, above 0 (KataGo's 500;
    AlphaZero's c_base is 19652)."""

    cpuct_stdev_scale: float = bounded(
        0.0, 0, 1, "0 keeps exploration the same in every node"
    )
    """PUCT: exploration is multiplied by 1 + cpuct_stdev_scale * (s / 0.4 - 1), where s
    is the standard deviation of a node's values; 0 to 1, 0 for no such factor (KataGo's
    0.85 in play, 0 in self-play)."""

    fpu_reduction: float = bounded(0.2, 0, rule="must not be negative; raise it")
    """PUCT: the value of an unvisited child is its parent's value minus fpu_reduction *
    sqrt(sum of the visited children's priors); at least 0 (KataGo's 0.2)."""

    root_fpu_reduction: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: ``fpu_reduction`` at the root, at least 0. With root noise use 0, or a move
    that the noise favours may never be tried (KataGo's 0 in self-play)."""

    root_symmetries: bool = False
    """PUCT, Gumbel: whether the root's priors and value are the mean over all
    symmetries of the board, not those of one symmetry. This costs seven evaluations
    more a search. The root of a kept tree gets new priors and keeps its visits."""

    noise_alpha_total: float = bounded(10.83, 0, above=True, hint="raise it")
    """PUCT, exploring: total concentration of the Dirichlet noise on the root prior,
    spread evenly over the legal moves; above 0. 10.83 is AlphaZero's 0.03 on the 361
    points of Go (KataGo)."""

    noise_weight: float = bounded(0.25, 0, 1, "0 is no noise")
    """PUCT, minigo, exploring: share of the noise in the root prior, 0 to 1
    (AlphaGo Zero's 0.25; the benchmark's is 0.3)."""

    noise_shaped: bool = False
    """PUCT, exploring: whether half of ``noise_alpha_total`` goes to the moves whose
    prior is not far below the others', instead of evenly to all (KataGo does so)."""

    root_temperature: float = bounded(1.0, 0, above=True, hint="raise it")
    """PUCT, exploring: the root prior becomes prior^(1/T) before the noise; above 0, a
    value above 1 flattens the prior (KataGo begins at 1.25)."""

    forced_playouts: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT, exploring: a visited root move gets at least sqrt(forced_playouts * prior *
    N) visits, where N is the visits of all root moves. The policy target leaves out all
    visits that the move's value does not justify. 0 for none, else above 0 (KataGo's
    2). They did not pay on 7x7, see docs/howto/train/go.md."""

    lcb_stdevs: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: the best action is the one with the highest lower confidence bound, the
    mean value minus lcb_stdevs standard errors, among the actions with at least 15 % of
    the most visits. 0 takes the action with the most visits (KataGo's 5 in play)."""

    score_weight: float = bounded(0.0, 0, 1, "0 does without")
    """PUCT, Gumbel: how much the final score counts beside the result, in games with a
    score; 0 to 1, 0 for not at all (KataGo's 0.4). The search maximises win minus loss,
    plus score_weight times a function of the expected score. The function goes from -1
    to 1 and is steepest near the score that the root expects. Needs a network with
    ``net.auxiliary=true``. Values that are reported and learned stay win minus loss."""

    score_center_zero_weight: float = bounded(0.25, 0, 1, "0 does without")
    """PUCT, Gumbel: how far the steepest point of the score's function is moved from
    the root's expected score towards zero, as a share of the score, 0 to 1. With 0 a
    side that is far ahead plays for the next point as in a close game (KataGo's
    0.25)."""

    score_scale: float = bounded(0.5, 0, above=True, hint="raise it")
    """PUCT, Gumbel: how many points lift the score's function from 0 to a half, as a
    multiple of the board's side; above 0 (KataGo's 0.5)."""

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
    exploration term is 2 * (minigo_c_init + ln((1 + N + minigo_c_base) /
    minigo_c_base)), where N is the node's visits (the benchmark's 1.25)."""

    minigo_c_base: float = bounded(19652.0, 0, above=True, hint="raise it")
    """Minigo: visits at which the factor at ``minigo_c_init`` begins to grow, above 0
    (the benchmark's 19652)."""

    minigo_value_penalty: float = bounded(0.2, 0, 2, "the benchmark's is 0.2")
    """Minigo: each move begins with a value that counts as one visit: the position's
    own value minus minigo_value_penalty, not below -1; 0 to 2 (the benchmark's 0.2)."""

    minigo_virtual_losses: int = bounded(4, 1, _MAX_LEAVES, "the benchmark's is 4")
    """Minigo: simulations of one tree that wait for the network at the same time, 1 to
    256. Each has a virtual loss on its path (the benchmark's 4)."""

    minigo_noise_alpha: float = bounded(0.03, 0, above=True, hint="raise it")
    """Minigo, exploring: concentration of the Dirichlet noise for each legal move, not
    the total over all of them; above 0 (the benchmark's 0.03)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, float):
                rule = f"must be at most {_MOST:.0f}; lower it"
                check(value <= _MOST, field.name, value, rule)
        check_fields(self)
        self._refuse_unread()

    def check_scores(self, has_scores: bool) -> None:
        """Checks that evaluations have a score if the settings read one.

        Args:
            has_scores: Whether evaluations come with the expected final score.

        Raises:
            UsageError: The settings read the score, and evaluations have none.
        """
        check(
            has_scores or self.score_weight == 0,
            "search.score_weight",
            self.score_weight,
            "needs a network that estimates the final score; train one with "
            "net.auxiliary=true, in a game with a score, or leave it out",
        )

    def check_game(self, is_external: bool) -> None:
        """Checks that the policy can search a game.

        Args:
            is_external: Whether Python makes the game's moves.

        Raises:
            UsageError: It cannot.
        """
        check(
            not (is_external and self.has_own_worker),
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
            not self.has_own_worker,
            "search.policy",
            self.policy,
            "must be puct or gumbel where positions are searched one by one; "
            "give --set search.policy=puct",
        )

    @property
    def has_own_worker(self) -> bool:
        """Whether the policy's self-play and matches run in a worker of its own.

        Such a policy searches only native games, in self-play and in matches. It always
        keeps its trees, and has settings of its own in the config of self-play.
        """
        return self.policy in _OWN_WORKER

    def exploring(self) -> dict[str, Any]:
        """Returns the settings of exploration that are not their defaults, by name."""
        usual = SearchConfig()
        return {
            name: value
            for name in _EXPLORING
            if (value := getattr(self, name)) != getattr(usual, name)
        }

    def point_utility(self, num_points: int) -> float:
        """Returns the most by which one more point raises what a search maximises.

        Args:
            num_points: Cells of the board.
        """
        width = self.score_scale * math.sqrt(num_points)
        return self.score_weight * 2 / math.pi / width

    @property
    def leaves_at_once(self) -> int:
        """The most leaves of one search that wait for the network at the same time."""
        return self.minigo_virtual_losses if self.has_own_worker else 1

    def _refuse_unread(self) -> None:
        """Refuses a setting that the policy does not read."""
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
