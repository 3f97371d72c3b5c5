"""AlphaZero: a network learns from self-play games, whose moves tree search chooses.

Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters
chess, shogi, and Go through self-play". The methods of KataGo and Gumbel AlphaZero are
settings of the search, self-play, the losses and the network.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, Self

from tengen import games
from tengen.actors import BootstrapConfig, SelfplayConfig
from tengen.agents.agent import Agent
from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.agents.bases.stages import NetStage, growing_stages
from tengen.bounds import bounded, check_fields
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.evaluation import (
    AcceptAllGate,
    GateConfig,
    LadderConfig,
    PlayedGate,
    TargetConfig,
)
from tengen.experience import ExperienceConfig, GenerationsConfig, WindowConfig
from tengen.games import Game, GoVariety
from tengen.inference import search_outputs
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig, board_of
from tengen.search import PlayConfig, SearchConfig
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.nets import Net

# Number of random games for estimating the mean length of a game in plies.
_PLIES_GAMES = 4


@dataclass(frozen=True, kw_only=True)
class AlphaZero(Agent):
    """Settings of AlphaZero, including those of self-play, gate and ratings."""

    kind: Literal["alphazero"] = "alphazero"
    """The agent's name, as in ``--agent``."""
    actor: SelfplayConfig = field(default_factory=SelfplayConfig)
    """Settings of self-play."""
    bootstrap: BootstrapConfig | None = None
    """Settings of self-play for the first model, whose weights are random; None: the
    same as for later models."""
    iterations: int = bounded(0, 0, 1_000_000)
    """Training ends after this many models, not counting the initial model, even if
    budget remains; 0: only the budget ends training."""
    loss: AlphaZeroLossConfig = field(default_factory=AlphaZeroLossConfig)
    """The losses and their weights."""
    stages: tuple[NetStage, ...] = ()
    """Larger networks that the run's network grows into, in order; empty: the network
    never grows."""
    learn_from: str = ""
    """Another RUN whose games this run learns from, while the other run plays them.
    This run then has no self-play of its own, so several networks can learn from one
    run's games. Empty: the run learns from its own games."""
    book: str = ""
    """FILE of an opening book, created with ``tengen book``, for self-play
    (``actor.book_share``), ratings and gates (``rating.book``, ``gate.book``). The run
    stores a copy, and this setting becomes the first 12 digits of the copy's
    SHA-256."""
    gate: GateConfig = field(default_factory=AcceptAllGate)
    """The gate, which decides which candidates become models."""
    rating: LadderConfig = field(default_factory=LadderConfig)
    """Settings of ratings during training."""
    target: TargetConfig = field(default_factory=TargetConfig)
    """The fixed player against which all models play, in order, when training ends."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """Settings of play in ratings, gates and matches, and against people."""

    fixed: ClassVar[tuple[str, ...]] = ("stages", "learn_from")

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``."""
        return "" if games.is_game(task) else "it needs a game"

    def check(
        self, net: NetConfig, store: ExperienceConfig, learner: LearnerConfig
    ) -> None:
        """See ``Agent.check``; also checks that the store can provide a batch."""
        _check_store(store, learner.batch_size)
        self._check_book()
        check(
            self.bootstrap is None or self.actor.search.has_own_worker,
            "agent.bootstrap",
            "given",
            "needs agent.actor.search.policy=minigo; leave it out",
        )
        check(
            self.iterations > 0 or not self.target.opponent,
            "agent.iterations",
            self.iterations,
            "must be at least 1 with agent.target.opponent, whom the models play when "
            "all are trained; set it",
        )
        for index, pair in enumerate(itertools.pairwise(self.nets(net))):
            try:
                pair[0].check_grows(pair[1])
            except UsageError as error:
                raise UsageError(
                    f"agent.stages[{index}].net.{error}, or set agent.stages=[]"
                ) from None

    def check_task(
        self,
        task: str,
        net: NetConfig,
        store: ExperienceConfig,
        learner: LearnerConfig,
    ) -> None:
        """See ``Agent.check_task``.

        Raises:
            UsageError: A match would begin with more random plies than a game has. The
                network does not mask smaller boards, or does not predict a score or
                lead that the config uses. Or the config estimates leads in a game
                without komi.
        """
        game = games.open_game(task)
        board = board_of(game)
        self.check_boards(net, task, game, self.actor.variety)
        for one in self.nets(net):
            one.signature(board.signature)
            check(
                isinstance(store, WindowConfig) or not one.targets(board),
                "net.auxiliary",
                True,
                "must be false with store.kind=generations, whose rows have no "
                "auxiliary targets; leave it out",
            )
            has_scores = "score" in one.targets(board)
            self.actor.search.check_scores(has_scores)
            self.play.search.check_scores(has_scores)
        for part in (self.actor, self.play):
            part.search.check_game(games.is_external(game))
        if game.max_score == 0:
            check(
                self.actor.lead_share == 0,
                "agent.actor.lead_share",
                self.actor.lead_share,
                f"must be 0 for {game.name}, which has no komi; leave it out",
            )
        check(
            self.actor.lead_share == 0 or "lead" in net.targets(board),
            "agent.actor.lead_share",
            self.actor.lead_share,
            "needs a network that predicts the lead; set net.auxiliary=true and "
            "net.lead=true",
        )
        openings = {"rating": self.rating.opening_plies}
        if isinstance(self.gate, PlayedGate):
            openings["gate"] = self.gate.opening_plies
        for name, plies in openings.items():
            check_range(f"agent.{name}.opening_plies", plies, 0, game.max_plies - 1)

    @staticmethod
    def check_boards(net: NetConfig, task: str, game: Game, variety: GoVariety) -> None:
        """Checks that a network masks cells beyond the board if board sizes vary.

        Args:
            net: The network's config.
            task: The task that the network learns.
            game: The game of the task.
            variety: The board sizes and rules of the games to train on.

        Raises:
            UsageError: Some boards do not fill the planes, and the network has no mask.
        """
        beyond = [
            name
            for name, _ in games.variants_of(task, variety)
            if name and not game.new_state(name).observation()[0].all()
        ]
        if beyond:
            check(
                net.mixed_sizes,
                "net.mixed_sizes",
                False,
                f"must be true if games are played on smaller boards ({beyond[0]}); "
                "set it",
            )

    def signature(self, task: str) -> Signature:
        """See ``Agent.signature``."""
        return board_of(games.open_game(task)).signature

    def make_update(
        self, task: str, net: Net, store: ExperienceConfig
    ) -> AlphaZeroUpdate:
        """See ``Agent.make_update``."""
        return AlphaZeroUpdate(self.loss)

    def outputs(self) -> Sequence[str]:
        """Returns the names of the network outputs that self-play needs."""
        return search_outputs(scores=self.actor.search.score_weight > 0)

    def evaluations_per_model(self, task: str) -> float:
        """Returns the approximate number of positions that one model evaluates.

        The estimate assumes that games are as long as random games. Callers use it to
        decide whether work per model, such as quantising, is worth its cost.
        """
        actor = self.actor
        share = actor.full_probability
        simulations = (
            share * actor.full_simulations + (1 - share) * actor.cheap_simulations
        )
        num_plies = games.mean_random_plies(games.open_game(task), _PLIES_GAMES, 0)
        return actor.games_per_generation * num_plies * simulations

    def generation_sizes(self) -> dict[str, int]:
        """Returns settings of ``actor`` that may be adapted to the machine's speed.

        Empty if the size of a generation is fixed.
        """
        # ``iterations`` is for MLPerf's minigo benchmark, whose rules fix the sizes.
        if self.learn_from or self.iterations:
            return {}
        actor = self.actor
        return {
            "games_per_generation": actor.games_per_generation,
            "num_slots": actor.num_slots,
        }

    def with_generation_sizes(self, sizes: Mapping[str, int]) -> Self:
        """Returns a copy of the agent with new generation sizes.

        Args:
            sizes: Values for the keys of ``generation_sizes``; other keys are ignored.
        """
        actor = dataclasses.replace(
            self.actor,
            games_per_generation=sizes["games_per_generation"],
            num_slots=sizes["num_slots"],
        )
        return dataclasses.replace(self, actor=actor)

    def play_against_target(self) -> PlayConfig:
        """Returns the settings with which models play against the target.

        With the search policy minigo, models search as in self-play, but without root
        noise. Otherwise the settings are ``play``.
        """
        search = self.actor.search
        if not search.has_own_worker:
            return self.play
        usual = SearchConfig()
        quiet = dataclasses.replace(
            search, **{name: getattr(usual, name) for name in search.exploring()}
        )
        return PlayConfig(search=quiet, precision=self.play.precision)

    def nets(self, net: NetConfig) -> tuple[NetConfig, ...]:
        """Returns the configs of the initial network and of each stage's network."""
        return (net, *(net.grown(stage.net) for stage in self.stages))

    def growing_from(self, net: NetConfig) -> Self:
        """Returns a copy of the agent with only the stages ``net`` can grow into."""
        return dataclasses.replace(self, stages=growing_stages(self.stages, net))

    def _check_book(self) -> None:
        uses = {
            "actor.book_share": self.actor.book_share,
            "rating.book": self.rating.book,
            "gate.book": isinstance(self.gate, PlayedGate) and self.gate.book,
        }
        for name, value in uses.items():
            rule = "needs an opening book; set agent.book to its file"
            check(bool(self.book) or not value, f"agent.{name}", value, rule)
        if self.book and not any(uses.values()):
            raise UsageError(
                f"agent.book ({self.book}) is not used; set agent.actor.book_share, "
                "agent.rating.book or agent.gate.book"
            )


def _check_store(store: ExperienceConfig, batch_size: int) -> None:
    """Checks that ``store`` is for games and can provide a batch.

    Raises:
        UsageError: The store is not for games, or cannot provide ``batch_size`` rows.
    """
    check(
        isinstance(store, WindowConfig | GenerationsConfig),
        "store.kind",
        store.kind,
        "must be window or generations with agent alphazero; leave it out",
    )
    if not isinstance(store, WindowConfig):
        return
    most = store.limiter.max_samples
    check(
        batch_size <= most,
        "learner.batch_size",
        batch_size,
        f"must be at most store.limiter.max_samples, {most:g}; lower it",
    )
    check(
        store.with_replacement or batch_size <= store.min_rows,
        "learner.batch_size",
        batch_size,
        f"must be at most store.min_rows, {store.min_rows}, to sample rows without "
        "replacement; lower it",
    )
