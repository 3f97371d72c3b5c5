"""``tengen bench search``: simulations per CPU-second on one core, without a network.

The hash evaluator, which computes outputs from a hash of the position, replaces the
network. The rate therefore covers the game's rules, descents and backups in the tree,
and the softmax of the logits. ``sims_per_cpu_s_encoded`` also includes writing the
planes of each leaf. Each search starts with an empty tree, at a position of a random
game.

With ``--threads`` or ``--net``, several threads search one tree, and the report has a
table. Measurements of its rows are interleaved. A row's speedup is its rate divided by
the rate of one thread with batches of one leaf, as the median over rounds. A network
gains from larger batches as well as from threads, so its table also has a row for one
thread with the batch size of several threads (``batch_rows``).
"""

from __future__ import annotations

import argparse
import dataclasses
import random
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import _core
from tengen.cli.bench.random_model import write_random_model
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.evaluation.players import open_for_play
from tengen.evaluation.searcher import Searcher, batch_rows
from tengen.games import Game, allow, core_game, open_game
from tengen.inference import search_outputs
from tengen.nets import board_of, parse_net
from tengen.run import usable_threads
from tengen.search import MAX_SIMULATIONS, SearchConfig

_ROUND_S = 0.5
_NUM_ROUNDS = 5


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench search``."""
    parser.add_argument("--game", default="gomoku/9", help="the game (gomoku/9)")
    parser.add_argument(
        "--simulations", type=int, default=64, help="simulations per search (64)"
    )
    parser.add_argument("--policy", choices=("puct", "gumbel"), default="puct")
    parser.add_argument(
        "--threads",
        type=int,
        help="number of threads that search one tree, compared with one thread",
    )
    parser.add_argument(
        "--net",
        help="with --threads, the network that evaluates the leaves, BLOCKSxCHANNELS "
        "(no network)",
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark; returns its report, with median rates over the rounds.

    Raises:
        UsageError: An option is invalid.
    """
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    allow(args.game)
    if args.threads is not None or args.net is not None:
        return _run_threads(args)
    settings = SearchConfig(policy=args.policy).to_native()
    game = core_game(open_game(args.game))

    def search(num_searches: int, encode: bool = False, seed: int = 0) -> int:
        return _core.benchmark_search(
            game, settings, args.simulations, num_searches, encode, seed
        )

    num_searches = _calibrate(search, _ROUND_S, time.thread_time)
    rates: dict[bool, list[float]] = {False: [], True: []}
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    for index in range(_NUM_ROUNDS):
        for encode in (False, True):
            before_s = time.thread_time()
            done = search(num_searches, encode, index)
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
    rule = "must be puct if several threads search one tree; use --policy puct"
    check(args.policy == "puct", "policy", args.policy, rule)
    threads = usable_threads(args.threads)
    return run_threads(args.game, args.simulations, threads, args.net)


def _calibrate(
    search: Callable[[int], object], turn_s: float, clock: Callable[[], float]
) -> int:
    """Returns the number of searches that take about ``turn_s`` of ``clock``."""
    num_searches = 1
    while True:
        start_s = clock()
        search(num_searches)
        spent_s = clock() - start_s
        if spent_s > 0.1 * turn_s:
            return max(1, round(num_searches * turn_s / spent_s))
        num_searches *= 2


_TURN_S = 0.5
_NUM_TURNS = 7
_NUM_OPENINGS = 20

Search = Callable[[int], int]
"""A function that runs N searches and returns their total number of simulations."""


@dataclass(frozen=True)
class _Case:
    """The settings of one row of the benchmark's table."""

    evaluator: str
    threads: int
    batch_rows: int


def run_threads(
    game: str, simulations: int, threads: int, net: str | None
) -> dict[str, Any]:
    """Measures threads that search one tree; returns the report as JSON values.

    Args:
        game: A native game.
        simulations: Simulations per search.
        threads: Number of threads that search one tree; also measured with one thread.
        net: ``BLOCKSxCHANNELS`` of a network with random weights, evaluated as in play.
            None to measure without a network, with the null and the hash evaluator.

    Raises:
        UsageError: The game is not native, or the net is not BLOCKSxCHANNELS.
    """
    rules = open_game(game)
    if not isinstance(core_game(rules), str):
        raise UsageError(f"game ({game}) must be a built-in game; try gomoku/9")
    rows = batch_rows(simulations, threads)
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    if net is None:
        shapes = dict.fromkeys([(1, 1), (threads, rows)])
        cases = [_Case(name, *shape) for name in ("null", "hash") for shape in shapes]
        table = _measure_threads(
            cases, [_tree_alone(rules, simulations, c) for c in cases]
        )
    else:
        shapes = dict.fromkeys([(1, 1), (1, rows), (threads, rows)])
        cases = [_Case(net, *shape) for shape in shapes]
        with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
            path = Path(folder) / "model"
            asked = board_of(rules).signature
            write_random_model(path, asked, parse_net(net), with_graph=True)
            searches = [_with_net(rules, path, simulations, case) for case in cases]
            table = _measure_threads(cases, searches)
    return {
        "name": "search",
        "game": game,
        "policy": "puct",
        "simulations": simulations,
        "cores": threads,
        "seconds": round(time.perf_counter() - start_s, 2),
        "cpu_seconds": round(time.process_time() - start_cpu_s, 2),
        "kernels": _core.kernel_name(),
        "sims_per_cpu_s": table[-1]["sims_per_cpu_s"],
        "rows": table,
    }


def _tree_alone(game: Game, simulations: int, case: _Case) -> Search:
    settings = SearchConfig().to_native()

    def search(num_searches: int) -> int:
        return _core.benchmark_threads(
            game.name,
            settings,
            case.evaluator,
            num_simulations=simulations,
            num_searches=num_searches,
            num_threads=case.threads,
            batch_rows=case.batch_rows,
        )

    return search


def _with_net(game: Game, path: Path, simulations: int, case: _Case) -> Search:
    outputs = search_outputs(scores=False)
    backend = open_for_play(path, case.threads, outputs=outputs)
    searcher = Searcher(game, backend, SearchConfig(), case.threads, case.batch_rows)
    request = _core.SearchRequest()
    request.num_simulations = simulations
    num_done = 0

    def search(num_searches: int) -> int:
        nonlocal num_done
        total = 0
        for _ in range(num_searches):
            # Search a new position each time, because the cache has earlier
            # evaluations.
            result = searcher.run(_opening(game, num_done), request)
            total += int(result.num_simulations)
            num_done += 1
        return total

    return search


def _opening(game: Game, index: int) -> list[int]:
    rng = random.Random(index)
    state, moves = game.new_state(), []
    for _ in range(2 + index % _NUM_OPENINGS):
        actions = state.legal_actions()
        nearer = state.clone()
        nearer.apply(action := rng.choice(actions))
        if nearer.is_terminal():
            break
        state = nearer
        moves.append(action)
    return moves


def _measure_threads(
    cases: Sequence[_Case], searches: Sequence[Search]
) -> list[dict[str, Any]]:
    counts = [_calibrate(search, _TURN_S, time.perf_counter) for search in searches]
    per_s: list[list[float]] = [[] for _ in cases]
    per_cpu_s: list[list[float]] = [[] for _ in cases]
    for _ in range(_NUM_TURNS):
        for index, search in enumerate(searches):
            start_s, start_cpu_s = time.perf_counter(), time.process_time()
            done = search(counts[index])
            per_s[index].append(done / (time.perf_counter() - start_s))
            per_cpu_s[index].append(done / (time.process_time() - start_cpu_s))
    table = []
    for index, case in enumerate(cases):
        first = next(i for i, c in enumerate(cases) if c.evaluator == case.evaluator)
        table.append(
            {
                **dataclasses.asdict(case),
                "sims_per_s": statistics.median(per_s[index]),
                "sims_per_cpu_s": statistics.median(per_cpu_s[index]),
                "speedup": _median_ratio(per_s[index], per_s[first]),
                "work_ratio": _median_ratio(per_cpu_s[first], per_cpu_s[index]),
            }
        )
    return table


def _median_ratio(above: Sequence[float], below: Sequence[float]) -> float:
    return statistics.median(a / b for a, b in zip(above, below, strict=True))
