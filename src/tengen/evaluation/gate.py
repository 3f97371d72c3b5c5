"""The gate: decides whether a candidate model becomes the model that plays.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge",
"Evaluator" (a match with a threshold of 55 %). Differs from the paper: by default every
candidate is accepted, as in Silver et al. 2018, "A general reinforcement learning
algorithm ...", which has no gate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tengen.bounds import bounded, check_fields
from tengen.config import check, check_literals
from tengen.evaluation.elo import (
    PairedTally,
    Tally,
    expected_score,
    log_likelihood_ratio,
    sprt_bounds,
)
from tengen.evaluation.match import MAX_GAMES, check_moves, play_match, stopped_by
from tengen.evaluation.played_game import PlayedGame
from tengen.evaluation.players import ModelPlayer
from tengen.games import Book, Game

# Maximum Elo difference of a hypothesis, at which the weaker side hardly ever wins.
_MAX_ELO = 1000.0


@dataclass(frozen=True, kw_only=True)
class AcceptAllGate:
    """A gate that accepts every candidate without a match."""

    kind: Literal["accept_all"] = "accept_all"
    """The value of ``agent.gate.kind`` that selects this gate."""

    def __post_init__(self) -> None:
        """Raises UsageError if the kind is not ``accept_all``."""
        check_literals(self)


@dataclass(frozen=True, kw_only=True)
class PlayedGate:
    """Settings of a gate that plays a match of the candidate against the current model.

    Both models use the run's play settings, ``agent.play``.
    """

    num_simulations: int = 64
    """Simulations per move, at least 1 (150 in KataGo)."""
    opening_plies: int = 2
    """Number of random plies at the start of each game."""
    book: bool = False
    """Whether games start with an opening of ``agent.book`` before random plies."""
    matches_kept: int = bounded(20, 0, MAX_GAMES)
    """Number of recent matches whose games are stored in ``RUN/games/gate``; 0 for
    none."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is out of its range."""
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)


@dataclass(frozen=True, kw_only=True)
class MatchGate(PlayedGate):
    """A gate that requires a minimum score in a match against the current model."""

    kind: Literal["match"] = "match"
    """The value of ``agent.gate.kind`` that selects this gate."""
    num_games: int = bounded(100, 2, MAX_GAMES)
    """Maximum number of games per match, at least 2, so that each side can move first
    (200 in KataGo). The match ends once no remaining game can change the verdict."""
    min_score: float = bounded(
        0.5,
        0,
        1,
        above=True,
        rule="must be above 0 and at most 1; use 0.5, or kind accept_all",
    )
    """Minimum mean score per game of an accepted candidate, in (0, 1]."""

    @property
    def max_games(self) -> int:
        """Maximum number of games in the gate's match."""
        return self.num_games


@dataclass(frozen=True, kw_only=True)
class SprtGate(PlayedGate):
    """A gate that decides with a sequential test (SPRT) of ``elo1`` against ``elo0``.

    ``elo0`` and ``elo1`` are Elo differences between the candidate and the current
    model. A candidate that is exactly ``elo0`` stronger passes with probability
    ``alpha``, and a candidate that is exactly ``elo1`` stronger fails with probability
    ``beta``, unless ``max_games`` ends the match first.
    """

    kind: Literal["sprt"] = "sprt"
    """The value of ``agent.gate.kind`` that selects this gate."""
    elo0: float = bounded(-35.0, -_MAX_ELO, _MAX_ELO)
    """Elo difference at which a candidate should fail, from -1000 to below ``elo1``."""
    elo1: float = bounded(35.0, -_MAX_ELO, _MAX_ELO)
    """Elo difference at which a candidate should pass, from above ``elo0`` to 1000."""
    alpha: float = bounded(
        0.05,
        0,
        0.5,
        above=True,
        below=True,
        rule="must be above 0 and below 0.5; use 0.05",
    )
    """Probability that a candidate of strength ``elo0`` passes, in (0, 0.5)."""
    beta: float = bounded(
        0.05,
        0,
        0.5,
        above=True,
        below=True,
        rule="must be above 0 and below 0.5; use 0.05",
    )
    """Probability that a candidate of strength ``elo1`` fails, in (0, 0.5)."""
    max_games: int = bounded(200, 2, MAX_GAMES)
    """Maximum number of games, even. If the test is still undecided after them, the
    candidate passes if its score is at least ``min_score``."""

    def __post_init__(self) -> None:
        """Raises UsageError if a field is invalid or conflicts with another."""
        super().__post_init__()
        check(
            self.elo0 < self.elo1,
            "elo1",
            self.elo1,
            f"must be above elo0, {self.elo0:g}; raise it",
        )
        check(
            self.max_games % 2 == 0,
            "max_games",
            self.max_games,
            "must be even, because games are played in pairs; add one",
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios (lower: fail, upper: pass) that end the test."""
        return sprt_bounds(self.alpha, self.beta)

    @property
    def min_score(self) -> float:
        """Minimum score to pass if ``max_games`` games leave the test undecided."""
        return 0.5 * (expected_score(self.elo0) + expected_score(self.elo1))


GateConfig: TypeAlias = AcceptAllGate | MatchGate | SprtGate


@dataclass(frozen=True)
class GateResults:
    """The candidate's results so far in the gate's match."""

    gate: MatchGate | SprtGate
    """The settings of the gate that plays the match."""
    counted: PairedTally = field(default_factory=PairedTally)
    """Results of the games in order of index, up to the game that decides the match."""

    @property
    def llr(self) -> float | None:
        """The log-likelihood ratio of the counted pairs; None for a ``MatchGate``."""
        if not isinstance(self.gate, SprtGate):
            return None
        return _ratio(self.gate, self.counted)

    def to_json(self) -> dict[str, Any]:
        """Returns the gate's report as JSON values.

        The keys are ``match`` (games won, drawn and lost by the candidate), ``pairs``
        (numbers of pairs with 0, 1/2, 1, 3/2 and 2 points), ``elo`` (with its 95 %
        confidence interval, see ``Tally``), ``llr`` (of an ``SprtGate``, with its
        bounds), and ``summary``.
        """
        tally, llr = self.counted.tally, self.llr
        report = {
            "match": [tally.wins, tally.draws, tally.losses],
            "pairs": list(self.counted.pairs),
            "elo": [round(elo, 1) for elo in (tally.elo, *tally.elo_interval)],
        }
        summary = f"{tally.num_games} games, score {tally.score:.3f}"
        if isinstance(self.gate, SprtGate) and llr is not None:
            low, high = self.gate.bounds
            report["llr"] = [round(ratio, 3) + 0.0 for ratio in (llr, low, high)]
            summary = (
                f"{sum(self.counted.pairs)} pairs, "
                f"LLR {round(llr, 2) + 0.0:+.2f} ({low:.2f} to {high:+.2f})"
            )
        return {**report, "summary": f"{summary}, Elo {tally.elo_text}"}


@dataclass(frozen=True)
class GateVerdict:
    """The gate's verdict on a candidate, with the results and games of its match."""

    is_accepted: bool
    """Whether the gate accepts the candidate."""
    results: GateResults
    """The candidate's results in the games that decided the match."""
    games: tuple[PlayedGame, ...]
    """The games that decided the match, in order of index."""


def decide(results: GateResults) -> bool | None:
    """Returns whether a candidate passes the gate; None while the match is undecided.

    A ``MatchGate`` decides as soon as the remaining games cannot change the verdict. An
    ``SprtGate`` decides when the log-likelihood ratio of the complete pairs reaches a
    bound, or with the score after ``max_games``.

    Args:
        results: The candidate's results so far, and the gate.
    """
    gate, counted = results.gate, results.counted
    num_left = max(0, gate.max_games - counted.tally.num_games)
    if isinstance(gate, SprtGate):
        llr = _ratio(gate, counted)
        low, high = gate.bounds
        if not low < llr < high:
            return llr >= high
        if num_left > 0:
            return None
    # Round the product: 55 of 100 points must meet a minimum score of 0.55 exactly.
    needed = round(gate.min_score * gate.max_games, 9)
    if counted.tally.points >= needed:
        return True
    return None if counted.tally.points + num_left >= needed else False


def _ratio(gate: SprtGate, counted: PairedTally) -> float:
    return float(log_likelihood_ratio(counted.pairs, gate.elo0, gate.elo1))


def judge(
    gate: MatchGate | SprtGate,
    game: Game,
    candidate: ModelPlayer,
    champion: ModelPlayer,
    *,
    seed: int = 0,
    num_threads: int = 1,
    book: Book | None = None,
    played: Sequence[PlayedGame] = (),
    keep: Callable[[Sequence[PlayedGame]], None] | None = None,
    progress: Callable[[GateResults], None] = lambda results: None,
    stop: Callable[[], bool] = lambda: False,
) -> GateVerdict:
    """Plays a match of a candidate against the current model; returns the verdict.

    Blocks. Games count in order of index, up to the game that decides the match. If
    network evaluation is deterministic, the verdict and its games therefore depend only
    on the gate, the seed and the players, not on threads, timing or restarts.

    Args:
        gate: The gate's settings.
        game: The game to play.
        candidate: The candidate, player A of the match.
        champion: The current model, player B.
        seed: Seed of the match.
        num_threads: Number of threads that play games.
        book: Opening book; None for random openings.
        played: Finished games of this match from an earlier call; see ``play_match``.
        keep: Receives newly finished games; see ``play_match``.
        progress: Called with the results so far, ten times a second.
        stop: Called ten times a second; ends the match if it returns True.

    Raises:
        MatchStopped: ``stop`` ended the match before the verdict.
    """
    results = GateResults(gate)
    stopped = stopped_by(stop)

    def until(finished: PlayedGame) -> bool:
        nonlocal results
        assert finished.score_a is not None  # Only engines dispute games.
        results = GateResults(gate, results.counted.after(finished.score_a))
        return decide(results) is not None

    def watch(tally: Tally) -> None:
        progress(results)
        stopped(tally)

    games = play_match(
        game,
        candidate,
        champion,
        num_games=gate.max_games,
        num_simulations=gate.num_simulations,
        seed=seed,
        num_threads=num_threads,
        opening_plies=gate.opening_plies,
        book=book,
        # An earlier call with a larger max_games may have finished later games.
        played=[finished for finished in played if finished.index < gate.max_games],
        watch=watch,
        keep=keep,
        until=until,
    ).games
    return GateVerdict(decide(results) is True, results, games)
