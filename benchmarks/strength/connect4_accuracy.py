"""Measures how often a player's move is optimal according to an exact solver.

    python benchmarks/strength/connect4_accuracy.py runs/connect4 --simulations 1 64 \\
        --json
    python benchmarks/strength/connect4_accuracy.py mcts:1000 mcts:10000

Positions are random, of 8 to 30 plies, with at least one legal move that is not
optimal. A move is optimal if it preserves the game's value: a win stays won, a draw
stays drawn. Recipes are tuned on the positions of ``--seed 0`` (``sweep.py``), so the
default is another seed.
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tengen import _core, load
from tengen.play import Player
from tests.oracle.connect4_solver import optimal_moves, random_positions

Choose = Callable[[list[int]], int]


def chooser(word: str, simulations: int) -> Choose:
    """Returns a function from a position's moves to the player's move."""
    if word == "random":
        rng = random.Random(0)
        game = __import__("tengen").games.make("connect4")

        def choose_random(moves: list[int]) -> int:
            state = game.new_state()
            for move in moves:
                state.apply(move)
            return int(rng.choice(state.legal_actions()))

        return choose_random
    if word.startswith("mcts:"):
        playouts = int(word.partition(":")[2])
        return lambda moves: _core.mcts_choose("connect4", moves, playouts, len(moves))
    player = load(word)
    assert isinstance(player, Player)
    return lambda moves: player.choose(moves, simulations=simulations)


def solved_positions(count: int, seed: int) -> list[tuple[list[int], Sequence[int]]]:
    """Returns random positions as lists of moves, each with its optimal moves."""
    return [
        (list(moves), optimal_moves(list(moves)))
        for moves in random_positions(count, 8, 30, seed)
    ]


def optimal_share(
    player: str, simulations: int, positions: list[tuple[list[int], Sequence[int]]]
) -> float:
    """Returns the share of the solved positions in which a player's move is optimal."""
    choose = chooser(player, simulations)
    return sum(choose(moves) in best for moves, best in positions) / len(positions)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("players", nargs="+", help="RUN, RUN@17, mcts:N or random")
    parser.add_argument("--positions", type=int, default=1000)
    parser.add_argument("--simulations", type=int, nargs="+", default=[64])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    # Solve each position once, because the solver takes longer than any player.
    positions = solved_positions(args.positions, args.seed)
    for player, simulations in itertools.product(args.players, args.simulations):
        start_s = time.perf_counter()
        share = optimal_share(player, simulations, positions)
        report = {
            "name": "connect4_accuracy",
            "player": player,
            "positions": len(positions),
            "simulations": simulations,
            "optimal_share": share,
            "seconds": round(time.perf_counter() - start_s, 1),
        }
        print(json.dumps(report) if args.json else report, flush=True)


if __name__ == "__main__":
    main()
