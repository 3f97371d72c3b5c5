"""The match at the end of ``tengen train``, which measures how strong the agent is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tengen import games
from tengen.evaluation import (
    LadderConfig,
    MatchRecord,
    MatchReport,
    MatchStopped,
    Tally,
    fixed_player,
    games_jsonl,
    open_player,
    play_match,
    publish_record,
    stopped_by,
)
from tengen.roles import RunConfig, run_book
from tengen.run import RunDirectory, publish_file

__all__ = ["final_match", "match_line"]


def final_match(
    config: RunConfig,
    run: RunDirectory,
    *,
    num_threads: int,
    progress: Callable[[dict[str, Any]], None],
    stop: Callable[[], bool],
) -> MatchReport | None:
    """Plays the newest model against a fixed opponent and publishes the match.

    The result is written to ``RUN/eval/final-<n>.json``, which counts for the model's
    rating, and the games to ``RUN/games/final-<n>.jsonl``. Blocks. Colours alternate,
    and every pair of games has an opening of its own.

    Args:
        config: The run's config.
        run: The run.
        num_threads: Threads that play.
        progress: Called with the ``stage``, ten times a second.
        stop: Called ten times a second; True ends the match and nothing is published.

    Returns:
        The match; None if the config asks for none, or it was stopped.

    Raises:
        RunError: The disk refuses.
    """
    rating, play = config.agent.rating, config.agent.play
    if rating is None or rating.final_games == 0:
        return None
    model = run.models.latest()
    opponent = fixed_player(rating.final_opponent)
    if model is None or opponent is None or stop():
        return None
    stopped = stopped_by(stop)
    book = run_book(config, run) if rating.book else None

    def watch(tally: Tally) -> None:
        games_played = f"{tally.num_games} of {rating.final_games} games"
        progress({"stage": f"rating match, {games_played}"})
        stopped(tally)

    try:
        report = play_match(
            games.open_game(config.task),
            open_player(
                f"{run.path}@{model}",
                num_threads=num_threads,
                play=play.in_precision(config.inference.precision),
                task=config.task,
            ),
            opponent,
            num_games=rating.final_games,
            num_simulations=rating.num_simulations,
            seed=config.seed,
            num_threads=num_threads,
            opening_plies=rating.opening_plies,
            book=book,
            watch=watch,
        )
    except MatchStopped:
        return None
    tally = report.tally
    record = MatchRecord(
        task=config.task,
        a=f"{model:06d}",
        b=opponent.name,
        wins_a=tally.wins,
        draws=tally.draws,
        wins_b=tally.losses,
        num_simulations=rating.num_simulations,
        opening_plies=rating.opening_plies,
        book="" if book is None else book.digest,
        seed=config.seed,
        play=play,
    )
    path = publish_record(run, "final", record)
    publish_file(run.games / f"{path.stem}.jsonl", games_jsonl(report.games))
    return report


def match_line(report: MatchReport, rating: LadderConfig) -> str:
    """Returns the result as one line of text."""
    tally = report.tally
    return (
        f"rating match at {rating.num_simulations} simulations against "
        f"{rating.final_opponent}: "
        f"{tally.wins} won, {tally.draws} drawn, {tally.losses} lost, "
        f"score {tally.score:.0%}, Elo {tally.elo_text}"
    )
