"""What ``tengen train`` ends with: a match that says how strong the agent is."""

from __future__ import annotations

from tengen import games
from tengen.evaluation import MatchReport, MctsPlayer, open_player, play_match
from tengen.roles import RunConfig
from tengen.run import RunDirectory

__all__ = ["final_match", "match_line"]

_OPPONENT = MctsPlayer(1000)


def final_match(
    config: RunConfig, run: RunDirectory, *, num_threads: int
) -> MatchReport | None:
    """Plays the newest model against ``mcts:1000``; None where no game is played.

    Blocks. Colours alternate and every pair of games has an opening of its own.
    """
    num_games = config.rating.final_games
    if config.actor.kind != "selfplay" or num_games == 0:
        return None
    if run.models.latest() is None:
        return None
    return play_match(
        games.make(config.task),
        open_player(str(run.path), num_threads=num_threads),
        _OPPONENT,
        num_games=num_games,
        num_simulations=config.rating.num_simulations,
        seed=config.seed,
        num_threads=num_threads,
        opening_plies=config.rating.opening_plies,
    )


def match_line(report: MatchReport, num_simulations: int) -> str:
    """Returns the result for people, one line."""
    tally = report.tally
    low, high = tally.elo_interval
    return (
        f"rating match at {num_simulations} simulations against {_OPPONENT.name}: "
        f"{tally.wins} won, {tally.draws} drawn, {tally.losses} lost, "
        f"score {tally.score:.0%}, {tally.elo:+.0f} Elo ({low:+.0f} to {high:+.0f})"
    )
