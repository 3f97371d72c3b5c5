"""Settings of self-play."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, fields

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native
from tengen.games import GoVariety
from tengen.search import MAX_SIMULATIONS, SearchConfig

MAX_SLOTS = 4096
"""Maximum number of games that one thread plays concurrently."""

_MAX_GAMES = 10_000_000
_MAX_PLIES = 65_535
_MAX_CACHE_MIB = 1 << 20
# Fields that minigo's search ignores; _OF_MINIGO: fields that only this search uses.
_NOT_OF_MINIGO = (
    "temperature_early",
    "temperature_late",
    "temperature_halflife",
    "policy_opening_plies",
    "policy_opening_temperature",
    "early_fork_share",
    "early_fork_plies",
    "early_fork_choices",
    "late_fork_share",
    "late_fork_choices",
    "reduce_above",
    "reduced_weight",
    "resign_above",
    "resign_playout_share",
    "resign_max_false_share",
    "policy_surprise_share",
    "value_surprise_share",
    "lead_share",
    "lead_simulations",
    "reuse_tree",
)
_OF_MINIGO = (
    "soft_pick_plies",
    "soft_pick_exponent",
    "restrict_pass_alive_after",
    "resign_from",
    "may_pass",
    "prunes_target",
)


@dataclass(frozen=True, kw_only=True)
class SelfplayConfig:
    """Settings of self-play: searches, openings, forks, resignation and row weights.

    Methods of KataGo that are off by default did not show a gain in strength at small
    scale; see the table in docs/howto/train/go.md.

    With ``search.policy=minigo`` self-play is that of the MLPerf benchmark minigo
    (core/selfplay/workers/minigo_worker.h). The tree is reused from ply to ply. A cheap
    search (fast ply) adds its simulations to the existing visits of the tree. In games
    with cheap searches, a full search starts with a new tree, and runs one additional
    simulation for each visit of the old root. The first ply of a game has a full
    search. Only this search uses the fields whose description begins with ``Minigo``.
    It does not use the fields for temperatures, policy openings, forks, decided games,
    surprise and leads, nor ``reuse_tree``. Unused fields must keep their defaults.
    """

    games_per_generation: int = bounded(128, 1, _MAX_GAMES)
    """Number of games per generation, between two turns of the learner; at least 1."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """Settings of the search that chooses the move at every ply."""
    full_simulations: int = bounded(64, 1, MAX_SIMULATIONS)
    """Simulations of a full search, whose policy is a training target; at least 1. More
    simulations give better targets and fewer games."""
    cheap_simulations: int = bounded(16, 1, MAX_SIMULATIONS)
    """Simulations of a cheap search, which chooses a move but yields no row; at least
    1. Source: Wu 2019, "Accelerating self-play learning in Go", section 3.1."""
    full_probability: float = bounded(
        1.0, 0, 1, "use 1 for a full search at every ply", above=True
    )
    """Fraction of plies with a full search, above 0, at most 1; the other plies have a
    cheap search."""
    temperature_early: float = bounded(1.0, 0, hint="raise it")
    """Temperature of the move choice at the first ply, at least 0. A higher temperature
    makes moves more random. A full Gumbel search ignores temperatures and plays the
    action that it sampled."""
    temperature_late: float = bounded(0.1, 0, hint="raise it")
    """Temperature to which the move choice decays over a game, at least 0. Below 0.01
    the best move is played."""
    temperature_halflife: float = bounded(
        10.0, 0, above=True, rule="must be positive; raise it"
    )
    """Half-life in plies of the decay to ``temperature_late``, positive."""
    variety: GoVariety = field(default_factory=GoVariety)
    """Boards and rules of Go to play in addition to the task's; none by default."""
    book_share: float = bounded(0.0, 0, 1)
    """Share of the games that begin with an opening of ``agent.book``, in [0, 1]; the
    following fields set the openings of the other games. Book openings are only for the
    task's own board and rules, not for those of ``variety``."""
    max_opening_plies: int = bounded(0, 0, _MAX_PLIES)
    """Maximum number of random moves at the start of a game, at least 0. The number is
    sampled uniformly from 0 to this maximum, and the moves are uniformly random."""
    policy_opening_plies: float = bounded(0.0, 0, hint="raise it")
    """Mean number of opening moves sampled from the network's policy without search,
    after the random moves; at least 0, 0 for none (in KataGo 0.04 times the points of
    the board). The number is exponentially distributed."""
    policy_opening_temperature: float = bounded(
        1.0, 0, above=True, hint="use 1 for the unchanged policy"
    )
    """Temperature of the policy for the moves of ``policy_opening_plies``, above 0
    (1 in KataGo). A higher temperature makes the moves more random."""
    early_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that are early forks, 0 to 1 (0.04 in KataGo). An early fork
    starts with the first plies of a game of the previous generation, and then plays the
    move that the network rates best among some random moves."""
    early_fork_plies: float = bounded(2.0, 0, hint="raise it")
    """Mean number of plies that an early fork copies, at least 0 (in KataGo 0.025 times
    the points of the board). The number is exponentially distributed."""
    early_fork_choices: int = bounded(12, 3, _MAX_PLIES)
    """Maximum number of random moves among which an early fork chooses, at least 3; the
    number is sampled uniformly from 3 to this maximum."""
    late_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that are late forks, 0 to 1 (0.01 in KataGo). A late fork
    leaves a game of the previous generation at a uniformly random ply. The sum with
    ``early_fork_share`` must be at most 1."""
    late_fork_choices: int = bounded(36, 3, _MAX_PLIES)
    """Maximum number of random moves among which a late fork chooses, at least 3; the
    number is sampled uniformly from 3 to this maximum."""
    reduce_above: float = bounded(1.0, 0, 1)
    """Absolute value beyond which a game counts as decided and full searches get
    smaller, if the last 3 searches agree on the winner; 0 to 1, 1 for never (0.9 in
    KataGo). At a value of 1 a full search is as small as a cheap one."""
    reduced_weight: float = bounded(0.1, 0, 1, above=True)
    """Weight of a training row whose search was reduced to a cheap one, above 0, at
    most 1 (0.1 in KataGo)."""
    resign_above: float = bounded(1.0, 0, 1)
    """Absolute value beyond which a game is resigned, if the last 5 searches agree on
    the winner; 0 to 1, 1 for never. Games are resigned only after measurements have
    shown that this is safe; see ``resign_max_false_share``."""
    resign_playout_share: float = bounded(0.1, 0, 1, above=True)
    """Share of games that are never resigned, to measure how often a resignation would
    be wrong; above 0, at most 1 (0.1 in AlphaGo Zero)."""
    resign_max_false_share: float = bounded(0.05, 0, 1)
    """Maximum share of wrong resignations at which games may be resigned, 0 to 1
    (0.05 in AlphaGo Zero). It is measured in decided games that were played to the end:
    a resignation would have been wrong if the game ended with a different outcome."""
    settled_playout_share: float = bounded(0.02, 0, 1)
    """Share of games of Go that continue after every point is pass-alive; other games
    end at that point. 0 to 1; with 1, no game ends early (0.02 in KataGo)."""
    policy_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of the weight of a game's rows that is distributed in proportion to the
    policy surprise: how far the search changed the policy; 0 to 1, 0 for none (0.5 in
    KataGo). A cheap search with a large surprise then yields a row too."""
    value_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of the weight of a game's rows that is distributed in proportion to the
    value surprise: how far the game's result is from the network's value; 0 for none
    (0.1 in KataGo). The sum with ``policy_surprise_share`` must be at most 1."""
    lead_share: float = bounded(0.0, 0, 1)
    """Share of the plies with a full search at which the lead is estimated, 0 to 1, 0
    for none (0.05 in KataGo). A few small searches with different komi find the lead:
    the points that the side to move could give away to make the position even. For
    games with komi and networks with ``net.lead``."""
    lead_simulations: int = bounded(6, 1, MAX_SIMULATIONS)
    """Simulations of each search that estimates a lead, at least 1 (6 in KataGo)."""
    soft_pick_plies: int = bounded(30, 0, _MAX_PLIES)
    """Minigo: number of plies at the start of a game whose moves are sampled from the
    visit counts, and are never a pass; 0 to 65535 (in MLPerf points / 12, made even,
    which is 30 on 19x19)."""
    soft_pick_exponent: float = bounded(0.98, 0, 100, "the benchmark's is 0.98")
    """Minigo: exponent of the visit counts for sampling the moves of
    ``soft_pick_plies`` and for the policy targets of these plies; 0 to 100 (0.98 in
    MLPerf). A smaller exponent makes moves more random."""
    restrict_pass_alive_after: int = bounded(4, 0, _MAX_PLIES)
    """Minigo: number of consecutive passes by one side after which the other side no
    longer plays on pass-alive points of Go, except at plies of ``soft_pick_plies``, and
    learns no such moves at any ply; 0 to 65535, 0 for always (4 in MLPerf)."""
    resign_from: float = bounded(0.9, 0, 1, "use 1 to never resign")
    """Minigo: lower bound of the resignation threshold, 0 to 1, 1 for never (0.9 in
    MLPerf). Each game samples a threshold t uniformly above this bound and up to 1; a
    side resigns if its root value is below -t. No games continue to measure how often a
    resignation is wrong."""
    may_pass: bool = True
    """Minigo: whether a side may pass if another move is legal. The benchmark's
    bootstrap has false, because a random network would soon pass and end the games. The
    pass still has its prior and its share of the noise."""
    prunes_target: bool = True
    """Minigo: whether the policy target of a full ply excludes visits that only noise
    caused, and visits to pass-alive points that are not played (the benchmark's
    bootstrap has false)."""
    reuse_tree: bool = True
    """Whether a cheap search starts from the subtree of the previous search."""
    snapshot_s: float = bounded(60.0, 0, above=True, rule="must be positive; use 60")
    """Seconds between saves of the games in flight, positive. A restart resumes the
    saved games; games in Python start over."""
    switch_models: bool = True
    """Whether games in flight switch to a newly published model, if roles do not take
    turns; each game switches at its next full search. Otherwise, one model plays
    a complete generation. That is also the case for minigo with ``full_probability`` 1,
    and for games in Python that several processes play."""
    num_slots: int = bounded(16, 1, MAX_SLOTS, "8 to 64 suits a CPU")
    """Number of concurrent games per thread, 1 to 4096. It is the maximum number of
    rows of a batch; with minigo the maximum is ``search.minigo_virtual_losses`` times
    as high. On GPUs, the number is raised until three of the largest batches per
    device are in flight."""
    cache_mib: int = bounded(64, 0, _MAX_CACHE_MIB, "use 0 for no cache")
    """Size of each thread's evaluation cache in MiB; 0 for no cache."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        check_fields(self)
        check(
            self.early_fork_share + self.late_fork_share <= 1,
            "early_fork_share",
            self.early_fork_share,
            "must be at most 1 with late_fork_share; lower one",
        )
        check(
            self.policy_surprise_share + self.value_surprise_share <= 1,
            "policy_surprise_share",
            self.policy_surprise_share,
            "must be at most 1 with value_surprise_share; lower one",
        )
        self._refuse_unread()

    def _refuse_unread(self) -> None:
        """Raises UsageError if an ignored field differs from its default."""
        policy = self.search.policy
        unread = _NOT_OF_MINIGO if self.search.has_own_worker else _OF_MINIGO
        for field_ in fields(self):
            if field_.name not in unread:
                continue
            value, default = getattr(self, field_.name), field_.default
            rule = (
                f"must be {default} with search.policy={policy}, which ignores it; "
                "leave it out"
            )
            check(value == default, field_.name, value, rule)

    @property
    def follows_models(self) -> bool:
        """Whether games in flight switch to a newly published model.

        The value is ``switch_models``, but false for minigo if every ply is full,
        because then the tree is reused at every ply and no ply can switch models.
        """
        keeps_trees = self.search.has_own_worker and self.full_probability == 1
        return self.switch_models and not keeps_trees

    def to_native(self) -> _core.SelfplaySettings:
        """Returns the same settings as an object of the core."""
        return fill_native(
            self,
            _core.SelfplaySettings(),
            search=self.search.to_native(),
            cache_bytes=self.cache_mib << 20,
        )


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """Settings of the self-play games of model 0, if model 0 has random weights.

    The policy targets of these games are not pruned.

    Source: MLPerf training v2.1, reinforcement learning (minigo), ``bootstrap.flags``.
    """

    simulations: int = bounded(80, 1, MAX_SIMULATIONS)
    """Number of simulations at every ply, at least 1; there are no cheap searches."""
    resign_from: float = bounded(0.99, 0, 1)
    """Value of ``actor.resign_from`` for games of model 0, in [0, 1]; 1 for never."""
    may_pass: bool = False
    """Value of ``actor.may_pass`` for games of model 0."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_fields(self)

    def played(self, actor: SelfplayConfig) -> SelfplayConfig:
        """Returns the self-play settings for the games of model 0.

        Args:
            actor: The self-play settings of later models.
        """
        return dataclasses.replace(
            actor,
            full_simulations=self.simulations,
            full_probability=1.0,
            resign_from=self.resign_from,
            may_pass=self.may_pass,
            prunes_target=False,
            # The random model must play all games of this generation.
            switch_models=False,
        )
