"""AlphaZero: a network learns from games that a tree search plays by that network.

Source: Silver et al. 2018, "A general reinforcement learning algorithm that masters
chess, shogi, and Go through self-play". The methods of KataGo and Gumbel AlphaZero are
settings of the search, of self-play, of the losses and of the network.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from tengen import games
from tengen.actors import BootstrapConfig, SelfplayConfig
from tengen.agents import alphazero_experience
from tengen.agents.agent import Agent, Schedule, StoreWay
from tengen.agents.alphazero_loss import AlphaZeroLossConfig
from tengen.agents.stages import History, NetStage, growing_stages, num_begun
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
from tengen.experience import (
    ExperiencePart,
    GameWindow,
    GenerationWindow,
    ShuffledRows,
    WindowConfig,
)
from tengen.games import Game, GoVariety
from tengen.inference import search_outputs
from tengen.nets import NetConfig, board_of
from tengen.search import PlayConfig, SearchConfig
from tengen.tensors import Signature

if TYPE_CHECKING:
    from tengen.agents.alphazero_update import AlphaZeroUpdate
    from tengen.nets import Net
    from tengen.roles.config import RunConfig
    from tengen.run import RunDirectory
    from tengen.transport import NetDoor

__all__ = ["AlphaZero"]

# Random games that the mean length of a game is estimated from.
_PLIES_GAMES = 4


@dataclass(frozen=True, kw_only=True)
class AlphaZero(Agent):
    """Self-play by tree search; see the module docstring."""

    kind: Literal["alphazero"] = "alphazero"
    """The agent's name, as in ``--agent``."""
    actor: SelfplayConfig = field(default_factory=SelfplayConfig)
    """How games are played."""
    bootstrap: BootstrapConfig | None = None
    """How games are played by the first model, where its weights are random; None: as
    by all later models."""
    iterations: int = bounded(0, 0, 1_000_000)
    """Number of models after the first one at which training ends, whatever the call's
    budget; 0: only the budget ends training."""
    loss: AlphaZeroLossConfig = field(default_factory=AlphaZeroLossConfig)
    """The losses and their weights."""
    stages: tuple[NetStage, ...] = ()
    """Larger networks that the run's network grows into, in order; empty: the network
    never grows."""
    learn_from: str = ""
    """RUN whose games this run learns from while they are played. This run then has no
    self-play, and trains a network of its own, so that several networks can learn from
    one run's games. Empty: the run learns from its own games."""
    book: str = ""
    """FILE of a book of openings, made by ``tengen book``, for self-play
    (``actor.book_share``), ratings and gates (``rating.book``, ``gate.book``). The run
    keeps a copy, and from then on this setting is the first 12 digits of the copy's
    SHA-256."""
    gate: GateConfig = field(default_factory=AcceptAllGate)
    """Which candidates become models."""
    rating: LadderConfig = field(default_factory=LadderConfig)
    """How models are rated during training."""
    target: TargetConfig = field(default_factory=TargetConfig)
    """The fixed player that all models meet, in order, once training has ended."""
    play: PlayConfig = field(default_factory=PlayConfig)
    """How models play in ratings, gates and matches, and against people."""

    keeps_models: ClassVar[bool] = True
    fixed: ClassVar[tuple[str, ...]] = ("stages", "learn_from")

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)

    @staticmethod
    def of(config: RunConfig, role: str) -> AlphaZero:
        """Returns a run's agent, for a role that exists only in self-play runs.

        Raises:
            UsageError: The run has another agent.
        """
        if not isinstance(config.agent, AlphaZero):
            raise UsageError(
                f"role ({role}) is not part of a run of {config.agent.kind}; use "
                f"tengen train, which runs its actor and learner"
            )
        return config.agent

    @classmethod
    def refusal(cls, task: str) -> str:
        """See ``Agent.refusal``."""
        return "" if games.is_game(task) else "it plays games, and this is no game"

    def check(self, config: RunConfig) -> None:
        """See ``Agent.check``."""
        alphazero_experience.check_store(config)
        check(
            config.inference.precision != "int8" or config.net.can_quantise,
            "inference.precision",
            config.inference.precision,
            f"needs convolutions, which net.kind {config.net.kind} has not; use fp32",
        )
        self._check_book()
        check(
            self.bootstrap is None or self.actor.search.policy == "minigo",
            "agent.bootstrap",
            "given",
            "needs agent.actor.search.policy=minigo; leave it out",
        )
        check(
            self.iterations > 0 or not self.target.opponent,
            "agent.iterations",
            self.iterations,
            "must be at least 1 with agent.target.opponent, whom models meet once all "
            "are made; set it",
        )
        for index, pair in enumerate(itertools.pairwise(self.nets(config.net))):
            try:
                pair[0].check_grows(pair[1])
            except UsageError as error:
                raise UsageError(
                    f"agent.stages[{index}].net.{error}, or set agent.stages=[]"
                ) from None

    def check_task(self, config: RunConfig) -> None:
        """See ``Agent.check_task``.

        Raises:
            UsageError: A match would begin with more random plies than a game has; the
                network cannot tell smaller boards, or does not predict the score or
                the lead that the config uses; or leads are estimated in a game without
                komi.
        """
        game = games.open_game(config.task)
        board = board_of(game)
        self.check_boards(config.net, config.task, game, self.actor.variety)
        for net in self.nets(config.net):
            net.signature(board.signature)
            check(
                isinstance(config.store, WindowConfig) or not net.targets(board),
                "net.auxiliary",
                True,
                "must be false with store.kind generations, whose rows have no such "
                "targets; leave it out",
            )
            has_scores = "score" in net.targets(board)
            self.actor.search.check_scores(has_scores)
            self.play.search.check_scores(has_scores)
        for part in (self.actor, self.play):
            part.search.check_game(games.is_external(game))
        if game.max_score == 0:
            check(
                self.actor.lead_share == 0,
                "agent.actor.lead_share",
                self.actor.lead_share,
                f"must be 0 in {game.name}, which has no komi; leave it out",
            )
        check(
            self.actor.lead_share == 0 or "lead" in config.net.targets(board),
            "agent.actor.lead_share",
            self.actor.lead_share,
            "needs a network that learns the lead; set net.auxiliary and net.lead",
        )
        openings = {"rating": self.rating.opening_plies}
        if isinstance(self.gate, PlayedGate):
            openings["gate"] = self.gate.opening_plies
        for name, plies in openings.items():
            check_range(f"agent.{name}.opening_plies", plies, 0, game.max_plies - 1)

    @staticmethod
    def check_boards(net: NetConfig, task: str, game: Game, variety: GoVariety) -> None:
        """Checks that a network masks cells off the board, if boards differ in size.

        Args:
            net: The network.
            task: The task that the network learns.
            game: The game of the task.
            variety: The boards and rules of the games that the network learns from.

        Raises:
            UsageError: The network does not mask, and some boards are smaller.
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
                f"must be true where games are played on smaller boards ({beyond[0]}); "
                "set it",
            )

    def signature(self, task: str) -> Signature:
        """See ``Agent.signature``."""
        return board_of(games.open_game(task)).signature

    def schedule(self, config: RunConfig) -> Schedule:
        """See ``Agent.schedule``."""
        return Schedule(
            acting="" if self.learn_from else "selfplay",
            learning=(
                *(("shuffle",) if alphazero_experience.is_shuffled(config) else ()),
                "learn",
                "export",
                "gate",
            ),
            rating="rate" if self.rating.time_share > 0 else "",
            closing="eval" if self.target.opponent else "",
            games_per_turn=self.actor.games_per_generation,
        )

    def open_experience(
        self,
        config: RunConfig,
        run: RunDirectory,
        state: Mapping[str, Any] | None,
        directory: Path | None = None,
        net: NetDoor | None = None,
    ) -> GameWindow | GenerationWindow | ShuffledRows:
        """See ``Agent.open_experience``; any process can read the games' files."""
        return alphazero_experience.open_games(config, run, state)

    def open_part(
        self, config: RunConfig, run: RunDirectory, way: Callable[[], StoreWay]
    ) -> ExperiencePart:
        """See ``Agent.open_part``; any process can read the games' files."""
        return alphazero_experience.open_part(config, run)

    def make_update(self, config: RunConfig, net: Net) -> AlphaZeroUpdate:
        """See ``Agent.make_update``."""
        from tengen.agents.alphazero_update import AlphaZeroUpdate

        return AlphaZeroUpdate(self.loss)

    def outputs(self) -> Sequence[str]:
        """See ``Agent.outputs``: the score only where the search reads it."""
        return search_outputs(scores=self.actor.search.score_weight > 0)

    def sample_inputs(
        self, task: str, num_rows: int, seed: int
    ) -> dict[str, NDArray[np.generic]]:
        """See ``Agent.sample_inputs``: positions of random games."""
        planes = games.random_positions(games.open_game(task), num_rows, seed)
        return {"planes": planes}

    def evaluations_per_model(self, task: str) -> float:
        """See ``Agent.evaluations_per_model``: from the length of random games."""
        actor = self.actor
        share = actor.full_probability
        simulations = (
            share * actor.full_simulations + (1 - share) * actor.cheap_simulations
        )
        num_plies = games.mean_random_plies(games.open_game(task), _PLIES_GAMES, 0)
        return actor.games_per_generation * num_plies * simulations

    def generation_sizes(self) -> dict[str, int]:
        """See ``Agent.generation_sizes``."""
        # The sizes of the minigo benchmark's generations are its rules.
        if self.learn_from or self.iterations:
            return {}
        actor = self.actor
        return {
            "games_per_generation": actor.games_per_generation,
            "num_slots": actor.num_slots,
        }

    def with_generation_sizes(self, sizes: Mapping[str, int]) -> Self:
        """See ``Agent.with_generation_sizes``."""
        actor = dataclasses.replace(
            self.actor,
            games_per_generation=sizes["games_per_generation"],
            num_slots=sizes["num_slots"],
        )
        return dataclasses.replace(self, actor=actor)

    def point_utility(self, num_points: int) -> float:
        """See ``Agent.point_utility``."""
        return self.actor.search.point_utility(num_points)

    def play_against_target(self) -> PlayConfig:
        """Returns how models search against the target.

        Where self-play is the minigo benchmark's, models search as in self-play but
        without root noise; otherwise as ``play`` says.
        """
        search = self.actor.search
        if search.policy != "minigo":
            return self.play
        usual = SearchConfig()
        quiet = dataclasses.replace(
            search,
            noise_weight=usual.noise_weight,
            minigo_noise_alpha=usual.minigo_noise_alpha,
        )
        return PlayConfig(search=quiet, precision=self.play.precision)

    def nets(self, net: NetConfig) -> tuple[NetConfig, ...]:
        """See ``Agent.nets``: the first network, and that of each stage."""
        return (net, *(net.grown(stage.net) for stage in self.stages))

    def num_stages_begun(self, history: History) -> int:
        """See ``Agent.num_stages_begun``."""
        return num_begun(self.stages, history)

    def without_stages(self) -> Self:
        """See ``Agent.without_stages``."""
        return dataclasses.replace(self, stages=())

    def growing_from(self, net: NetConfig) -> Self:
        """See ``Agent.growing_from``."""
        return dataclasses.replace(self, stages=growing_stages(self.stages, net))

    def growing_as(self, recipe: Agent, net: NetConfig) -> Self:
        """See ``Agent.growing_as``."""
        if not isinstance(recipe, AlphaZero):
            return self
        theirs = recipe.growing_from(net).stages
        own = [stage.net for stage in self.stages]
        if own != [stage.net for stage in theirs[: len(own)]]:
            return self
        return dataclasses.replace(self, stages=theirs)

    def _check_book(self) -> None:
        uses = {
            "actor.book_share": self.actor.book_share,
            "rating.book": self.rating.book,
            "gate.book": isinstance(self.gate, PlayedGate) and self.gate.book,
        }
        for name, value in uses.items():
            rule = "needs a book; set agent.book to the file of one"
            check(bool(self.book) or not value, f"agent.{name}", value, rule)
        if self.book and not any(uses.values()):
            raise UsageError(
                f"agent.book ({self.book}) must be for something; set "
                f"agent.actor.book_share, agent.rating.book or agent.gate.book"
            )
