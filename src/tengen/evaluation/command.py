"""``tengen match``: plays a match that measures which of two players is stronger."""

from __future__ import annotations

import argparse
import dataclasses
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from tengen.bundled import level_of
from tengen.config import check
from tengen.errors import RunError, UsageError
from tengen.evaluation.elo import Tally
from tengen.evaluation.engines.side import EngineReport
from tengen.evaluation.match import MatchReport, play_match
from tengen.evaluation.named_players import find_player, open_model
from tengen.evaluation.played_game import GameFolder
from tengen.evaluation.players import (
    EnginePlayer,
    GomocupPlayer,
    MatchPlayer,
    ModelPlayer,
)
from tengen.games import allow, is_program, open_game, openings_text, read_book
from tengen.models import ModelDir
from tengen.observe.progress_line import ProgressLine
from tengen.overrides import override
from tengen.run import available_cores, usable_threads
from tengen.search import PlayConfig


@dataclass(frozen=True, kw_only=True)
class MatchSettings:
    """The match settings that ``--set`` can change."""

    a: PlayConfig = field(default_factory=PlayConfig)
    """Player A's play settings; by default those stored in its model."""
    b: PlayConfig = field(default_factory=PlayConfig)
    """Player B's play settings; by default those stored in its model."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen match`` to ``parser``."""
    words = (
        "RUN, RUN@17, a model directory, katago:FILE, bundled:go/9, random, mcts:N, "
        'gtp:"COMMAND" or gomocup:"COMMAND"'
    )
    parser.add_argument("a", metavar="A", help=words)
    parser.add_argument("b", metavar="B", help=words)
    parser.add_argument(
        "--games",
        type=int,
        default=100,
        metavar="N",
        help="number of games (100); colours alternate, and A starts one more game if "
        "N is odd",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=64,
        metavar="N",
        help="simulations per move, for players that are models (64)",
    )
    parser.add_argument(
        "--level",
        metavar="L[,L]",
        help="levels of bundled players: 3 for A alone, 3,beginner for A and B, or "
        ",rating:1200 for B alone; see tengen players NAME",
    )
    parser.add_argument(
        "--task",
        "--game",
        dest="task",
        metavar="NAME",
        help="the game; required if neither player is a model, if the models play "
        "different games, or for a game in Python, module:Class",
    )
    parser.add_argument(
        "--opening-plies",
        type=int,
        metavar="N",
        help="random plies at the start of each game (2; with --book 0); with 0 and no "
        "book all games start on the empty board",
    )
    parser.add_argument(
        "--book",
        type=Path,
        metavar="FILE",
        help="an opening book for the games, made with tengen book",
    )
    parser.add_argument(
        "--answer-seconds",
        type=float,
        default=60.0,
        metavar="S",
        help="time limit of an engine's answer, in seconds (60)",
    )
    parser.add_argument(
        "--turn-seconds",
        type=float,
        default=1.0,
        metavar="S",
        help="time per move that a Gomocup engine is given, in seconds (1)",
    )
    parser.add_argument(
        "--turn-nodes",
        type=int,
        default=0,
        metavar="N",
        help="nodes per move that a Gomocup engine may search, if it knows INFO "
        "max_node; then results do not depend on its speed (no limit)",
    )
    parser.add_argument(
        "--keep",
        "--sgf",
        dest="keep",
        type=Path,
        metavar="FOLDER",
        help="folder for the games, which tengen analyse reviews: games.jsonl, and SGF "
        "files of Go (--sgf is an older name)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the openings (0)")
    parser.add_argument(
        "--threads",
        type=int,
        default=None,
        metavar="N",
        help="threads of the whole match (all cores)",
    )
    parser.add_argument(
        "--devices",
        metavar="D",
        help="device of the models: cpu or cuda:0 (cpu)",
    )
    parser.add_argument(
        "--tree-threads",
        default="1",
        metavar="N[,N]",
        help="number of threads that search one tree, for A and for B (1)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.FIELD=v",
        help="change how A or B plays, such as a.search.lcb_stdevs=5 or "
        "b.precision=fp32; the fields are those of agent.play in tengen recipes TASK",
    )


def match(args: argparse.Namespace) -> dict[str, Any]:
    """Plays a match and prints its result; returns ``MatchReport.to_json``.

    Raises:
        UsageError: A player, a number or a setting is invalid, or the games differ.
        RunError: A model cannot be compiled, an engine fails, or every game is
            disputed.
    """
    num_threads, trees = _threads(args.threads, args.tree_threads)
    typed = None
    if args.task is not None and is_program(args.task):
        typed = args.task
        allow(typed)
    with ProgressLine("opening the players"):
        a, b = _players(args, num_threads, trees, typed)
    has_model = isinstance(a, ModelPlayer) or isinstance(b, ModelPlayer)
    rule = "needs a player that is a model; leave it out"
    check(args.devices is None or has_model, "devices", args.devices, rule)
    game = open_game(shared_task(a, b, args.task))
    a, b = (
        player.playing(game.name) if isinstance(player, ModelPlayer) else player
        for player in (a, b)
    )
    book = args.book and read_book(args.book, game)
    plies = args.opening_plies
    if plies is None:
        plies = 0 if book else 2
    folder = args.keep and GameFolder(args.keep, game.name, a.name, b.name)
    with ProgressLine("playing") as line:
        report = play_match(
            game,
            a,
            b,
            num_games=args.games,
            num_simulations=args.simulations,
            seed=args.seed,
            num_threads=max(1, num_threads // max(trees)),
            opening_plies=plies,
            book=book,
            watch=partial(_count, line, args.games),
            keep=folder.keep if folder else None,
        )
    if report.tally.num_games == 0:
        raise RunError(
            f"games ({args.games}) were all disputed, the first "
            f"{_first_dispute(report)}; give the engine the same rules"
        )
    openings = openings_text(plies, book)
    if not args.json:
        print(_text(a.name, b.name, report))
        print(f"openings: {openings}")
    return {**report.to_json(), "openings": openings}


def _threads(threads: int | None, trees: str) -> tuple[int, list[int]]:
    """Returns the number of match threads, and the threads per tree of A and of B."""
    words = trees.split(",")
    is_count = all(word.isascii() and word.isdecimal() for word in words)
    check(
        is_count and len(words) <= 2 and 0 not in map(int, words),
        "tree-threads",
        trees,
        "must be N or N,N; for example 2 or 1,2",
    )
    counts = [int(word) for word in (words * 2)[:2]]
    asked = max(available_cores(), *counts) if threads is None else threads
    num_threads = usable_threads(asked)
    rule = f"must be at most {asked}, the match's threads; raise --threads"
    check(max(counts) <= asked, "tree-threads", trees, rule)
    return num_threads, [min(count, num_threads) for count in counts]


def _players(
    args: argparse.Namespace, num_threads: int, trees: list[int], typed: str | None
) -> list[MatchPlayer]:
    """Returns the two players of the match, A and B.

    Args:
        args: The parsed command-line arguments.
        num_threads: Number of threads that play the match.
        trees: Number of threads that search one tree, for A and for B.
        typed: The task ``module:Class`` that the user typed, or None.
    """
    found = {"a": find_player(args.a), "b": find_player(args.b)}
    usual = MatchSettings(
        **{
            side: model.meta.play
            for side, model in found.items()
            if isinstance(model, ModelDir) and model.meta.play is not None
        }
    )
    settings = override(usual, args.settings)
    players: list[MatchPlayer] = []
    levels = _levels(args.level)
    for (side, player), tree_threads in zip(found.items(), trees, strict=True):
        word, play = getattr(args, side), getattr(settings, side)
        level = levels[side]
        if isinstance(player, ModelDir):
            opened = open_model(
                player,
                word,
                num_threads=num_threads,
                play=play,
                devices=args.devices,
                task=typed,
            )
            rated = None if level is None else level_of(word, level)
            players.append(
                dataclasses.replace(opened, tree_threads=tree_threads, level=rated)
            )
            continue
        rule = f"needs a bundled player, not {word}; leave its place empty: ,3"
        check(level is None, "level", level, rule)
        rule = "is not a model, and has no settings; remove that --set"
        check(play == PlayConfig(), side, word, rule)
        if isinstance(player, GomocupPlayer):
            player = dataclasses.replace(
                player,
                answer_s=args.answer_seconds,
                turn_s=args.turn_seconds,
                turn_nodes=args.turn_nodes,
            )
        elif isinstance(player, EnginePlayer):
            player = dataclasses.replace(player, answer_s=args.answer_seconds)
        players.append(player)
    return players


def _levels(text: str | None) -> dict[str, str | None]:
    """Parses ``--level``; returns the levels of ``a`` and ``b``, None for no level."""
    words = [] if text is None else text.split(",")
    check(
        len(words) <= 2, "level", text, "must be L or L,L; for example 2 or 1,3 or ,3"
    )
    typed = [word or None for word in words]
    return dict(zip("ab", [*typed, None, None], strict=False))


def shared_task(a: MatchPlayer, b: MatchPlayer, name: str | None) -> str:
    """Returns the game that both players play.

    ``name`` or the models' own games determine the game. A network trained on several
    games adapts to ``name``. A network for boards of any size adapts to ``name``, or to
    the game of the other player.

    Args:
        a: The first player.
        b: The second player.
        name: The game that the user requested, or None.

    Raises:
        UsageError: The models and ``name`` specify different games or no game.
    """
    models = [player for player in (a, b) if isinstance(player, ModelPlayer)]
    said = [
        (player.name, player.task)
        for player in models
        if not (name and player.mixed_sizes) and player.boards is None
    ]
    if name is not None:
        said.append(("--game", name))
    if not said:
        said = [(player.name, player.task) for player in models]
    if not said:
        raise UsageError(
            f"game (none) is required, because neither {a.name} nor {b.name} is a "
            "model; add --game NAME"
        )
    for where, task in said[1:]:
        if task != said[0][1]:
            raise UsageError(
                f"game ({task}) of {where} must be {said[0][1]}, the game of "
                f"{said[0][0]}; choose players of the same game"
            )
    return said[0][1]


def _count(line: ProgressLine, num_games: int, tally: Tally) -> None:
    """Shows the number of games with a result and A's points on ``line``."""
    line.tell(f"game {tally.num_games} of {num_games}, A has {tally.points:g} points")


def _text(a: str, b: str, report: MatchReport) -> str:
    tally = report.tally
    return "\n".join(
        [
            f"A {a}  {tally.wins} wins, {tally.draws} draws, {tally.losses} losses  "
            f"B {b}",
            f"score of A {tally.score:.3f} in {tally.num_games} games",
            f"Elo of A minus B {tally.elo_text}",
            *_disputed(report),
            *(
                line
                for side, seen in report.engines.items()
                for line in _seen(side, seen)
            ),
        ]
    )


def _disputed(report: MatchReport) -> list[str]:
    """Returns the printed report's lines about disputed games; empty if none."""
    if not report.disputes:
        return []
    num_disputed, num_games = len(report.disputes), len(report.games)
    return [
        f"{num_disputed} of {num_games} games are disputed, and do not count",
        f"  first: {_first_dispute(report)}",
    ]


def _first_dispute(report: MatchReport) -> str:
    index, first = next(iter(report.disputes.items()))
    return f"in game {index} {first.text(first.side.upper())}"


def _seen(side: str, engine: EngineReport) -> list[str]:
    """Returns the printed report's lines about the external engine of ``side``."""
    who = side.upper()
    lines = []
    if engine.num_scored > 0:
        lines.append(
            f"{who} scored {engine.num_scored} games itself: "
            f"{engine.num_disagreements} with another score, "
            f"{engine.num_other_winners} with another winner"
        )
    if engine.first_disagreement:
        lines.append(f"  first: {engine.first_disagreement}")
    if engine.first_illegal:
        lines.append(f"{who} lost {engine.num_illegal} games with an illegal move")
        lines.append(f"  first: {engine.first_illegal}")
    return lines
