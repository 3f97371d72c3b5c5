"""Settings of tree search, and levels of playing strength.

The search is implemented in C++ (core/search), and runs in self-play workers, matches
and sessions. ``tests/oracle/search/`` is a readable reference implementation in Python.
"""

from __future__ import annotations

import dataclasses
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

from tengen._core import RootPolicy, SearchSettings
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native

MAX_SIMULATIONS = 1 << 24
"""Maximum number of simulations per search, the same as in the C++ core."""

# Maximum of all real-valued settings, far below float32's overflow.
_MOST = 1e6
# Search policies whose self-play and matches run in a dedicated worker.
_OWN_WORKER = ("minigo",)
# Exploration settings, which only self-play uses.
_EXPLORING = (
    "noise_alpha_total",
    "noise_weight",
    "noise_shaped",
    "root_temperature",
    "forced_playouts",
    "minigo_noise_alpha",
)
_NATIVE_POLICY = {
    "puct": RootPolicy.PUCT,
    "gumbel": RootPolicy.GUMBEL,
    "minigo": RootPolicy.MINIGO,
}
_MAX_LEAVES = 256


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """Settings of a tree search, without the number of simulations.

    ``SearchSettings`` in core/search/settings.h has the same fields. Fields that
    ``policy`` does not use must keep their defaults. `tests/oracle/search/` implements
    all fields in Python.
    """

    policy: Literal["puct", "gumbel", "minigo"] = "puct"
    """``puct``: AlphaZero's rule, for 100 or more simulations per move. ``gumbel``:
    sequential halving at the root, which improves the policy with 2 or more simulations
    (Danihelka et al. 2022). ``minigo``: the search of the MLPerf benchmark minigo, for
    self-play and matches in native games, see `tests/oracle/search/minigo.py`."""

    cpuct: float = bounded(1.1, 0, rule="must not be negative; raise it")
    """PUCT: exploration in nodes with few visits, at least 0 (1.1 in KataGo; 1.25 in
    AlphaZero, where it is c_init)."""

    cpuct_log: float = bounded(0.45, 0, rule="must not be negative; raise it")
    """PUCT: growth of exploration with the logarithm of the visits, at least 0; 0 for
    none (0.45 in KataGo, 1 in AlphaZero)."""

    cpuct_base: float = bounded(500.0, 0, above=True, hint="raise it")
    """PUCT: number of visits at which the growth by ``cpuct_log`` starts, above 0
    (500 in KataGo; 19652 in AlphaZero, where it is c_base)."""

    cpuct_stdev_scale: float = bounded(
        0.0, 0, 1, "use 0 for equal exploration in every node"
    )
    """PUCT: exploration is multiplied by 1 + cpuct_stdev_scale * (s / 0.4 - 1), where s
    is the standard deviation of a node's values; 0 to 1, 0 for no factor (KataGo uses
    0.85 in play and 0 in self-play)."""

    fpu_reduction: float = bounded(0.2, 0, rule="must not be negative; raise it")
    """PUCT: the value of an unvisited child is its parent's value minus fpu_reduction *
    sqrt(sum of the visited children's priors); at least 0 (0.2 in KataGo)."""

    root_fpu_reduction: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: ``fpu_reduction`` at the root, at least 0. Use 0 with root noise, otherwise
    moves that the noise favours may get no visit (KataGo uses 0 in self-play)."""

    root_symmetries: bool = False
    """PUCT, Gumbel: whether the root's priors and value are averaged over all
    symmetries of the board. This takes up to seven more evaluations per search. With
    tree reuse, the root gets new priors but keeps its visits."""

    noise_alpha_total: float = bounded(10.83, 0, above=True, hint="raise it")
    """PUCT, exploring: total concentration of the Dirichlet noise on the root prior,
    spread evenly over the legal moves; above 0. 10.83 is AlphaZero's 0.03 times the 361
    points of Go (as in KataGo)."""

    noise_weight: float = bounded(0.25, 0, 1, "use 0 for no noise")
    """PUCT, minigo, exploring: weight of the noise in the root prior, 0 to 1 (0.25 in
    AlphaGo Zero, 0.3 in MLPerf)."""

    noise_shaped: bool = False
    """PUCT, exploring: whether half of ``noise_alpha_total`` goes to moves with a prior
    not far below the other priors, instead of to all moves evenly (as in KataGo)."""

    root_temperature: float = bounded(1.0, 0, above=True, hint="raise it")
    """PUCT, exploring: temperature T of the root prior, above 0. The prior becomes
    prior^(1/T) before the noise; T above 1 flattens it (KataGo starts at 1.25)."""

    forced_playouts: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT, exploring: a visited root move gets at least sqrt(forced_playouts * prior *
    N) visits, where N is the number of visits of all root moves. The policy target
    excludes visits that the move's value does not justify. 0 for none (2 in KataGo).
    Forced playouts did not help on 7x7, see docs/howto/train/go.md."""

    lcb_stdevs: float = bounded(0.0, 0, rule="must not be negative; raise it")
    """PUCT: the best action is the one with the highest lower confidence bound, the
    mean value minus lcb_stdevs standard errors, among the actions with at least 15 % of
    the maximum visit count. 0 selects the action with the most visits (KataGo uses 5 in
    play)."""

    score_weight: float = bounded(0.0, 0, 1, "use 0 to disable it")
    """PUCT, Gumbel: weight of the final score, in games with a score; 0 to 1, 0 for
    none (0.4 in KataGo). The search maximises win minus loss, plus score_weight times a
    function of the expected score. The function ranges from -1 to 1 and is steepest
    near the root's expected score. Requires a network with ``net.auxiliary=true``.
    Reported values and value targets remain win minus loss."""

    score_center_zero_weight: float = bounded(0.25, 0, 1, "use 0 to disable it")
    """PUCT, Gumbel: shift of the steepest point of the score function from the root's
    expected score towards zero, as a share of that score, 0 to 1. With 0, a side that
    is far ahead values the next point as in a close game (0.25 in KataGo)."""

    score_scale: float = bounded(0.5, 0, above=True, hint="raise it")
    """PUCT, Gumbel: number of points that raise the score function from 0 to 1/2, as a
    multiple of the board's side; above 0 (0.5 in KataGo)."""

    gumbel_considered: int = bounded(16, 1, 65535, "16 is the paper's")
    """Gumbel: number of actions at the start of sequential halving, at least 1; fewer
    if there are fewer simulations or legal moves (m = 16 in the paper)."""

    gumbel_visit: float = bounded(50.0, 0, rule="must not be negative; raise it")
    """Gumbel: c_visit in sigma(q) = (c_visit + maximum visits of a child) * c_scale *
    q, at least 0 (50 in the paper)."""

    gumbel_scale: float = bounded(1.0, 0, above=True, hint="raise it")
    """Gumbel: c_scale in sigma, above 0, for values in [-1, 1] (1 in the paper)."""

    minigo_c_init: float = bounded(1.25, 0, rule="must not be negative; raise it")
    """Minigo: exploration in nodes with few visits, at least 0; the factor of the
    exploration term is 2 * (minigo_c_init + ln((1 + N + minigo_c_base) /
    minigo_c_base)), where N is the node's visit count (1.25 in MLPerf)."""

    minigo_c_base: float = bounded(19652.0, 0, above=True, hint="raise it")
    """Minigo: number of visits at which the factor in ``minigo_c_init`` starts to grow,
    above 0 (19652 in MLPerf)."""

    minigo_value_penalty: float = bounded(0.2, 0, 2, "the benchmark's is 0.2")
    """Minigo: each move has an initial value, which counts as one visit: the position's
    value minus minigo_value_penalty, at least -1; 0 to 2 (0.2 in MLPerf)."""

    minigo_virtual_losses: int = bounded(4, 1, _MAX_LEAVES, "the benchmark's is 4")
    """Minigo: number of simulations of one tree that wait for inference together, 1 to
    256. Each simulation adds a virtual loss to its path (4 in MLPerf)."""

    minigo_noise_alpha: float = bounded(0.03, 0, above=True, hint="raise it")
    """Minigo, exploring: concentration of the Dirichlet noise per legal move, not in
    total; above 0 (0.03 in MLPerf)."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, float):
                rule = f"must be at most {_MOST:.0f}; lower it"
                check(value <= _MOST, each.name, value, rule)
        check_fields(self)
        self._refuse_unread()

    def check_scores(self, has_scores: bool) -> None:
        """Checks that the network estimates the score if the settings need it.

        Args:
            has_scores: Whether the network estimates the final score.

        Raises:
            UsageError: ``score_weight`` is set, but the network estimates no score.
        """
        check(
            has_scores or self.score_weight == 0,
            "search.score_weight",
            self.score_weight,
            "needs a network that predicts the final score; train one with "
            "net.auxiliary=true in a game with a score, or leave it out",
        )

    def check_game(self, is_external: bool) -> None:
        """Checks that ``policy`` supports a game.

        Args:
            is_external: Whether the game is implemented in Python.

        Raises:
            UsageError: ``policy`` does not support games in Python.
        """
        check(
            not (is_external and self.has_own_worker),
            "search.policy",
            self.policy,
            "must be puct or gumbel for a game in Python; choose one",
        )

    def check_single(self) -> None:
        """Checks that ``policy`` supports searches outside self-play and matches.

        Raises:
            UsageError: ``policy`` is only for self-play and matches.
        """
        check(
            not self.has_own_worker,
            "search.policy",
            self.policy,
            "must be puct or gumbel to search single positions; use --set "
            "search.policy=puct",
        )

    def point_utility(self, num_points: int) -> float:
        """Returns the maximum utility that one additional point of score can add.

        Args:
            num_points: Number of cells of the board.
        """
        width = self.score_scale * math.sqrt(num_points)
        return self.score_weight * 2 / math.pi / width

    @property
    def leaves_at_once(self) -> int:
        """Maximum number of leaves of a search that wait for inference together."""
        return self.minigo_virtual_losses if self.has_own_worker else 1

    @property
    def has_own_worker(self) -> bool:
        """Whether self-play and matches with ``policy`` run in a dedicated worker.

        A policy with a dedicated worker supports only native games, in self-play and in
        matches. It always reuses its trees, and the self-play config has settings that
        no other policy uses.
        """
        return self.policy in _OWN_WORKER

    def exploring(self) -> dict[str, Any]:
        """Returns the exploration settings that differ from their defaults, by name."""
        usual = SearchConfig()
        return {
            name: value
            for name in _EXPLORING
            if (value := getattr(self, name)) != getattr(usual, name)
        }

    def _refuse_unread(self) -> None:
        """Raises UsageError if a field that ``policy`` does not use is set."""
        for each in fields(self):
            readers = _readers(each.name)
            if self.policy in readers:
                continue
            value, default = getattr(self, each.name), each.default
            rule = (
                f"must be {default} with policy {self.policy}, which ignores it; leave "
                f"it out, or set policy to {' or '.join(readers)}"
            )
            check(value == default, each.name, value, rule)

    def to_native(self) -> SearchSettings:
        """Returns the settings as an object for the search in C++."""
        policy = _NATIVE_POLICY[self.policy]
        return fill_native(self, SearchSettings(), policy=policy)


def _readers(name: str) -> tuple[str, ...]:
    """Returns the policies that use the field ``name``."""
    if name == "policy":
        return tuple(_NATIVE_POLICY)
    if name == "root_symmetries" or name.startswith("score_"):
        return ("puct", "gumbel")
    if name == "noise_weight":
        return ("puct", "minigo")
    own = name.split("_")[0]
    return (own,) if own in _NATIVE_POLICY else ("puct",)


PlayPrecision = Literal["run", "fp32", "bf16", "int8"]


@dataclass(frozen=True, kw_only=True)
class PlayConfig:
    """Settings for play with a trained model, except the number of simulations.

    With the defaults, runs and models from before these settings existed play as they
    did then. Recipes choose stronger settings.
    """

    search: SearchConfig = field(default_factory=SearchConfig)
    """Settings of the player's search. A player does not explore, so the settings for
    root noise, the root temperature and forced playouts must keep their defaults."""
    precision: PlayPrecision = "fp32"
    """Precision of the trunk on a CPU. ``run``: the precision of the run's self-play,
    chosen by a trial and a check of rounding errors. A model that loses too much
    accuracy in int8 plays in bf16, and a precision that this CPU does not support
    natively becomes fp32."""
    keeps_tree: bool = False
    """Tree reuse in matches, ratings and gates with PUCT: whether a search starts from
    the subtree of the player's previous search, whose visits count towards the
    simulations. Against people trees are reused unless ``--fresh`` is given. With
    minigo, which always reuses its tree and does not count the old visits, this field
    must be false."""

    batch_rows: int = bounded(0, 0, 64)
    """Maximum number of leaves that each thread of one search sends to the network
    together; fewer if the leaves of all threads would exceed 1/32 of the simulations.
    0: 8 if several threads search one tree, 1 for one thread. A larger batch takes less
    time per leaf, but the search continues without the values of leaves in flight.
    Games in Python, and concurrent games of a match, use 1. In matches minigo uses
    ``search.minigo_virtual_losses``, and this field must be 0."""

    resign_below: float = bounded(-1.0, -1, 1, below=True)
    """In matches, ratings and gates, and by default in GTP, a player resigns after the
    value of three consecutive own moves was below this; -1 to 1, -1 for never. A level
    of a bundled player never resigns."""

    def in_precision(self, precision: str) -> PlayConfig:
        """Returns these settings with precision ``run`` replaced by ``precision``.

        Args:
            precision: The precision of the run's self-play. ``auto`` becomes fp32,
                because the run has not chosen a precision yet.
        """
        if self.precision != "run":
            return self
        known = "fp32" if precision == "auto" else precision
        return dataclasses.replace(self, precision=cast(PlayPrecision, known))

    def __post_init__(self) -> None:
        """Checks the settings.

        Raises:
            UsageError: A setting has an invalid value, or a setting for self-play only
                is given.
        """
        check_fields(self)
        for name, value in self.search.exploring().items():
            rule = "is for self-play only, because players do not explore; leave it out"
            check(False, f"search.{name}", value, rule)
        if not self.search.has_own_worker:
            return
        where = f"with search.policy={self.search.policy}"
        for name, rule in (
            ("keeps_tree", f"must be false {where}, which always reuses trees"),
            ("batch_rows", f"must be 0 {where}, which sets its own batch size"),
        ):
            value = getattr(self, name)
            check(not value, name, value, f"{rule}; leave it out")


_MASK = (1 << 64) - 1


def draw_seed(*numbers: int) -> int:
    """Returns a seed derived from ``numbers``, such as match, game and ply."""
    seed = 0
    for number in numbers:
        # Mix the bits with SplitMix64, so that similar numbers give unrelated seeds.
        seed = (seed + number + 0x9E3779B97F4A7C15) & _MASK
        seed = ((seed ^ (seed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        seed = ((seed ^ (seed >> 27)) * 0x94D049BB133111EB) & _MASK
        seed ^= seed >> 31
    return seed


@dataclass(frozen=True, kw_only=True)
class Level:
    """One level of playing strength of a model.

    A strong level searches and plays the best move found. A weak level samples its move
    from the network's policy; the higher the temperature, the more random the moves.
    """

    simulations: int = bounded(1, 1, MAX_SIMULATIONS)
    """Number of simulations per move."""
    temperature: float = bounded(0.0, 0.0, 100.0)
    """Temperature for sampling a move from the policy; 0 plays the best move."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range, or a temperature is set together
                with more than one simulation.
        """
        check_fields(self)
        is_plain = self.temperature == 0 or self.simulations == 1
        rule = "must be 1 with a temperature above 0; leave one out"
        check(is_plain, "simulations", self.simulations, rule)

    def draw(
        self, actions: Sequence[int], priors: Sequence[float], best: int, seed: int
    ) -> int:
        """Returns the action to play: the best, or one sampled from the priors.

        Args:
            actions: The legal actions, in any order.
            priors: The network's probabilities of ``actions``, in [0, 1].
            best: The best action of the search, returned if the temperature is 0.
            seed: Seed for sampling; the same seed gives the same action.
        """
        if self.temperature == 0:
            return best
        rows = sorted(zip(actions, priors, strict=True))
        most = max(prior for _, prior in rows)
        if not most > 0:
            return best
        # Divide by the maximum prior, so that not all powers underflow to 0.
        weights = [(prior / most) ** (1 / self.temperature) for _, prior in rows]
        (drawn,) = random.Random(seed).choices([a for a, _ in rows], weights)
        return drawn
