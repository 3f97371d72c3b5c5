"""How self-play games are played."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field, fields

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native
from tengen.games import GoVariety
from tengen.search import MAX_SIMULATIONS, SearchConfig

__all__ = ["MAX_SLOTS", "BootstrapConfig", "SelfplayConfig"]


MAX_SLOTS = 4096
"""The most games that one thread plays at once."""

_MAX_GAMES = 10_000_000
_MAX_PLIES = 65_535
_MAX_CACHE_MIB = 1 << 20
# Fields that minigo's search does not read, then fields that only minigo's reads.
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
    """How self-play games are played.

    Methods of KataGo that are off by default were not shown to gain strength at small
    scale: see the table in docs/howto/train/go.md.

    With ``search.policy=minigo`` self-play is that of the MLPerf benchmark minigo
    (core/selfplay/workers/minigo_worker.h). The tree is kept from ply to ply. A cheap
    search (fast ply) adds its simulations to the visits that the tree already has.
    Where a game has cheap searches, a full search begins without a tree, and makes one
    more simulation for each visit that its root had. The first ply of a game has a full
    search. Fields whose text begins with ``Minigo`` are read by this search alone. It
    does not read the fields of temperatures, policy openings, forks, decided games,
    surprise and leads, nor ``reuse_tree``. A field that is not read must keep its
    default.
    """

    games_per_generation: int = bounded(128, 1, _MAX_GAMES)
    """Games played between two turns of the learner, at least 1."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The search at every ply."""
    full_simulations: int = bounded(64, 1, MAX_SIMULATIONS)
    """Simulations of a full search, whose policy is a training target; at least 1. More
    simulations give better targets and fewer games."""
    cheap_simulations: int = bounded(16, 1, MAX_SIMULATIONS)
    """Simulations of a cheap search, which chooses a move but makes no training row; at
    least 1. Source: Wu 2019, "Accelerating self-play learning in Go", section 3.1."""
    full_probability: float = bounded(
        1.0, 0, 1, "use 1 for a full search at every ply", above=True
    )
    """Share of plies with a full search, above 0, at most 1; the others have a cheap
    search."""
    temperature_early: float = bounded(1.0, 0, hint="raise it")
    """Temperature of the move choice at the first ply, at least 0. A higher temperature
    makes moves more random. A full Gumbel search ignores temperatures: it plays the
    action that it drew."""
    temperature_late: float = bounded(0.1, 0, hint="raise it")
    """Temperature that the move choice falls to over a game, at least 0. Below 0.01 the
    best move is played."""
    temperature_halflife: float = bounded(
        10.0, 0, above=True, rule="must be positive; raise it"
    )
    """Plies in which the difference between the two temperatures halves, positive."""
    variety: GoVariety = field(default_factory=GoVariety)
    """Games of Go on other boards and by other rules than the task's; none by
    default."""
    book_share: float = bounded(0.0, 0, 1)
    """Share of the games that begin with an opening of ``agent.book``, in [0, 1]; the
    other games begin as the following fields say. Openings of a book are only for the
    task's own board and rules, not for those of ``variety``."""
    max_opening_plies: int = bounded(0, 0, _MAX_PLIES)
    """Most random moves at the start of a game, at least 0. Each game draws a number
    from 0 to this one evenly, and begins with so many uniformly random moves. One game
    in this number plus one begins on the empty board."""
    policy_opening_plies: float = bounded(0.0, 0, hint="raise it")
    """Mean number of opening moves drawn from the network's policy without search,
    after the random moves; at least 0, 0 for none (KataGo: 0.04 times the points of
    the board). The number is exponentially distributed."""
    policy_opening_temperature: float = bounded(
        1.0, 0, above=True, hint="use 1 for the policy as it is"
    )
    """Temperature of the policy in these opening moves, above 0 (KataGo: 1). A higher
    temperature makes the moves more random."""
    early_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that are early forks, 0 to 1 (KataGo: 0.04). An early fork
    takes the first plies of a game of the generation before, and then plays the move
    that the network prefers among some random moves."""
    early_fork_plies: float = bounded(2.0, 0, hint="raise it")
    """Mean number of plies that an early fork takes over, at least 0 (KataGo: 0.025
    times the points of the board). The number is exponentially distributed."""
    early_fork_choices: int = bounded(12, 3, _MAX_PLIES)
    """Most random moves that an early fork chooses among, at least 3; their number is
    drawn evenly from 3 to this one."""
    late_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that are late forks, 0 to 1 (KataGo: 0.01). A late fork leaves
    a game of the generation before at any of its plies, all equally likely. With
    ``early_fork_share`` at most 1."""
    late_fork_choices: int = bounded(36, 3, _MAX_PLIES)
    """Most random moves that a late fork chooses among, at least 3; their number is
    drawn evenly from 3 to this one."""
    reduce_above: float = bounded(1.0, 0, 1)
    """Absolute value beyond which a game counts as decided and full searches get
    smaller, if the last 3 searches agree on the winner; 0 to 1, 1 for never (KataGo:
    0.9). At a value of 1 a full search is as small as a cheap one."""
    reduced_weight: float = bounded(0.1, 0, 1, above=True)
    """Weight of a training row whose search was reduced to a cheap one, above 0, at
    most 1 (KataGo: 0.1)."""
    resign_above: float = bounded(1.0, 0, 1)
    """Absolute value beyond which a game is resigned, if the last 5 searches agree on
    the winner; 0 to 1, 1 for never. Games are resigned only once this has been measured
    to be safe, see ``resign_max_false_share``."""
    resign_playout_share: float = bounded(0.1, 0, 1, above=True)
    """Share of games that are never resigned, to measure how often resigning would be
    wrong; above 0, at most 1 (AlphaGo Zero: 0.1)."""
    resign_max_false_share: float = bounded(0.05, 0, 1)
    """Largest share of wrong resignations with which games may be resigned, 0 to 1
    (AlphaGo Zero: 0.05). It is measured on decided games that were played on: a
    resignation would have been wrong where the game ended otherwise."""
    settled_playout_share: float = bounded(0.02, 0, 1)
    """Share of games of Go that are played on once every point is pass-alive; the
    others end there. 0 to 1, 1: no game ends early (KataGo: 0.02)."""
    policy_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of the weight of a game's rows that is given in proportion to how far the
    search moved the policy, 0 to 1; 0 for none (KataGo: 0.5). A cheap search that moved
    the policy far then makes a row too."""
    value_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of the weight of a game's rows that is given in proportion to how far the
    game moved the value from the network's; 0 for none (KataGo: 0.1). With
    ``policy_surprise_share`` at most 1."""
    lead_share: float = bounded(0.0, 0, 1)
    """Share of the plies with a full search at which the lead is estimated, 0 to 1, 0
    for none (KataGo: 0.05). A few small searches with other komi find the lead: the
    points that the side to move could give away until the position is even. For games
    with komi and networks with ``net.lead``."""
    lead_simulations: int = bounded(6, 1, MAX_SIMULATIONS)
    """Simulations of each search that estimates a lead, at least 1 (KataGo: 6)."""
    soft_pick_plies: int = bounded(30, 0, _MAX_PLIES)
    """Minigo: number of plies at the start of a game whose move is drawn by visits, and
    is never a pass; 0 to 65535 (the benchmark: points / 12, made even, which is 30 on
    19x19)."""
    soft_pick_exponent: float = bounded(0.98, 0, 100, "the benchmark's is 0.98")
    """Minigo: power of the visit counts in drawing the moves of ``soft_pick_plies`` and
    in the policy targets of these plies; 0 to 100 (the benchmark: 0.98). A smaller
    power makes moves more random."""
    restrict_pass_alive_after: int = bounded(4, 0, _MAX_PLIES)
    """Minigo: passes in a row by one side, after which the other side no longer plays
    on pass-alive points of Go, except at plies of ``soft_pick_plies``, and at all plies
    learns nothing of such moves; 0 to 65535, 0 for always (the benchmark: 4)."""
    resign_from: float = bounded(0.9, 0, 1, "1 is never")
    """Minigo: least resignation threshold, 0 to 1, 1 for never (the benchmark: 0.9).
    Each game draws a threshold t evenly between this number, which is excluded, and 1;
    a side resigns where its root's value is below -t. No games are played on to measure
    how often that is wrong."""
    may_pass: bool = True
    """Minigo: whether a side may pass where another move is legal. The benchmark's
    bootstrap has false, because a random network would pass at once and end the games.
    The pass keeps its prior and its part of the noise."""
    prunes_target: bool = True
    """Minigo: whether visits that only noise caused, and visits on pass-alive points
    that are not played, are removed from the policy target of a full ply (the
    benchmark's bootstrap has false)."""
    reuse_tree: bool = True
    """Whether a cheap search starts from the subtree that the last search left."""
    snapshot_s: float = bounded(60.0, 0, above=True, rule="must be positive; use 60")
    """Seconds between two saves of the games in flight, positive. A restart goes on
    with the saved games; games of a task in Python begin again."""
    switch_models: bool = True
    """Whether games in flight change to a model that is published meanwhile, where a
    role plays by itself; each game changes at its next full search. If not, a
    generation ends on the model that it began with. That is also the case for minigo
    with ``full_probability`` 1, and for games in Python that several processes
    play."""
    num_slots: int = bounded(16, 1, MAX_SLOTS, "8 to 64 suits a CPU")
    """Games that one thread plays at once, 1 to 4096. This is the most rows of a batch;
    with minigo a batch has up to ``search.minigo_virtual_losses`` times as many. On
    devices the number is raised until three of their largest batches are under way."""
    cache_mib: int = bounded(64, 0, _MAX_CACHE_MIB, "0 is no cache")
    """Memory of each thread for evaluations already made, in MiB; 0 for no cache."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
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
        """Refuses a setting that the search's policy does not read."""
        policy = self.search.policy
        unread = _NOT_OF_MINIGO if self.search.has_own_worker else _OF_MINIGO
        for field_ in fields(self):
            if field_.name not in unread:
                continue
            value, default = getattr(self, field_.name), field_.default
            rule = (
                f"must stay {default} where search.policy is {policy}, which does not "
                f"read it; leave it out"
            )
            check(value == default, field_.name, value, rule)

    @property
    def follows_models(self) -> bool:
        """Whether games in flight change to a model that is published meanwhile.

        This is ``switch_models``, except for minigo where every ply is a full one: such
        games keep their tree from ply to ply, and so have no ply to change at.
        """
        keeps_trees = self.search.has_own_worker and self.full_probability == 1
        return self.switch_models and not keeps_trees

    def to_native(self) -> _core.SelfplaySettings:
        """Returns the same settings for the core; a fresh object."""
        return fill_native(
            self,
            _core.SelfplaySettings(),
            search=self.search.to_native(),
            cache_bytes=self.cache_mib << 20,
        )


@dataclass(frozen=True, kw_only=True)
class BootstrapConfig:
    """How games are played by model 0 where it is random; later models play as usual.

    The policy targets of these games are not pruned.

    Source: MLPerf training v2.1, reinforcement learning (minigo), ``bootstrap.flags``.
    """

    simulations: int = bounded(80, 1, MAX_SIMULATIONS)
    """Simulations at every ply, at least 1; there are no fast plies."""
    resign_from: float = bounded(0.99, 0, 1)
    """In place of ``actor.resign_from`` for these games, in [0, 1]; 1 for never."""
    may_pass: bool = False
    """In place of ``actor.may_pass`` for these games."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    def played(self, actor: SelfplayConfig) -> SelfplayConfig:
        """Returns how the first model's games are played.

        Args:
            actor: How the games of later models are played.
        """
        return dataclasses.replace(
            actor,
            full_simulations=self.simulations,
            full_probability=1.0,
            resign_from=self.resign_from,
            may_pass=self.may_pass,
            prunes_target=False,
            # All games of this generation are played by the random model.
            switch_models=False,
        )
