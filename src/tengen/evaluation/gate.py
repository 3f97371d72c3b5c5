"""The gate: whether a candidate becomes the model that plays.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge",
"Evaluator" (a match, 55 % to pass); Silver et al. 2018, "A general reinforcement
learning algorithm ...", drops it, and so does the default here.
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

__all__ = [
    "AcceptAllGate",
    "GateConfig",
    "GateResults",
    "GateVerdict",
    "MatchGate",
    "PlayedGate",
    "SprtGate",
    "decide",
    "judge",
]

# Beyond these a difference of ratings leaves the weaker side next to nothing.
_MAX_ELO = 1000.0


@dataclass(frozen=True, kw_only=True)
class AcceptAllGate:
    """Every candidate passes."""

    kind: Literal["accept_all"] = "accept_all"
    """The kind of gate, as in ``agent.gate.kind``."""

    def __post_init__(self) -> None:
        """Checks the kind.

        Raises:
            UsageError: It is another.
        """
        check_literals(self)


@dataclass(frozen=True, kw_only=True)
class PlayedGate:
    """Settings of gates that play a match against the current model.

    Both models play with the run's ``agent.play``.
    """

    num_simulations: int = 64
    """Simulations of a move, at least 1 (KataGo: 150)."""
    opening_plies: int = 2
    """Random plies at the start of each game."""
    book: bool = False
    """Whether an opening of ``agent.book`` comes before them."""
    matches_kept: int = bounded(20, 0, MAX_GAMES)
    """How many of the newest matches keep their games in ``RUN/games/gate``; 0 for
    none."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_fields(self)
        check_moves(self.num_simulations, self.opening_plies)


@dataclass(frozen=True, kw_only=True)
class MatchGate(PlayedGate):
    """A candidate passes if its score against the current model is high enough."""

    kind: Literal["match"] = "match"
    """The kind of gate, as in ``agent.gate.kind``."""
    num_games: int = bounded(100, 2, MAX_GAMES)
    """Games of the match, at least 2, so that both sides move first (KataGo: 200). The
    match ends once the remaining games cannot change the verdict."""
    min_score: float = bounded(
        0.5,
        0,
        1,
        above=True,
        rule="must be above 0 and at most 1; use 0.5, or kind accept_all",
    )
    """Minimum score that passes, in (0, 1]."""

    @property
    def max_games(self) -> int:
        """The longest match."""
        return self.num_games


@dataclass(frozen=True, kw_only=True)
class SprtGate(PlayedGate):
    """A candidate passes a sequential test (SPRT) of ``elo1`` against ``elo0``.

    Both are Elo differences to the current model. A candidate that is exactly ``elo0``
    stronger passes with probability ``alpha``, and one that is exactly ``elo1``
    stronger fails with probability ``beta``, unless ``max_games`` ends the match first.
    """

    kind: Literal["sprt"] = "sprt"
    """The kind of gate, as in ``agent.gate.kind``."""
    elo0: float = bounded(-35.0, -_MAX_ELO, _MAX_ELO)
    """Elo at which a candidate should fail, -1000 to below ``elo1``."""
    elo1: float = bounded(35.0, -_MAX_ELO, _MAX_ELO)
    """Elo at which a candidate should pass, above ``elo0`` to 1000."""
    alpha: float = bounded(
        0.05,
        0,
        0.5,
        above=True,
        below=True,
        rule="must be above 0 and below 0.5; use 0.05",
    )
    """Probability that a candidate of ``elo0`` passes, in (0, 0.5)."""
    beta: float = bounded(
        0.05,
        0,
        0.5,
        above=True,
        below=True,
        rule="must be above 0 and below 0.5; use 0.05",
    )
    """Probability that a candidate of ``elo1`` fails, in (0, 0.5)."""
    max_games: int = bounded(200, 2, MAX_GAMES)
    """Maximum number of games, even. After them, the mean of the two expected scores
    passes."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
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
            "must be even, for games count in pairs; add one",
        )

    @property
    def bounds(self) -> tuple[float, float]:
        """The log-likelihood ratios at which a candidate fails and passes."""
        return sprt_bounds(self.alpha, self.beta)

    @property
    def min_score(self) -> float:
        """Minimum score that passes after ``max_games``."""
        return 0.5 * (expected_score(self.elo0) + expected_score(self.elo1))


GateConfig: TypeAlias = AcceptAllGate | MatchGate | SprtGate


@dataclass(frozen=True)
class GateResults:
    """Results of the candidate in a match of the gate so far."""

    gate: MatchGate | SprtGate
    """The gate."""
    counted: PairedTally = field(default_factory=PairedTally)
    """The first games of the match, up to the one that decided it."""

    @property
    def llr(self) -> float | None:
        """The log-likelihood ratio of the pairs; None without a sequential test."""
        if not isinstance(self.gate, SprtGate):
            return None
        return _ratio(self.gate, self.counted)

    def to_json(self) -> dict[str, Any]:
        """Returns the numbers of the gate's report.

        ``match``: games won, drawn and lost; ``pairs``: counts by points, 0 to 2 in
        halves; ``elo`` with its 95 % confidence interval, see ``Tally``; for an
        ``SprtGate`` ``llr`` with its bounds; and ``summary``, a text of these.
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
    """The gate's verdict on a candidate."""

    is_accepted: bool
    """Whether it is published."""
    results: GateResults
    """The games that decided."""
    games: tuple[PlayedGame, ...]
    """The same games, in order."""


def decide(results: GateResults) -> bool | None:
    """Returns whether a candidate passes; None while later games can change that.

    A ``MatchGate`` decides as the whole match would, an ``SprtGate`` after whole pairs.

    Args:
        results: The games so far.
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
    # Rounded, so that 55 of 100 points reach a minimum score of 0.55.
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
    """Returns the verdict of a match between a candidate and the current model. Blocks.

    Games count in order of index, up to the one that decides the match. So with
    deterministic evaluation, the verdict and its games depend only on the gate, the
    seed and the players: not on threads, timing, or restarts.

    Args:
        gate: The gate.
        game: The game.
        candidate: The candidate, A of the match.
        champion: The current model, B.
        seed: Seed of the match.
        num_threads: Threads that play.
        book: Openings; None for random plies alone.
        played: Games of this match that were finished before; see ``play_match``.
        keep: See ``play_match``.
        progress: Called with the results so far, ten times a second.
        stop: Called ten times a second; True ends the match.

    Raises:
        MatchStopped: ``stop`` ended the match before it was decided.
    """
    results = GateResults(gate)
    stopped = stopped_by(stop)

    def until(finished: PlayedGame) -> bool:
        nonlocal results
        assert finished.score_a is not None  # models refuse no move
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
        # The match may have been longer when it began.
        played=[finished for finished in played if finished.index < gate.max_games],
        watch=watch,
        keep=keep,
        until=until,
    ).games
    return GateVerdict(decide(results) is True, results, games)
