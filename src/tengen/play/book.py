"""``tengen book``: finds balanced openings with searches of a model."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tengen.config import check, check_range
from tengen.errors import RunError
from tengen.evaluation.match import MAX_SEED
from tengen.games import (
    Game,
    add_task_argument,
    is_external,
    openings_text,
    position_after,
    read_book,
)
from tengen.games.book import BOOK_SCHEMA, MAX_OPENINGS
from tengen.models import resolve_model
from tengen.observe.progress_line import ProgressLine
from tengen.play.loading import load_player
from tengen.play.player import Player
from tengen.run import publish_file
from tengen.search import MAX_SIMULATIONS

__all__ = ["MAX_OPENINGS", "Opening", "add_arguments", "book", "find_openings"]

# Simulations per move, as a share of the simulations that evaluate a complete opening.
_MOVE_SHARE = 0.25
# Maximum number of tries per requested opening; then ``find_openings`` fails.
_MOST_TRIES = 20
# Added to the sampling weight of each balancing move, because its policy may be 0.
_LEAST_SHARE = 1e-3
# In native games, the first planes show the stones; see core/games/planes.h.
_STONES = 3


@dataclass(frozen=True)
class Opening:
    """A balanced opening and its search value."""

    moves: tuple[int, ...]
    """The opening's actions from the start of the game."""
    value_to_play: float
    """Search value of the position after ``moves`` for the side to move, in [-1, 1]."""


def find_openings(
    player: Player,
    *,
    num_openings: int,
    num_plies: int,
    num_simulations: int,
    within: float,
    temperature: float = 1.0,
    seed: int = 0,
    num_threads: int = 1,
    watch: Callable[[int, int], None] = lambda found, tried: None,
) -> list[Opening]:
    """Returns openings that a search evaluates as nearly even. Blocks.

    All moves except the last are sampled from the policy of a search. The last move is
    sampled from the moves after which the network expects an even game, so that
    openings are found even if moving first is an advantage. Then a longer search
    evaluates the opening. Of openings that differ only by a symmetry of the board or
    the order of moves, only the first is returned.

    Args:
        player: The player that searches. Its tree reuse must be off; otherwise each
            evaluation would depend on the searches before it.
        num_openings: Number of openings to find, 1 to MAX_OPENINGS.
        num_plies: Moves per opening, at least 1. Openings that end the game are
            discarded.
        num_simulations: Simulations that evaluate an opening; the search for each move
            uses a quarter of this number.
        within: Maximum absolute search value of an opening, in [0, 1].
        temperature: Sampling temperature, above 0: moves are sampled in proportion to
            policy ** (1 / temperature).
        seed: Seed of the random numbers for sampling.
        num_threads: Number of threads that search one tree.
        watch: Called after each try with the numbers of openings found and tried.

    Raises:
        RunError: Too few openings were found in ``20 * num_openings`` tries.
    """
    rng = np.random.default_rng(seed)
    found: list[Opening] = []
    seen: set[bytes] = set()
    judged: dict[bytes, float] = {}
    policies: dict[tuple[int, ...], tuple[list[int], NDArray[np.float64]]] = {}
    move_simulations = max(1, int(num_simulations * _MOVE_SHARE))
    for tried in range(1, _MOST_TRIES * num_openings + 1):
        moves: tuple[int, ...] | None = ()
        while moves is not None and len(moves) < num_plies:
            if moves not in policies:
                policies[moves] = _policy(
                    player, moves, move_simulations, temperature, num_threads
                )
                if len(moves) == num_plies - 1:
                    policies[moves] = _balancing(
                        player, moves, *policies[moves], within
                    )
            actions, shares = policies[moves]
            drawn = rng.choice(actions, p=shares) if actions else None
            moves = None if drawn is None else (*moves, int(drawn))
            if moves is not None and position_after(player.game, moves).is_terminal():
                moves = None
        if moves is not None:
            key = _key(player.game, moves)
            if key not in judged:
                analysis = player.analyse(moves, num_simulations, threads=num_threads)
                judged[key] = analysis.value_to_play
            if abs(judged[key]) <= within and key not in seen:
                seen.add(key)
                found.append(Opening(moves, judged[key]))
        watch(len(found), tried)
        if len(found) == num_openings:
            return found
    raise RunError(
        f"openings ({num_openings}) could not be found, only {len(found)} different "
        f"ones of {num_plies} plies are within {within:g}; request fewer, or raise "
        "--within, --plies or --temperature"
    )


def _policy(
    player: Player,
    moves: Sequence[int],
    num_simulations: int,
    temperature: float,
    num_threads: int,
) -> tuple[list[int], NDArray[np.float64]]:
    found = player.analyse(moves, num_simulations, threads=num_threads).actions
    policy = np.array([one.policy for one in found])
    # Divide by the maximum, so that the powers cannot all underflow to 0.
    shares = (policy / policy.max()) ** (1.0 / temperature)
    return [one.action for one in found], shares / shares.sum()


def _balancing(
    player: Player,
    moves: Sequence[int],
    actions: list[int],
    shares: NDArray[np.float64],
    within: float,
) -> tuple[list[int], NDArray[np.float64]]:
    """Returns the actions that lead to even positions, and their probabilities."""
    kept, weights = [], []
    for action, share in zip(actions, shares, strict=True):
        then = [*moves, action]
        if position_after(player.game, then).is_terminal():
            continue
        if abs(player.analyse(then, 1).network_value_to_play) <= within:
            kept.append(action)
            weights.append(share + _LEAST_SHARE)
    total = np.array(weights)
    return kept, total / total.sum() if kept else total


def _key(game: Game, moves: Sequence[int]) -> bytes:
    """Returns an opening's key, equal for all symmetries and orders of its moves."""
    state = position_after(game, moves)
    # Omit the later planes of native games, which depend on the order of moves.
    last = None if is_external(game) else _STONES
    return min(
        state.observation(symmetry)[:last].tobytes()
        for symmetry in range(game.num_symmetries)
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the command-line arguments of ``tengen book`` to ``parser``."""
    parser.add_argument(
        "model",
        metavar="MODEL",
        help="RUN, RUN@17, a model directory, katago:FILE or bundled:go/9",
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
        "--plies", type=int, default=4, metavar="N", help="moves per opening (4)"
    )
    parser.add_argument(
        "--within",
        type=float,
        default=0.2,
        metavar="V",
        help="maximum distance of an opening's value from 0, between 0 and 1 (0.2)",
    )
    parser.add_argument(
        "--simulations",
        type=int,
        default=1600,
        metavar="N",
        help="simulations of the search that evaluates an opening; the search for each "
        "move has a quarter of them (1600)",
    )
    parser.add_argument(
        "--temperature",
        type=float,
        default=1.0,
        metavar="T",
        help="temperature for sampling moves; above 1, moves that the search rates "
        "lower are sampled more often (1)",
    )
    parser.add_argument("--seed", type=int, default=0, help="seed of the sampling (0)")
    parser.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="threads that search one tree (1; with more, the same seed gives "
        "different books)",
    )
    add_task_argument(parser)


def book(args: argparse.Namespace) -> dict[str, Any]:
    """Finds balanced openings and writes them to a file.

    Returns:
        ``out``, ``task``, ``openings`` (the number) and ``book`` (the book's digest).

    Raises:
        UsageError: The model cannot be used, or a number is out of its range.
        RunError: Too few openings were found, or writing to the disk fails.
    """
    check_range("openings", args.openings, 1, MAX_OPENINGS)
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    check_range("seed", args.seed, 0, MAX_SEED)
    check(0 <= args.within <= 1, "within", args.within, "must be in [0, 1]; use 0.2")
    rule = "must be above 0 and at most 100; use 1"
    check(0 < args.temperature <= 100, "temperature", args.temperature, rule)
    rule = "must be in an existing folder; create it first"
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
    """Returns an opening book as JSON text, with one opening per line."""
    openings = ",\n".join(
        json.dumps({"moves": one.moves, "value_to_play": round(one.value_to_play, 4)})
        for one in found
    )
    head = {"schema": BOOK_SCHEMA, "task": task, "made_by": made_by}
    return f'{json.dumps(head)[:-1]},\n"openings": [\n{openings}\n]}}\n'
