"""``tengen bench search``: simulations per CPU-second on one core, without a network.

The hash evaluator stands in for the network. What is measured are the rules, the tree,
the softmax of the hash evaluator's logits and the backups. ``sims_per_cpu_s_encoded``
also writes the planes of every leaf. Trees start empty at each position of random
games.

With ``--threads`` or ``--net`` one tree is searched by several threads instead, see
tengen.bench.tree_threads.
"""

from __future__ import annotations

import argparse
import statistics
import time
from typing import Any

from tengen import _core
from tengen.bench import tree_threads
from tengen.config import check, check_range
from tengen.games import CoreGame, allow, core_game, open_game
from tengen.run import usable_threads
from tengen.search import MAX_SIMULATIONS, SearchConfig

__all__ = ["add_arguments", "run"]

_ROUND_S = 0.5
_NUM_ROUNDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench search``."""
    parser.add_argument("--game", default="gomoku/9", help="the game (gomoku/9)")
    parser.add_argument(
        "--simulations", type=int, default=64, help="simulations of a search (64)"
    )
    parser.add_argument("--policy", choices=("puct", "gumbel"), default="puct")
    parser.add_argument(
        "--threads",
        type=int,
        help="threads that search one tree, compared with one thread",
    )
    parser.add_argument(
        "--net",
        help="with --threads, a network that evaluates the leaves, blocks x "
        "channels (no network)",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the medians of some rounds, in turns with and without writing planes.

    Raises:
        UsageError: An option is refused.
    """
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    allow(args.game)
    if args.threads is not None or args.net is not None:
        return _run_threads(args)
    settings = SearchConfig(policy=args.policy).to_native()
    game = core_game(open_game(args.game))
    num_searches = _calibrate(game, settings, args.simulations)
    rates: dict[bool, list[float]] = {False: [], True: []}
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    for index in range(_NUM_ROUNDS):
        for encode in (False, True):
            before_s = time.thread_time()
            done = _core.benchmark_search(
                game, settings, args.simulations, num_searches, encode, index
            )
            rates[encode].append(done / (time.thread_time() - before_s))
    return {
        "name": "search",
        "game": args.game,
        "policy": args.policy,
        "simulations": args.simulations,
        "cores": 1,
        "seconds": time.perf_counter() - start_s,
        "cpu_seconds": time.process_time() - start_cpu_s,
        "kernels": _core.kernel_name(),
        "sims_per_cpu_s": statistics.median(rates[False]),
        "sims_per_cpu_s_encoded": statistics.median(rates[True]),
    }


def _run_threads(args: argparse.Namespace) -> dict[str, Any]:
    rule = "must be puct where threads search one tree; use --policy puct"
    check(args.policy == "puct", "policy", args.policy, rule)
    threads = usable_threads(args.threads)
    return tree_threads.run(args.game, args.simulations, threads, args.net)


def _calibrate(
    game: CoreGame, settings: _core.SearchSettings, num_simulations: int
) -> int:
    """Returns how many searches take about a round."""
    num_searches = 8
    while True:
        before_s = time.thread_time()
        _core.benchmark_search(game, settings, num_simulations, num_searches, False, 0)
        spent_s = time.thread_time() - before_s
        if spent_s > 0.1 * _ROUND_S:
            return max(1, round(num_searches * _ROUND_S / spent_s))
        num_searches *= 2
