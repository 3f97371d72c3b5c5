"""``tengen analyse``: reviews games with deeper searches, and lists the mistakes.

The judge, a model, searches the position before and after each move. The loss of a move
is the win rate of the side that plays it before the move, minus the win rate after it,
at least 0. A win rate is (value + 1) / 2, so a draw counts as half a win.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tengen.config import check_range
from tengen.errors import UsageError, did_you_mean
from tengen.evaluation.episodes.report import mean_interval
from tengen.evaluation.match import MAX_SEED
from tengen.games import add_task_argument, check_typed, is_program
from tengen.observe.progress_line import ProgressLine
from tengen.play import Player
from tengen.play.board import make_board_text
from tengen.play.loading import load_player
from tengen.run import RunDirectory
from tengen.search import MAX_SIMULATIONS
from tengen.serve.boards import play_moves
from tengen.serve.kept import KeptGame, Source, read_source, sources

# Losses of win rate that count as a mistake and as a blunder.
_MISTAKE, _BLUNDER = 0.1, 0.3
# A game is decided while the win rate is below this, or above 1 minus this.
_DECIDED = 0.05
# The smallest loss of a move that is listed.
_LEAST_SHOWN = 0.01
_MOST_GAMES = 100_000
_MOST_SHOWN = 10_000
_MOST_NAME = 40  # characters of a player


@dataclass(frozen=True)
class MoveReview:
    """The judge's evaluation of one move."""

    source: str
    """ID of the game's source, as for ``--source``; "folder" for a folder of games."""
    game: int
    """Index of the game in its source."""
    player: str
    """Name of the player in a match; empty for self-play."""
    ply: int
    """Number of moves before this one."""
    action: int
    """The action that was played."""
    best_action: int
    """The action that the judge would have played."""
    win_rate: float
    """Win rate of the side to move before the move, in [0, 1]."""
    win_rate_after: float
    """Win rate of the same side after the move, in [0, 1]."""

    @property
    def loss(self) -> float:
        """By how much the move lowered the win rate, in [0, 1].

        0 for a move that the judge would also play.
        """
        is_best = self.action == self.best_action
        return 0.0 if is_best else max(0.0, self.win_rate - self.win_rate_after)

    @property
    def is_decided(self) -> bool:
        """Whether the win rate is below 5 %, or above 95 %, before and after."""
        low, high = sorted((self.win_rate, self.win_rate_after))
        return high < _DECIDED or low > 1 - _DECIDED


@dataclass(frozen=True)
class Phase:
    """The losses of a player's moves in some plies of all games."""

    player: str
    """Name of the player in a match; empty for self-play."""
    first_ply: int
    """The phase's first ply."""
    num_moves: int
    """Number of moves in undecided games. The losses below are theirs."""
    num_decided: int
    """Number of moves before and after which the game is decided."""
    mean_loss: float
    """Mean loss of win rate of a move, in [0, 1]; 0 without moves."""
    mean_loss_interval: tuple[float, float] | None
    """The 95 % confidence interval of ``mean_loss``, in [0, 1], from the variance
    between games; None with moves of fewer than two games."""
    mistakes: float
    """Share of the moves that lost at least 0.1."""
    blunders: float
    """Share of the moves that lost at least 0.3."""


def review_game(
    judge: Player,
    moves: Sequence[int],
    *,
    source: str = "",
    index: int = 0,
    players: tuple[str, str] = ("", ""),
    num_opening_plies: int = 0,
    num_simulations: int = 400,
    num_threads: int = 1,
    seed: int = 0,
) -> list[MoveReview]:
    """Returns the judge's evaluation of each move after the opening. Blocks.

    Args:
        judge: Evaluates each position with one search. Its tree reuse must be off.
        moves: The actions of the game, from its start. A game need not have ended.
        source: The source to store in the reviews.
        index: The index to store in the reviews.
        players: Names of the first and the second player.
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
            name, action = players[mover], moves[ply - 1]
            reviews.append(
                MoveReview(source, index, name, ply - 1, action, best, rate, after)
            )
        before = None
        if found is not None:
            before = player, (1 + value) / 2, found.best_action
        if ply < len(moves):
            state.apply(moves[ply])
    return reviews


def phases(reviews: Sequence[MoveReview], num_plies: int) -> list[Phase]:
    """Returns the losses of moves by player and by phase of the game.

    Args:
        reviews: Reviews of any games.
        num_plies: Number of plies of a phase, at least 1.
    """
    found = []
    last = max((review.ply for review in reviews), default=-1)
    for player in sorted({review.player for review in reviews}):
        for first in range(0, last + 1, num_plies):
            here = [
                each
                for each in reviews
                if each.player == player and first <= each.ply < first + num_plies
            ]
            undecided = [each for each in here if not each.is_decided]
            losses = [each.loss for each in undecided]
            count = max(1, len(losses))
            found.append(
                Phase(
                    player=player,
                    first_ply=first,
                    num_moves=len(losses),
                    num_decided=len(here) - len(losses),
                    mean_loss=sum(losses) / count,
                    mean_loss_interval=_interval(undecided),
                    mistakes=sum(loss >= _MISTAKE for loss in losses) / count,
                    blunders=sum(loss >= _BLUNDER for loss in losses) / count,
                )
            )
    return found


def _interval(reviews: Sequence[MoveReview]) -> tuple[float, float] | None:
    """Returns the 95 % confidence interval of the mean loss of moves.

    The losses of a game are correlated, so the games are the sample. Their mean loss a
    move is a ratio of two means, whose variance is that of its linear approximation.

    Source: Cochran 1977, "Sampling Techniques", section 6.3.
    """
    by_game: dict[tuple[str, int], list[float]] = {}
    for each in reviews:
        by_game.setdefault((each.source, each.game), []).append(each.loss)
    if not by_game:
        return None
    mean = sum(each.loss for each in reviews) / len(reviews)
    scale = len(by_game) / len(reviews)
    found = mean_interval(
        [mean + scale * sum(loss - mean for loss in game) for game in by_game.values()]
    )
    return None if found is None else (max(0.0, found[0]), min(1.0, found[1]))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen analyse``."""
    parser.add_argument(
        "path",
        metavar="PATH",
        help="a run, or a folder of games that tengen match --keep wrote",
    )
    parser.add_argument(
        "--source",
        metavar="ID",
        help="which games of a run: a generation of self-play such as 12 (the newest), "
        "final-1 for the first closing match, or gate-000012 for a gate's match",
    )
    parser.add_argument(
        "--judge",
        metavar="MODEL",
        help="the model that judges: RUN, RUN@17, a model directory, katago:FILE or "
        "bundled:go/9 (the run's newest)",
    )
    parser.add_argument(
        "--games",
        type=int,
        default=20,
        metavar="N",
        help="number of games, drawn at random (20)",
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
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the games and searches (0)"
    )
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that search one tree (1; with more, results vary)",
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
    check_range("games", args.games, 1, _MOST_GAMES)
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    check_range("plies", args.plies, 1, _MOST_SHOWN)
    check_range("worst", args.worst, 0, _MOST_SHOWN)
    check_range("seed", args.seed, 0, MAX_SEED)
    title, task, group = _kept(args)
    kept = [(each.id, game) for each in group for game in read_source(each)]
    num_games = min(args.games, len(kept))
    drawn = random.Random(args.seed).sample(range(len(kept)), num_games)
    chosen = [kept[index] for index in sorted(drawn)]
    judge = args.judge or args.path
    with load_player(judge, [], task=args.task, is_fresh=True) as player:
        judges = {
            name: _playing(player, name or task)
            for name in {game.variant for _, game in chosen}
        }
        for _, game in chosen:
            _check_moves(judges[game.variant], game, args.path)
        threads = player.usual_threads(args.threads, is_repeatable=True)
        reviews: list[MoveReview] = []
        lines: dict[MoveReview, str] = {}
        with ProgressLine("searching") as line:
            for number, (source, game) in enumerate(chosen, 1):
                line.tell(f"game {number} of {len(chosen)}")
                found = review_game(
                    judges[game.variant],
                    game.moves,
                    source=source,
                    index=game.index,
                    players=game.players,
                    num_opening_plies=game.num_opening_plies,
                    num_simulations=args.simulations,
                    num_threads=threads,
                    seed=args.seed,
                )
                reviews += found
                write = make_board_text(judges[game.variant].game).write
                lines |= {
                    each: f"{write(each.action)} lost {each.loss:.0%} of "
                    f"{each.win_rate:.0%}, {write(each.best_action)} was best"
                    for each in found
                }
    by_phase = phases(reviews, args.plies)
    lost = [review for review in reviews if review.loss >= _LEAST_SHOWN]
    worst = sorted(lost, key=lambda review: -review.loss)[: args.worst]
    if not args.json:
        print(
            f"{title}: {len(chosen)} of {len(kept)} games, judged by {judge} with "
            f"{args.simulations} simulations"
        )
        print(_table(by_phase, args.plies))
        for each in worst:
            who = f", {each.player[-_MOST_NAME:]}" if each.player else ""
            of = f" of {each.source}" if len(group) > 1 else ""
            print(f"game {each.game}{of}, move {each.ply + 1}{who}: {lines[each]}")
    return {
        "judge": judge,
        "source": title,
        "num_games": len(chosen),
        "num_simulations": args.simulations,
        "phases": [asdict(phase) for phase in by_phase],
        "worst": [{**asdict(each), "loss": each.loss} for each in worst],
    }


def _kept(args: argparse.Namespace) -> tuple[str, str, list[Source]]:
    """Returns a title, the task of games that do not name theirs, and their sources.

    Raises:
        UsageError: There are no such games.
    """
    run = RunDirectory(args.path)
    if not (run.path / "run.json").is_file():
        return _kept_in_folder(args)
    task = RunDirectory.open(args.path).read_run()["config"].get("task")
    if not isinstance(task, str):
        raise UsageError(f"run ({args.path}) has no task; restore its run.json")
    if is_program(task) or args.task is not None:
        check_typed(task, args.task, args.path)
    known = sources(run)
    wanted = args.source
    if wanted is None:
        generations = sorted(
            {_generation(each) for each in known if each.kind == "self-play"},
            reverse=True,
        )
    elif re.fullmatch("[0-9]{1,9}", wanted):
        generations = [int(wanted)]
    else:
        generations = []
    groups = [
        [each for each in known if each.kind == "self-play" and _generation(each) == n]
        for n in generations
    ]
    groups.append([each for each in known if each.id == wanted])
    for group in groups:
        if any(map(read_source, group)):
            title = group[0].title
            if group[0].kind == "self-play":
                title = f"self-play, generation {_generation(group[0])}"
            return title, task, group
    names = [each.id for each in known if each.kind == "match"]
    names += [str(_generation(each)) for each in known if each.kind == "self-play"]
    advice = did_you_mean(wanted, names) if wanted else "train the run first"
    raise UsageError(f"source ({wanted or 'self-play'}) has no games; {advice}")


def _kept_in_folder(
    args: argparse.Namespace,
) -> tuple[str, str, list[Source]]:
    path = Path(args.path)
    rule = ""
    if not path.is_dir():
        rule = "must be a run or a folder of games; check it"
    elif args.source is not None:
        rule = "is a folder of games, which has no --source; leave it out"
    elif args.judge is None:
        rule = "is a folder of games, which needs a judge; add --judge MODEL"
    if rule:
        raise UsageError(f"path ({path}) {rule}")
    source = Source("folder", "match", str(path), path)
    if not read_source(source):
        rule = "has no games.jsonl, and no SGF files named by numbers; check it"
        raise UsageError(f"path ({path}) {rule}")
    return str(path), "", [source]


def _generation(source: Source) -> int:
    """Returns the generation of a source of self-play."""
    return int(source.id.rpartition(".")[2])


def _playing(player: Player, task: str) -> Player:
    return player if task in ("", player.game.name) else player.playing(task)


def _check_moves(judge: Player, game: KeptGame, where: str) -> None:
    """Checks all moves before the first search, which may take long.

    Raises:
        UsageError: A move is illegal.
    """
    try:
        play_moves(judge.game, game.moves)
    except UsageError as error:
        raise UsageError(f"game {game.index} of {where}: {error}") from None


def _table(found: Sequence[Phase], num_plies: int) -> str:
    head = ("moves", "undecided", "mean loss", "95 %", "lost 10 %", "lost 30 %")
    # The end of a path tells more than its start.
    names = {phase.player: phase.player[-_MOST_NAME:] for phase in found}
    width = max(map(len, names.values()), default=0)
    lines = [" " * width + " ".join(f"{name:>12}" for name in head)]
    for phase in found:
        first = phase.first_ply + 1
        cells = (
            f"{first}-{first + num_plies - 1}",
            f"{phase.num_moves}",
            f"{phase.mean_loss:.1%}",
            _range(phase.mean_loss_interval),
            f"{phase.mistakes:.1%}",
            f"{phase.blunders:.1%}",
        )
        shown = " ".join(f"{cell:>12}" for cell in cells)
        lines.append(f"{names[phase.player]:<{width}}{shown}")
    return "\n".join(lines)


def _range(interval: tuple[float, float] | None) -> str:
    return "" if interval is None else f"{interval[0]:.1%}-{interval[1]:.1%}"
