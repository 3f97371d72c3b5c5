"""How self-play games are played."""

from __future__ import annotations

from dataclasses import dataclass, field

from tengen import _core
from tengen.config import check, check_range, fill_native
from tengen.games import GoVariety
from tengen.search import MAX_SIMULATIONS, SearchConfig

__all__ = ["MAX_SLOTS", "SelfplayConfig"]

MAX_SLOTS = 4096
"""Most games at once on one thread."""

_MAX_GAMES = 10_000_000
_MAX_PLIES = 65_535
_MAX_CACHE_MIB = 1 << 20


@dataclass(frozen=True, kw_only=True)
class SelfplayConfig:
    """How self-play games are played.

    Methods of KataGo's that are off by default were not shown to pay at small scale:
    the table in docs/go.md.
    """

    games_per_generation: int = 128
    """Games on one model before the learner's turn, at least 1."""
    search: SearchConfig = field(default_factory=SearchConfig)
    """The search at every ply."""
    full_simulations: int = 64
    """Simulations of a full search, whose policy is a training target; at least 1."""
    cheap_simulations: int = 16
    """Simulations of a cheap search, which only moves the game on; at least 1.
    Source: Wu 2019, "Accelerating self-play learning in Go", section 3.1."""
    full_probability: float = 1.0
    """Share of plies with a full search, in (0, 1]."""
    temperature_early: float = 1.0
    """Temperature of the move choice at the first ply, at least 0. A full Gumbel
    search plays the action that it drew, whatever the temperatures are."""
    temperature_late: float = 0.1
    """Temperature that it falls to, at least 0; below 0.01 the best move is played."""
    temperature_halflife: float = 10.0
    """Plies over which the difference of the two halves, positive."""
    variety: GoVariety = field(default_factory=GoVariety)
    """Games of Go on other boards and by other rules; the task's alone by default."""
    max_opening_plies: int = 0
    """A game starts with a uniform number, 0 to this, of uniform random moves."""
    policy_opening_plies: float = 0.0
    """After those, moves drawn from the bare policy: an exponentially distributed
    number with this mean, at least 0, 0 for none (KataGo's is 0.04 times the points
    of the board)."""
    policy_opening_temperature: float = 1.0
    """Temperature of those draws, above 0 (KataGo's 1)."""
    early_fork_share: float = 0.0
    """Share of the games that begin near the first move of a game of the generation
    before, with the best of some random moves there, as the network sees it, 0 to 1
    (KataGo's 0.04)."""
    early_fork_plies: float = 2.0
    """Mean of the exponential number of plies that they keep, at least 0 (KataGo's is
    0.025 times the points of the board)."""
    early_fork_choices: int = 12
    """Moves that they choose from: a uniform number, 3 to this."""
    late_fork_share: float = 0.0
    """Share of the games that begin so anywhere in one of those games, evenly, 0 to 1;
    both shares together are at most 1 (KataGo's 0.01)."""
    late_fork_choices: int = 36
    """Moves that these choose from: a uniform number, 3 to this."""
    reduce_above: float = 1.0
    """Where the last 3 searches agree on who wins by values beyond this, full searches
    shrink, to cheap ones at certainty; 0 up to 1, 1 for never (KataGo's 0.9)."""
    reduced_weight: float = 0.1
    """Weight of a row whose search shrank all the way, above 0, at most 1 (KataGo's
    0.1)."""
    resign_above: float = 1.0
    """Where the last 5 searches agree on who wins by values beyond this, the game ends
    so; 0 up to 1, 1 for never. It waits until the games played on show that it is
    safe, see ``resign_max_false_share``."""
    resign_playout_share: float = 0.1
    """Share of games that are played on all the same, to measure that, above 0, at
    most 1 (AlphaGo Zero's 0.1)."""
    resign_max_false_share: float = 0.05
    """Games may be resigned while at most this share of the decided games that were
    played on ended otherwise; 0 up to 1 (AlphaGo Zero's 0.05)."""
    settled_playout_share: float = 0.02
    """Share of games of Go that are played on though every point is pass-alive; the
    others end there. 0 up to 1, 1 for never ending early (KataGo's 0.02)."""
    policy_surprise_share: float = 0.0
    """Share of the weight of a game's rows that follows how far the search moved the
    policy; a cheap search that moved it far becomes a row. 0 for none (KataGo's 0.5).
    """
    value_surprise_share: float = 0.0
    """Share of that weight that follows how far the game moved the value from the
    network's; 0 for none (KataGo's 0.1). Both shares together are at most 1."""
    lead_share: float = 0.0
    """Share of the plies with a full search for which a few small searches with other
    komi estimate the lead, the points that the side to move could give away until the
    position is even; 0 to 1, 0 for none, in games with komi (KataGo's 0.05).
    ``net.lead`` learns it."""
    lead_simulations: int = 6
    """Simulations of each of those searches, at least 1 (KataGo's 6)."""
    reuse_tree: bool = True
    """Whether a cheap search starts from the subtree that the last search left."""
    snapshot_s: float = 60.0
    """Seconds between copies of the games in flight on the disk, positive: a restart
    goes on with them. Games in Python begin again."""
    switch_models: bool = True
    """Whether a generation goes on with a model that is published meanwhile, where a
    role plays by itself: each game from its next full search on. With False it ends on
    the model that it began on. Games in Python end on theirs where several processes
    play them."""
    num_slots: int = 16
    """Games at once on one thread: the most rows of one batch; 1 to 4096. On devices at
    least so many that three of their largest batches can be under way."""
    cache_mib: int = 64
    """Memory for evaluations already made, in MiB a thread; 0 for none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        games = self.games_per_generation
        check_range("games_per_generation", games, 1, _MAX_GAMES)
        for name in ("full_simulations", "cheap_simulations", "lead_simulations"):
            check_range(name, getattr(self, name), 1, MAX_SIMULATIONS)
        for name in (
            "temperature_early",
            "temperature_late",
            "policy_opening_plies",
            "early_fork_plies",
            "policy_surprise_share",
            "value_surprise_share",
        ):
            value = getattr(self, name)
            check(value >= 0, name, value, "must be at least 0; raise it")
        check_range("max_opening_plies", self.max_opening_plies, 0, _MAX_PLIES)
        check_range("cache_mib", self.cache_mib, 0, _MAX_CACHE_MIB, "0 is no cache")
        for name in (
            "early_fork_share",
            "late_fork_share",
            "reduce_above",
            "resign_above",
            "resign_max_false_share",
            "settled_playout_share",
            "lead_share",
        ):
            value = getattr(self, name)
            check(0 <= value <= 1, name, value, "must be 0 to 1; change it")
        for name in ("reduced_weight", "resign_playout_share"):
            value = getattr(self, name)
            check(0 < value <= 1, name, value, "must be in (0, 1]; change it")
        for name in ("early_fork_choices", "late_fork_choices"):
            check_range(name, getattr(self, name), 3, _MAX_PLIES)
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
        check(
            self.policy_opening_temperature > 0,
            "policy_opening_temperature",
            self.policy_opening_temperature,
            "must be above 0; use 1 for the policy as it is",
        )
        check(
            self.snapshot_s > 0,
            "snapshot_s",
            self.snapshot_s,
            "must be positive; use 60",
        )
        check(
            0 < self.full_probability <= 1,
            "full_probability",
            self.full_probability,
            "must be in (0, 1]; use 1 for a full search at every ply",
        )
        check(
            self.temperature_halflife > 0,
            "temperature_halflife",
            self.temperature_halflife,
            "must be positive; raise it",
        )
        check_range("num_slots", self.num_slots, 1, MAX_SLOTS, "8 to 64 suits a CPU")

    def to_native(self) -> _core.SelfplaySettings:
        """Returns the same settings for the core; a fresh object."""
        return fill_native(
            self,
            _core.SelfplaySettings(),
            search=self.search.to_native(),
            cache_bytes=self.cache_mib << 20,
        )
