"""The end of ``tengen train``: the final match, and the final messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tengen import games
from tengen.bundled import BUNDLED, bundled_names, read_manifest
from tengen.errors import RunError
from tengen.evaluation import (
    MatchRecord,
    MatchReport,
    MatchStopped,
    PlayedGame,
    Tally,
    games_jsonl,
    open_player,
    play_match,
    publish_record,
    stopped_by,
)
from tengen.games import task_words
from tengen.launch import Budget, RunJournal
from tengen.models.load import read_meta
from tengen.observe.target import read_target, target_line
from tengen.roles import RunConfig
from tengen.roles.inputs import run_book
from tengen.run import RunDirectory, publish_file

_USUAL_OPPONENT = "mcts:1000"
"""The opponent in games without a bundled player."""
_FIRST_GAMES = 8
"""Number of games that are timed to choose the number of games of the match."""
_MATCH_SHARE = 0.2
"""The maximum duration of the match, as a share of a call's time."""


def has_learned(config: RunConfig, run: RunDirectory) -> bool:
    """Returns whether the newest model is trained, in this run or in an earlier one.

    Raises:
        RunError: The model is damaged.
    """
    model = run.models.latest()
    if model is None:
        return False
    steps = read_meta(run.models.entry(model), error=RunError).num_steps
    return steps > 0 or bool(config.learner.initial_model)


def final_match(
    config: RunConfig,
    run: RunDirectory,
    *,
    num_threads: int,
    progress: Callable[[dict[str, Any]], None],
    stop: Callable[[], bool],
    seconds: float | None,
    clock: Callable[[], float],
) -> MatchReport | None:
    """Plays the newest model against a fixed opponent and publishes the match.

    Blocks. Writes the result to ``RUN/eval/final-<n>.json`` and the games to
    ``RUN/games/final-<n>.jsonl``; against an anchor, it counts for the rating. Colours
    alternate, and every pair of games has its own opening. If the budget limits the
    time, the match takes about a fifth of it at most, estimated from the first eight
    games, which are always played.

    Args:
        config: The run's config.
        run: The run.
        num_threads: The number of threads that play.
        progress: Called with the ``stage``, ten times a second.
        stop: Called ten times a second; returning True ends the match unpublished.
        seconds: The wall time of the call's budget; None to play all games without a
            time limit.
        clock: Returns the time of a monotonic clock, in seconds.

    Returns:
        The match; None if the config disables it, the model is not trained, or the
        match was stopped.

    Raises:
        RunError: A write fails.
    """
    agent = config.games
    if agent is None or agent.rating.final_games == 0:
        return None
    rating, play = agent.rating, agent.play
    model = run.models.latest()
    if model is None or stop() or not has_learned(config, run):
        return None
    opponent = open_player(
        final_opponent(config), num_threads=num_threads, task=config.task
    )
    stopped = stopped_by(stop)
    book = run_book(config, run) if rating.book else None

    player = open_player(
        f"{run.path}@{model}",
        num_threads=num_threads,
        play=play.in_precision(config.inference.precision),
        task=config.task,
    )

    def played(num_games: int, before: Sequence[PlayedGame] = ()) -> MatchReport:
        def watch(tally: Tally) -> None:
            games_played = f"{tally.num_games} of {num_games} games"
            progress({"stage": f"match, {games_played}"})
            stopped(tally)

        return play_match(
            games.open_game(config.task),
            player,
            opponent,
            num_games=num_games,
            num_simulations=rating.num_simulations,
            seed=config.seed,
            num_threads=num_threads,
            opening_plies=rating.opening_plies,
            book=book,
            played=before,
            watch=watch,
        )

    num_games = rating.final_games
    try:
        first: tuple[PlayedGame, ...] = ()
        if seconds is not None and num_games > _FIRST_GAMES:
            start_s = clock()
            first = played(_FIRST_GAMES).games
            each_s = max(1e-9, (clock() - start_s) / _FIRST_GAMES)
            # Play complete pairs, so that both players move first equally often.
            fitting = 2 * int(seconds * _MATCH_SHARE / each_s / 2)
            num_games = max(_FIRST_GAMES, min(num_games, fitting))
        report = played(num_games, first)
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


def final_opponent(config: RunConfig) -> str:
    """Returns the name of the opponent of the match at the end of a game's training."""
    assert config.games is not None
    word = config.games.rating.final_opponent
    if word != "bundled":
        return word
    task = config.task
    return f"{BUNDLED}{task}" if task in bundled_names() else _USUAL_OPPONENT


def _described(opponent: str) -> str:
    """Returns an opponent's name, with the measured strength of a bundled player."""
    if not opponent.startswith(BUNDLED):
        return opponent
    measured = read_manifest(opponent.removeprefix(BUNDLED)).strength
    facts = "; ".join(f"{one.what}: {one.value:.0%}" for one in measured[:1])
    return f"{opponent} ({facts})" if facts else opponent


def match_line(
    report: MatchReport, config: RunConfig, seconds: float | None = None
) -> str:
    """Returns the result of the final match as one line of text.

    Args:
        report: The match.
        config: The run's config, of a game.
        seconds: The wall time of the call's budget, as in ``final_match``.
    """
    assert config.games is not None
    tally, rating = report.tally, config.games.rating
    fewer = ""
    if seconds is not None and tally.num_games < rating.final_games:
        fewer = (
            f"; {rating.final_games} games would take more than "
            f"{seconds * _MATCH_SHARE:.0f} s of {seconds:.0f} s"
        )
    return (
        f"match at {rating.num_simulations} simulations against "
        f"{_described(final_opponent(config))}: "
        f"{tally.wins} won, {tally.draws} drawn, {tally.losses} lost, "
        f"score {tally.score:.0%}, Elo {tally.elo_text}{fewer}"
    )


def why_unlearned(budget: Budget, journal: RunJournal, reason: str) -> str:
    """Returns the most likely reason why a call performed no optimizer step.

    Args:
        budget: The call's budget.
        journal: The call's journal, which may contain the reason.
        reason: Why the call ended.
    """
    if journal.unlearned:
        return journal.unlearned
    if reason != "budget":
        return f"it was {reason} before the first learner step"
    asked = {
        "minutes": budget.minutes,
        "cpu-seconds": budget.cpu_seconds,
        "games": budget.games,
        "frames": budget.frames,
    }
    told = [f"{name} ({n:g})" for name, n in asked.items() if n is not None]
    if not told:
        return "there was no experience to learn from"
    return f"{' and '.join(told)} ran out before the first learner step; raise it"


def farewell(
    config: RunConfig,
    run: RunDirectory,
    reason: str,
    journal: RunJournal,
    unlearned: str,
) -> str:
    """Returns the final messages of a call: its result, and suggested commands.

    Args:
        config: The run's config.
        run: The run.
        reason: Why the call ended.
        journal: The call's journal.
        unlearned: Why the call performed no optimizer step; empty if it performed any.

    Raises:
        RunError: The newest model is damaged.
    """
    lines = []
    if unlearned:
        lines.append(f"this call learned nothing: {unlearned}")
    if journal.mean_return is not None:
        lines.append(
            f"mean return of the last 100 training episodes: {journal.mean_return:.2f}"
        )
    if reason != "budget":
        lines.append(
            f"{reason}; everything is saved, and the same command resumes from here"
        )
    if (target := read_target(run)) is not None:
        goes_on = "" if target["has_result"] else "; the same command resumes"
        lines.append(f"{target_line(target)}{goes_on}")
    words = f"{run.path}{task_words(config.task)}"
    # Do not suggest playing against random weights.
    is_learned = has_learned(config, run)
    if is_learned and config.games is not None:
        lines.append(f"play against it: tengen play {words}")
    elif is_learned:
        lines.append(f"measure its return: tengen eval {words} --episodes 100")
    return "\n".join(lines) or "nothing was trained yet"
