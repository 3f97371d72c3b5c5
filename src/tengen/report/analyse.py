"""``tengen analyse``: reviews games with deeper searches, and shows the lost points.

The judge, a model, searches the position before and after each move. The loss of a move
is the win rate of the side that plays it before the move, minus the win rate after it,
at least 0. A win rate is (value + 1) / 2, so a draw counts as half a win.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tengen.config import check_range
from tengen.errors import UsageError, did_you_mean
from tengen.evaluation.match import MAX_SEED
from tengen.games import add_task_argument, is_program
from tengen.observe.progress_line import ProgressLine
from tengen.play import Player
from tengen.play.board import BoardText, make_board_text
from tengen.play.loading import load_player
from tengen.run import RunDirectory
from tengen.search import MAX_SIMULATIONS
from tengen.serve.kept import Source, read_source, sources

# Losses of win rate that count as a mistake and as a blunder.
_MISTAKE, _BLUNDER = 0.1, 0.3
# A game is decided while the win rate is below this, or above 1 minus this.
_DECIDED = 0.05
_FOLDER = "folder"  # the source of a folder of games
_MOST_GAMES = 100_000
_MOST_SHOWN = 10_000


@dataclass(frozen=True)
class MoveReview:
    """The judge's evaluation of one move."""

    game: int
    """Index of the game."""
    ply: int
    """Number of moves before this one."""
    action: int
    """The action that was played."""
    best_action: int
    """The action that the judge would have played."""
    win_rate: float
    """Win rate of the side to move before the move, in [0, 1]."""
    loss: float
    """By how much the move lowered the win rate, in [0, 1]."""


@dataclass(frozen=True)
class Phase:
    """The losses of all moves of some plies."""

    first_ply: int
    """The phase's first ply."""
    num_moves: int
    """Number of other moves, which the losses below are about."""
    num_decided: int
    """Number of moves before and after which the game is decided."""
    mean_loss: float
    """Mean loss of win rate of a move, in [0, 1]; 0 without moves."""
    mistakes: float
    """Share of the moves that lost at least 0.1."""
    blunders: float
    """Share of the moves that lost at least 0.3."""


def review_game(
    judge: Player,
    moves: Sequence[int],
    *,
    index: int = 0,
    num_opening_plies: int = 0,
    num_simulations: int = 400,
    num_threads: int = 1,
    seed: int = 0,
) -> list[MoveReview]:
    """Returns the judge's evaluation of each move after the opening. Blocks.

    A move that the judge would also play loses nothing.

    Args:
        judge: Evaluates each position with one search. Its tree reuse must be off.
        moves: The actions of the game, from its start. A game need not have ended.
        index: The index to store in the reviews.
        num_opening_plies: Number of first moves that are not reviewed.
        num_simulations: Simulations of the search of each position.
        num_threads: Number of threads that search one tree.
        seed: Seed of the searches.

    Raises:
        CoreError: A move is illegal.
    """
    reviews: list[MoveReview] = []
    state = judge.game.new_state()
    before: tuple[int, float, int] | None = None
    for ply in range(len(moves) + 1):
        player = state.to_play
        found = None
        if state.is_terminal():
            value = state.returns()[player]
        elif ply >= num_opening_plies:
            found = judge.analyse(moves[:ply], num_simulations, seed, num_threads)
            value = found.value_to_play
        if before is not None:
            mover, rate, best = before
            after = (1 + (value if mover == player else -value)) / 2
            played = moves[ply - 1]
            loss = 0.0 if played == best else max(0.0, rate - after)
            reviews.append(MoveReview(index, ply - 1, played, best, rate, loss))
        before = None
        if found is not None:
            before = player, (1 + value) / 2, found.best_action
        if ply < len(moves):
            state.apply(moves[ply])
    return reviews


def phases(reviews: Sequence[MoveReview], num_plies: int) -> list[Phase]:
    """Returns the losses of moves by phase of the game.

    A game counts as decided while the win rate is below 5 % or above 95 %.

    Args:
        reviews: Reviews of any games.
        num_plies: Number of plies of a phase, at least 1.
    """
    found = []
    last = max((review.ply for review in reviews), default=-1)
    for first in range(0, last + 1, num_plies):
        here = [each for each in reviews if first <= each.ply < first + num_plies]
        losses = [each.loss for each in here if not _is_decided(each)]
        count = max(1, len(losses))
        found.append(
            Phase(
                first_ply=first,
                num_moves=len(losses),
                num_decided=len(here) - len(losses),
                mean_loss=sum(losses) / count,
                mistakes=sum(loss >= _MISTAKE for loss in losses) / count,
                blunders=sum(loss >= _BLUNDER for loss in losses) / count,
            )
        )
    return found


def _is_decided(review: MoveReview) -> bool:
    """Returns whether the game is decided before and after the move."""
    after = review.win_rate - review.loss
    return review.win_rate < _DECIDED or after > 1 - _DECIDED


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen analyse``."""
    parser.add_argument(
        "games",
        metavar="GAMES",
        help="a run, or a folder of games that tengen match --keep wrote",
    )
    parser.add_argument(
        "--source",
        metavar="ID",
        help="which games of a run: final-1 for its first closing match, gate-000012 "
        "for a gate's match, or a generation of self-play (the newest)",
    )
    parser.add_argument(
        "--judge",
        metavar="MODEL",
        help="the model that judges: RUN, RUN@17, a model directory, katago:FILE or "
        "bundled:go/9 (the run's newest)",
    )
    parser.add_argument(
        "--games",
        dest="num_games",
        type=int,
        default=20,
        metavar="N",
        help="number of games, spread evenly over all (20)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=400,
        metavar="N",
        help="simulations of the search of each position (400)",
    )
    parser.add_argument(
        "--plies", type=int, default=12, metavar="N", help="plies of a phase (12)"
    )
    parser.add_argument(
        "--worst", type=int, default=10, metavar="N", help="moves to list (10)"
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the searches (0)")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that search one tree (all cores with PUCT, else 1)",
    )
    add_task_argument(parser)


def analyse(args: argparse.Namespace) -> dict[str, Any]:
    """Reviews games and prints the losses by phase and the worst moves.

    Returns:
        ``judge``, ``source`` (what was reviewed), ``num_games``, ``num_simulations``,
        ``phases`` (the fields of ``Phase``) and ``worst`` (those of ``MoveReview``).

    Raises:
        UsageError: The games or the judge cannot be used, or a number is out of its
            range.
    """
    check_range("games", args.num_games, 1, _MOST_GAMES)
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    check_range("plies", args.plies, 1, _MOST_SHOWN)
    check_range("worst", args.worst, 0, _MOST_SHOWN)
    check_range("seed", args.seed, 0, MAX_SEED)
    source = _source(args.games, args.source)
    kept = read_source(source)
    chosen = kept[:: max(1, len(kept) // args.num_games)][: args.num_games]
    if not chosen:
        raise UsageError(f"games ({args.games}) has no finished game; choose others")
    judge = args.judge or args.games
    if args.judge is None and source.id == _FOLDER:
        raise UsageError(
            f"judge (none) is required for {args.games}; add --judge MODEL"
        )
    reviews: list[MoveReview] = []
    with load_player(judge, [], task=args.task, is_fresh=True) as player:
        threads = player.usual_threads(args.threads)
        judges = {"": _playing(player, _task(args.games))}
        with ProgressLine("searching") as line:
            for number, game in enumerate(chosen, 1):
                line.tell(f"game {number} of {len(chosen)}")
                if game.variant not in judges:
                    judges[game.variant] = _playing(player, game.variant)
                reviews += review_game(
                    judges[game.variant],
                    game.moves,
                    index=game.index,
                    num_opening_plies=game.num_opening_plies,
                    num_simulations=args.simulations,
                    num_threads=threads,
                    seed=args.seed,
                )
    found = phases(reviews, args.plies)
    open_moves = [review for review in reviews if not _is_decided(review)]
    worst = sorted(open_moves, key=lambda review: -review.loss)[: args.worst]
    if not args.json:
        boards = {game.index: judges[game.variant].game for game in chosen}
        print(
            f"{source.title}: {len(chosen)} of {len(kept)} games, judged by {judge} "
            f"with {args.simulations} simulations"
        )
        print(_table(found, args.plies))
        for review in worst:
            print(_line(review, make_board_text(boards[review.game])))
    return {
        "judge": judge,
        "source": source.title,
        "num_games": len(chosen),
        "num_simulations": args.simulations,
        "phases": [asdict(phase) for phase in found],
        "worst": [asdict(review) for review in worst],
    }


def _source(games: str, wanted: str | None) -> Source:
    """Returns the games that the arguments specify."""
    path = Path(games)
    if not (path / "run.json").is_file():
        if not path.is_dir():
            raise UsageError(
                f"games ({games}) must be a run or a folder of games; check the path"
            )
        if wanted is not None:
            raise UsageError(f"source ({wanted}) needs a run; leave it out")
        return Source(_FOLDER, "match", games, path)
    known = sources(RunDirectory.open(path))
    if wanted is None:
        found = [each for each in known if each.kind == "self-play"]
    else:
        found = [each for each in known if each.id == wanted]
    if not found:
        names = [each.id for each in known]
        advice = did_you_mean(wanted or "", names, "train the run first")
        raise UsageError(f"source ({wanted or 'self-play'}) has no games; {advice}")
    return found[0]


def _task(games: str) -> str:
    """Returns the task of a run whose games are reviewed; empty for a folder."""
    run = RunDirectory(games)
    if not (run.path / "run.json").is_file():
        return ""
    task = run.read_run()["config"].get("task", "")
    return task if isinstance(task, str) and not is_program(task) else ""


def _playing(player: Player, task: str) -> Player:
    return player if task in ("", player.game.name) else player.playing(task)


def _table(found: Sequence[Phase], num_plies: int) -> str:
    head = ("moves", "undecided", "mean loss", "lost 10 %", "lost 30 %")
    lines = [" ".join(f"{name:>10}" for name in head)]
    for phase in found:
        first = phase.first_ply + 1
        cells = (
            f"{first}-{first + num_plies - 1}",
            f"{phase.num_moves}",
            f"{phase.mean_loss:.1%}",
            f"{phase.mistakes:.1%}",
            f"{phase.blunders:.1%}",
        )
        lines.append(" ".join(f"{cell:>10}" for cell in cells))
    return "\n".join(lines)


def _line(review: MoveReview, board: BoardText) -> str:
    played, best = board.write(review.action), board.write(review.best_action)
    return (
        f"game {review.game}, move {review.ply + 1}: {played} lost {review.loss:.0%} "
        f"of {review.win_rate:.0%}, {best} was best"
    )
