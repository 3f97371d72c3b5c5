"""The gate: whether a candidate becomes the model that plays.

Source: Silver et al. 2017, "Mastering the game of Go without human knowledge",
"Evaluator" (a match, 55 % to pass); Silver et al. 2018, "A general reinforcement
learning algorithm ...", drops it, and so does the default here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from tengen.config import check, check_literals, check_range
from tengen.evaluation.elo import Tally
from tengen.evaluation.match import MAX_GAMES, MatchStopped, check_moves, play_match
from tengen.evaluation.players import ModelPlayer
from tengen.games import Game

__all__ = ["AcceptAllGate", "GateConfig", "GateVerdict", "MatchGate", "decide", "judge"]


@dataclass(frozen=True, kw_only=True)
class AcceptAllGate:
    """Every candidate passes."""

    kind: Literal["accept_all"] = "accept_all"
    """Tells this config from the others."""

    def __post_init__(self) -> None:
        """Checks the kind.

        Raises:
            UsageError: It is another.
        """
        check_literals(self)


@dataclass(frozen=True, kw_only=True)
class MatchGate:
    """A candidate passes by its score against the model before it."""

    kind: Literal["match"] = "match"
    """Tells this config from the others."""
    num_games: int = 100
    """Games of the match, at least 2."""
    min_score: float = 0.5
    """Least score that passes, in (0, 1]; exactly this score passes."""
    num_simulations: int = 64
    """Simulations a move, at least 1."""
    opening_plies: int = 2
    """Random plies that each game begins with."""

    def __post_init__(self) -> None:
        """Checks the ranges.

        Raises:
            UsageError: A field is out of its range.
        """
        check_literals(self)
        # One game would leave the first move to one side.
        check_range("num_games", self.num_games, 2, MAX_GAMES)
        check(
            0.0 < self.min_score <= 1.0,
            "min_score",
            self.min_score,
            "must be above 0 and at most 1; use 0.5, or kind accept_all",
        )
        check_moves(self.num_simulations, self.opening_plies)


GateConfig: TypeAlias = AcceptAllGate | MatchGate


@dataclass(frozen=True)
class GateVerdict:
    """What the gate said of a candidate."""

    is_accepted: bool
    """Whether it is published."""
    tally: Tally
    """Games as the candidate sees them; none where no match was asked for."""


def decide(config: GateConfig, tally: Tally) -> bool | None:
    """Returns whether a candidate passes, or None while games to come can change it.

    The whole match would decide the same, so that stopping early changes nothing.

    Args:
        config: The gate.
        tally: Finished games as the candidate sees them.
    """
    if isinstance(config, AcceptAllGate):
        return True
    # Rounded so that 55 of 100 points pass a least score of 0.55.
    needed = round(config.min_score * config.num_games, 9)
    if tally.points >= needed:
        return True
    num_left = max(0, config.num_games - tally.num_games)
    return None if tally.points + num_left >= needed else False


def judge(
    config: GateConfig,
    game: Game,
    candidate: ModelPlayer,
    champion: ModelPlayer | None,
    *,
    seed: int = 0,
    num_threads: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> GateVerdict:
    """Decides about a candidate. Blocks while the match is played.

    The verdict is a function of the seed and the players where evaluation is
    deterministic; the tally is not, for the match ends as soon as it is decided.

    Args:
        config: The gate.
        game: The game.
        candidate: The model that asks to pass.
        champion: The model that plays now; None before the first, which passes.
        seed: Of the match.
        num_threads: Threads that play.
        stop: Asked ten times a second; True ends the match.

    Raises:
        MatchStopped: ``stop`` ended the match before it was decided.
    """
    if isinstance(config, AcceptAllGate) or champion is None:
        return GateVerdict(True, Tally())

    def watch(so_far: Tally) -> bool:
        if decide(config, so_far) is not None:
            return True
        if stop():
            raise MatchStopped
        return False

    tally = play_match(
        game,
        candidate,
        champion,
        num_games=config.num_games,
        num_simulations=config.num_simulations,
        seed=seed,
        num_threads=num_threads,
        opening_plies=config.opening_plies,
        watch=watch,
    ).tally
    return GateVerdict(decide(config, tally) is True, tally)
