"""``tengen book``: balanced openings for matches, ratings, gates and self-play."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from tengen.config import check, check_range
from tengen.evaluation.match import MAX_SEED
from tengen.games import add_task_argument, openings_text, read_book
from tengen.games.book import BOOK_SCHEMA
from tengen.models import resolve_model
from tengen.observe.progress_line import ProgressLine
from tengen.play.book import MAX_OPENINGS, Opening, find_openings
from tengen.play.loading import load_player
from tengen.run import publish_file
from tengen.search import MAX_SIMULATIONS

__all__ = ["add_arguments", "book"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``book``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="RUN, RUN@17, a model directory, katago:FILE or a bundled player, go/9",
    )
    parser.add_argument("out", metavar="FILE", type=Path, help="the book to write")
    parser.add_argument(
        "--openings",
        type=int,
        default=100,
        metavar="N",
        help="number of openings (100)",
    )
    parser.add_argument(
        "--plies", type=int, default=4, metavar="N", help="moves of each opening (4)"
    )
    parser.add_argument(
        "--within",
        type=float,
        default=0.2,
        metavar="V",
        help="greatest distance of an opening's value from 0, between 0 and 1 (0.2)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=1600,
        metavar="N",
        help="simulations of the search that judges an opening; the search for "
        "each move has a quarter of them (1600)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="temperature of the moves' draw; above 1 it also draws moves that "
        "the search likes less (1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws (0)")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that search one tree (1; only with 1 does the same seed "
        "give the same book)",
    )
    add_task_argument(parser)


def book(args: argparse.Namespace) -> dict[str, Any]:
    """Finds openings and writes them.

    Returns:
        ``out``, ``task``, ``openings`` (how many) and ``book`` (its digest).

    Raises:
        UsageError: The model cannot be used, or a number is out of its range.
        RunError: Fewer openings than asked for were found, or the disk refuses.
    """
    check_range("openings", args.openings, 1, MAX_OPENINGS)
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    check_range("seed", args.seed, 0, MAX_SEED)
    check(0 <= args.within <= 1, "within", args.within, "must be in [0, 1]; use 0.2")
    rule = "must be above 0 and at most 100; use 1"
    check(0 < args.temperature <= 100, "temperature", args.temperature, rule)
    rule = "must be in a folder that exists; make it first"
    check(args.out.absolute().parent.is_dir(), "out", str(args.out), rule)
    model = resolve_model(args.model)
    with load_player(args.model, [], task=args.task, is_fresh=True) as player:
        check_range("plies", args.plies, 1, player.game.max_plies - 1)
        with ProgressLine("searching") as line:
            found = find_openings(
                player,
                num_openings=args.openings,
                num_plies=args.plies,
                num_simulations=args.simulations,
                within=args.within,
                temperature=args.temperature,
                seed=args.seed,
                num_threads=player.usual_threads(args.threads, is_repeatable=True),
                watch=lambda found, tried: line.tell(
                    f"{found} of {args.openings} openings, {tried} tried"
                ),
            )
        made_by = {
            "model": model.meta.sha256,
            "simulations": args.simulations,
            "within": args.within,
            "temperature": args.temperature,
            "seed": args.seed,
        }
        publish_file(args.out, _text(player.game.name, made_by, found).encode())
        written = read_book(args.out, player.game)
    text = openings_text(0, written)
    if not args.json:
        print(f"{args.out}: {text} of {args.plies} plies")
    return {
        "out": str(args.out),
        "task": written.task,
        "openings": len(written.openings),
        "book": written.digest,
    }


def _text(task: str, made_by: dict[str, Any], found: list[Opening]) -> str:
    """Returns the file's text: JSON, one opening a line."""
    openings = ",\n".join(
        json.dumps({"moves": one.moves, "value_to_play": round(one.value_to_play, 4)})
        for one in found
    )
    head = {"schema": BOOK_SCHEMA, "task": task, "made_by": made_by}
    return f'{json.dumps(head)[:-1]},\n"openings": [\n{openings}\n]}}\n'
