"""How self-play games are played."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from tengen import _core
from tengen.bounds import bounded, check_fields
from tengen.config import check, fill_native
from tengen.games import GoVariety
from tengen.search import MAX_SIMULATIONS, SearchConfig

__all__ = ["MAX_SLOTS", "SelfplayConfig"]

MAX_SLOTS = 4096
"""Most games at once on one thread."""

_MAX_GAMES = 10_000_000
_MAX_PLIES = 65_535
_MAX_CACHE_MIB = 1 << 20
# Fields that a search by minigo does not read, and those that no other does.
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

    Methods of KataGo's that are off by default were not shown to pay at small scale:
    the table in docs/howto/train/go.md.

    With ``search.policy=minigo`` self-play is that of the MLPerf benchmark minigo
    (core/selfplay/workers/minigo_worker.h): the tree is kept from ply to ply; a cheap
    search, a fast ply, makes its simulations beside the visits that are left; where a
    game has cheap searches, a full one begins without a tree, and makes a simulation
    more for each visit that its root had; the first ply of a game is searched in full.
    Fields that say ``Minigo`` are for it alone, and it reads neither temperatures nor
    policy openings, forks, decided games, surprise, leads and ``reuse_tree``: each
    keeps its default where it is not read.
    """

    games_per_generation: int = bounded(128, 1, _MAX_GAMES)
    """Games on one model before the learner's turn, at least 1."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The search at every ply."""
    full_simulations: int = bounded(64, 1, MAX_SIMULATIONS)
    """Simulations of a full search, whose policy is a training target; at least 1."""
    cheap_simulations: int = bounded(16, 1, MAX_SIMULATIONS)
    """Simulations of a cheap search, which only moves the game on; at least 1.
    Source: Wu 2019, "Accelerating self-play learning in Go", section 3.1."""
    full_probability: float = bounded(
        1.0, 0, 1, "use 1 for a full search at every ply", above=True
    )
    """Share of plies with a full search, in (0, 1]."""
    temperature_early: float = bounded(1.0, 0, hint="raise it")
    """Temperature of the move choice at the first ply, at least 0. A full Gumbel
    search plays the action that it drew, whatever the temperatures are."""
    temperature_late: float = bounded(0.1, 0, hint="raise it")
    """Temperature that it falls to, at least 0; below 0.01 the best move is played."""
    temperature_halflife: float = bounded(
        10.0, 0, above=True, rule="must be positive; raise it"
    )
    """Plies over which the difference of the two halves, positive."""
    variety: GoVariety = field(default_factory=GoVariety)
    """Games of Go on other boards and by other rules; the task's alone by default."""
    book_share: float = bounded(0.0, 0, 1)
    """Share of the games that begin with an opening of ``agent.book``, in [0, 1]; the
    others as the next fields say. A book is of the task itself, not of a variety."""
    max_opening_plies: int = bounded(0, 0, _MAX_PLIES)
    """A game starts with a uniform number, 0 to this, of uniform random moves, so that
    one of so many and one more begins on the empty board."""
    policy_opening_plies: float = bounded(0.0, 0, hint="raise it")
    """After those, moves drawn from the bare policy: an exponentially distributed
    number with this mean, at least 0, 0 for none (KataGo's is 0.04 times the points
    of the board)."""
    policy_opening_temperature: float = bounded(
        1.0, 0, above=True, hint="use 1 for the policy as it is"
    )
    """Temperature of those draws, above 0 (KataGo's 1)."""
    early_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that begin near the first move of a game of the generation
    before, with the best of some random moves there, as the network sees it, 0 to 1
    (KataGo's 0.04)."""
    early_fork_plies: float = bounded(2.0, 0, hint="raise it")
    """Mean of the exponential number of plies that they keep, at least 0 (KataGo's is
    0.025 times the points of the board)."""
    early_fork_choices: int = bounded(12, 3, _MAX_PLIES)
    """Moves that they choose from: a uniform number, 3 to this."""
    late_fork_share: float = bounded(0.0, 0, 1)
    """Share of the games that begin so anywhere in one of those games, evenly, 0 to 1;
    both shares together are at most 1 (KataGo's 0.01)."""
    late_fork_choices: int = bounded(36, 3, _MAX_PLIES)
    """Moves that these choose from: a uniform number, 3 to this."""
    reduce_above: float = bounded(1.0, 0, 1)
    """Where the last 3 searches agree on who wins by values beyond this, full searches
    shrink, to cheap ones at certainty; 0 up to 1, 1 for never (KataGo's 0.9)."""
    reduced_weight: float = bounded(0.1, 0, 1, above=True)
    """Weight of a row whose search shrank all the way, above 0, at most 1 (KataGo's
    0.1)."""
    resign_above: float = bounded(1.0, 0, 1)
    """Where the last 5 searches agree on who wins by values beyond this, the game ends
    so; 0 up to 1, 1 for never. It waits until the games played on show that it is
    safe, see ``resign_max_false_share``."""
    resign_playout_share: float = bounded(0.1, 0, 1, above=True)
    """Share of games that are played on all the same, to measure that, above 0, at
    most 1 (AlphaGo Zero's 0.1)."""
    resign_max_false_share: float = bounded(0.05, 0, 1)
    """Games may be resigned while at most this share of the decided games that were
    played on ended otherwise; 0 up to 1 (AlphaGo Zero's 0.05)."""
    settled_playout_share: float = bounded(0.02, 0, 1)
    """Share of games of Go that are played on though every point is pass-alive; the
    others end there. 0 up to 1, 1 for never ending early (KataGo's 0.02)."""
    policy_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of the weight of a game's rows that follows how far the search moved the
    policy; a cheap search that moved it far becomes a row. 0 for none (KataGo's 0.5).
    """
    value_surprise_share: float = bounded(0.0, 0, hint="raise it")
    """Share of that weight that follows how far the game moved the value from the
    network's; 0 for none (KataGo's 0.1). Both shares together are at most 1."""
    lead_share: float = bounded(0.0, 0, 1)
    """Share of the plies with a full search for which a few small searches with other
    komi estimate the lead, the points that the side to move could give away until the
    position is even; 0 to 1, 0 for none, in games with komi (KataGo's 0.05).
    ``net.lead`` learns it."""
    lead_simulations: int = bounded(6, 1, MAX_SIMULATIONS)
    """Simulations of each of those searches, at least 1 (KataGo's 6)."""
    soft_pick_plies: int = bounded(30, 0, _MAX_PLIES)
    """Minigo: first plies of a game at which the move is drawn by visits, and never a
    pass; 0 to 65535 (the benchmark's is points / 12, made even: 30 on 19x19)."""
    soft_pick_exponent: float = bounded(0.98, 0, 100, "the benchmark's is 0.98")
    """Minigo: power of the visits in those draws, and in the targets of those plies, 0
    to 100 (the benchmark's 0.98)."""
    restrict_pass_alive_after: int = bounded(4, 0, _MAX_PLIES)
    """Minigo: once a side has passed so often in a row, the other does not play on
    pass-alive points of Go from then on, but for the plies that are drawn, and learns
    nothing of them; 0 to 65535, 0 for always (the benchmark's 4)."""
    resign_from: float = bounded(0.9, 0, 1, "1 is never")
    """Minigo: a side resigns whose root is worth less than -t, where each game draws
    its t evenly from this, which is out of it, to 1; 0 to 1, 1 for never (the
    benchmark's 0.9). No game is played on to measure how often that is wrong."""
    may_pass: bool = True
    """Minigo: whether a side may pass where another move is legal. A random network
    would, and games would end before they began: the benchmark's bootstrap has false.
    The pass keeps its prior and its part of the noise.
    """
    prunes_target: bool = True
    """Minigo: whether the policy target of a full ply loses the visits that only noise
    made, and those on pass-alive points that are not played; else it has every visit
    (the benchmark's bootstrap has false)."""
    reuse_tree: bool = True
    """Whether a cheap search starts from the subtree that the last search left."""
    snapshot_s: float = bounded(60.0, 0, above=True, rule="must be positive; use 60")
    """Seconds between copies of the games in flight on the disk, positive: a restart
    goes on with them. Games in Python begin again."""
    switch_models: bool = True
    """Whether a generation goes on with a model that is published meanwhile, where a
    role plays by itself: each game from its next full search on. With False it ends on
    the model that it began on, and by minigo where ``full_probability`` is 1. Games in
    Python end on theirs where several processes play them."""
    num_slots: int = bounded(16, 1, MAX_SLOTS, "8 to 64 suits a CPU")
    """Games at once on one thread: the most rows of one batch, or with minigo so many
    times ``search.minigo_virtual_losses``; 1 to 4096. On devices at least so many that
    three of their largest batches can be under way."""
    cache_mib: int = bounded(64, 0, _MAX_CACHE_MIB, "0 is no cache")
    """Memory for evaluations already made, in MiB a thread; 0 for none."""

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
        """Refuses a setting that would do nothing with the search's policy."""
        policy = self.search.policy
        unread = _NOT_OF_MINIGO if policy == "minigo" else _OF_MINIGO
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
        """Whether a generation goes on with a model that is published meanwhile.

        As ``switch_models`` says, where games can be gone on with: by minigo they can
        at a full ply, but not where every ply is one and keeps the tree.
        """
        keeps_trees = self.search.policy == "minigo" and self.full_probability == 1
        return self.switch_models and not keeps_trees

    def to_native(self) -> _core.SelfplaySettings:
        """Returns the same settings for the core; a fresh object."""
        return fill_native(
            self,
            _core.SelfplaySettings(),
            search=self.search.to_native(),
            cache_bytes=self.cache_mib << 20,
        )
