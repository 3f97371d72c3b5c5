"""``tengen bench selfplay``: self-play's evaluation rate, relative to the backend's.

Two kinds of rounds alternate in one process. In a backend round, the backend evaluates
fixed batches of real positions at its fastest batch size. In a self-play round, games
are played and written to disk with the same model and as many threads. The share is the
median over pairs of one backend round and the self-play round after it.

Each self-play round starts new games, and counts rows only of games that end in the
round. The row rate is therefore unknown if no game ends in a round, and too low unless
a round is much longer than a game. ``plies_per_s`` counts all searched plies.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tengen import _core, games
from tengen.actors import (
    MAX_SLOTS,
    GenerationReport,
    SelfplayConfig,
    play_generation,
)
from tengen.cli.bench.backend_alone import BackendAlone, DevicesAlone, ThreadsAlone
from tengen.cli.bench.no_net import NO_NET, RandomBackend
from tengen.cli.bench.random_model import bench_net, write_random_model
from tengen.config import check, check_range
from tengen.errors import UsageError
from tengen.experience import ExperienceWriter
from tengen.inference import (
    Backend,
    InferenceConfig,
    LaneBackend,
    choose,
    open_backend,
)
from tengen.models import (
    can_quantise,
    quantise,
)
from tengen.nets import board_of
from tengen.run import RunDirectory, available_cores
from tengen.search import MAX_SIMULATIONS, SearchConfig

# More games than can be played in one round.
_NUM_GAMES = 10_000_000
_MAX_ROUNDS = 10_000
# In a shorter round, a backend might not finish a single batch.
_MIN_ROUND_S, _MAX_ROUND_S = 0.1, 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench selfplay``."""
    parser.add_argument("--game", default="gomoku/9", help="the game (gomoku/9)")
    parser.add_argument(
        "--net",
        default="6x96",
        help="the network, BLOCKSxCHANNELS, minigo:6x64 for a network of MLPerf's "
        "benchmark, or lines for one of line patterns (6x96)",
    )
    parser.add_argument("--cores", type=int, help="worker threads (all cores)")
    parser.add_argument(
        "--policy", choices=("puct", "gumbel", "minigo"), default="puct"
    )
    parser.add_argument(
        "--simulations", type=int, default=64, help="simulations per full search (64)"
    )
    parser.add_argument(
        "--cheap-simulations",
        type=int,
        default=16,
        help="simulations per cheap search (16)",
    )
    parser.add_argument(
        "--full-share",
        type=float,
        default=1.0,
        help="share of the plies with a full search; the others have a cheap one (1)",
    )
    parser.add_argument(
        "--slots", type=int, default=64, help="concurrent games per thread (64)"
    )
    parser.add_argument(
        "--cache-mib",
        type=int,
        default=64,
        help="memory for cached evaluations per thread, in MiB (64)",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=4,
        help="rounds of self-play, and of the backend alone (4)",
    )
    parser.add_argument(
        "--round-s", type=float, default=3.0, help="seconds per round (3)"
    )
    parser.add_argument(
        "--devices",
        default="auto",
        help="the network's device: cpu, cuda:0, ... (auto)",
    )
    parser.add_argument(
        "--device-rows",
        type=int,
        default=0,
        help="batch size on a GPU (the smallest one with nearly the best throughput)",
    )
    parser.add_argument(
        "--backend", choices=("auto", "openvino", "torch", "native"), default="auto"
    )
    parser.add_argument(
        "--precision", choices=("auto", "fp32", "bf16", "int8"), default="auto"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark on ``args.cores`` cores; returns its report.

    Pins this process to these cores.

    Raises:
        UsageError: An option is invalid.
        RunError: The backend rejects the model, or the disk is full.
    """
    most = available_cores()
    cores = most if args.cores is None else args.cores
    check_range("cores", cores, 1, most, "leave it out for all of them")
    _check_work(args)
    games.allow(args.game)
    rules = games.open_game(args.game)
    SearchConfig(policy=args.policy).check_game(games.is_external(rules))
    check(
        cores == 1 or not games.is_external(rules),
        "game",
        args.game,
        f"must be a built-in game for {cores} cores, because Python runs one thread at "
        "a time; use --cores 1, which measures one self-play process of a run",
    )
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    config = SelfplayConfig(
        games_per_generation=_NUM_GAMES,
        search=SearchConfig(policy=args.policy),
        full_simulations=args.simulations,
        cheap_simulations=args.cheap_simulations,
        full_probability=args.full_share,
        num_slots=args.slots,
        cache_mib=args.cache_mib,
        max_opening_plies=4,
    )
    inference = InferenceConfig(
        devices=args.devices,
        backend=args.backend,
        precision=args.precision,
        device_rows=args.device_rows,
    )
    if args.net != NO_NET:
        # Reject an invalid network before creating any folder or model.
        bench_net(args.net).signature(board_of(rules).signature)
    elif (args.devices, args.backend, args.precision) != ("auto",) * 3:
        raise UsageError(
            f"net ({NO_NET}) needs no device, backend or precision; leave them out"
        )
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        bench = _Bench(
            rules, args.net, config, inference, Path(folder), cores, args.round_s
        )
        rounds = [bench.pair(index) for index in range(args.rounds)]
        best_batch = bench.alone.best_batch
    report = {
        "name": "selfplay",
        "game": args.game,
        "net": args.net,
        "policy": args.policy,
        "cores": cores,
        "seconds": time.perf_counter() - start_s,
        "cpu_seconds": time.process_time() - start_cpu_s,
        "devices": bench.inference.devices,
        "backend": bench.backend.name,
        "precision": bench.backend.precision,
        "simulations": args.simulations,
        "cheap_simulations": args.cheap_simulations,
        "full_share": args.full_share,
        "slots": args.slots,
        "best_batch": best_batch,
    }
    peak_rss_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    report["peak_rss_bytes"] = 1024 * peak_rss_kib
    for field in _Pair.__dataclass_fields__:
        report[field] = _median([getattr(pair, field) for pair in rounds])
    note = _note([pair.num_games for pair in rounds], cores * args.slots)
    return report if note is None else {**report, "note": note}


def _rate(num_things: int, seconds: float, num_seen: int) -> float | None:
    """Returns ``num_things`` per second, or None if ``num_seen`` is 0."""
    return num_things / seconds if num_seen else None


def _median(values: list[float | None]) -> float | None:
    """Returns the median, or None if any value is None: the others would be biased."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if len(known) == len(values) else None


def _note(num_games: list[int], num_slots: int) -> str | None:
    """Returns a warning if too few games ended for a reliable row rate, or None."""
    unended = sum(num == 0 for num in num_games)
    if unended:
        return (
            f"no game ended in {unended} of {len(num_games)} rounds, so games/s and "
            "rows/s are unknown; raise --round-s"
        )
    if min(num_games) < num_slots:
        return (
            f"a round ended only {min(num_games)} games, with {num_slots} in progress, "
            "so games/s and rows/s are too low; raise --round-s"
        )
    return None


def _check_work(args: argparse.Namespace) -> None:
    """Checks the numeric options; error messages name the options."""
    check_range("simulations", args.simulations, 1, MAX_SIMULATIONS)
    check_range("cheap-simulations", args.cheap_simulations, 1, MAX_SIMULATIONS)
    share = args.full_share
    check(0 < share <= 1, "full-share", share, "must be in (0, 1]; leave it out for 1")
    check_range("slots", args.slots, 1, MAX_SLOTS, "8 to 64 suits a CPU")
    check_range("rounds", args.rounds, 1, _MAX_ROUNDS)
    check_range("round-s", args.round_s, _MIN_ROUND_S, _MAX_ROUND_S, "3 suits most")


@dataclass(frozen=True)
class _Pair:
    """The results of a backend round and of the self-play round after it."""

    share_of_backend: float
    """Self-play's evaluations per second, divided by those of the backend alone."""
    share_of_backend_cpu: float
    """As ``share_of_backend``, but per CPU-second; more reliable on a busy machine."""
    backend_evals_per_s: float
    backend_evals_per_cpu_s: float
    evals_per_s: float
    evals_per_cpu_s: float
    plies_per_s: float | None
    """Searched plies per second, also of unfinished games; None if there are none."""
    plies_per_cpu_s: float | None
    rows_per_s: float | None
    """Rows per second, of games that ended in the round; None if none ended."""
    rows_per_cpu_s: float | None
    simulations_per_s: float
    simulations_per_cpu_s: float
    num_games: int
    """Number of games that ended in the self-play round."""
    games_per_s: float | None
    batch_rows: float
    batch_capacity: float
    inference_busy: float
    cores_busy: float
    cache_hit_share: float


class _Bench:
    def __init__(
        self,
        rules: games.Game,
        net: str,
        config: SelfplayConfig,
        inference: InferenceConfig,
        folder: Path,
        cores: int,
        round_s: float,
    ) -> None:
        self._config = config
        self._cores = cores
        self._round_s = round_s
        self._run = RunDirectory.create_or_resume(folder)
        self._writer = ExperienceWriter(self._run.experience / "bench", 1)
        self._planes = games.random_positions(rules, 256, seed=0)
        self._rules = rules
        self.inference = inference
        rows_per_s: Mapping[str, float] = {}
        self.backend: Backend = RandomBackend(board_of(rules).signature)
        if net != NO_NET:
            directory = write_random_model(
                self._run.candidates.entry(0),
                board_of(rules).signature,
                bench_net(net),
                task=rules.name,
                with_graph=not bench_net(net).is_native,
            )
            # As in training, make no int8 model of a network that cannot be quantised.
            is_fit = bench_net(net).can_quantise and can_quantise()
            if inference.backend != "torch" and is_fit:
                quantise(directory, self._planes)
            # Even if ``device_rows`` is set, try all batch sizes to find the fastest.
            tried = dataclasses.replace(inference, device_rows=0)
            choice = choose(directory, tried, {"planes": self._planes}, cores)
            self.inference, rows_per_s = choice.config, choice.rows_per_s
            if inference.device_rows:
                self.inference = dataclasses.replace(
                    self.inference, device_rows=inference.device_rows
                )
            self.backend = open_backend(directory, self.inference, cores)
        self.alone = self._alone(rows_per_s)

    def pair(self, index: int) -> _Pair:
        """Measures one round of the backend, then one round of self-play."""
        raw_s, raw_cpu_s = self.alone.measure(self._round_s)
        played, cpu_s = self._play(index)
        evals_per_s = played.num_evaluations / played.seconds
        evals_per_cpu_s = played.num_evaluations / cpu_s
        return _Pair(
            share_of_backend=evals_per_s / raw_s,
            share_of_backend_cpu=evals_per_cpu_s / raw_cpu_s,
            backend_evals_per_s=raw_s,
            backend_evals_per_cpu_s=raw_cpu_s,
            evals_per_s=evals_per_s,
            evals_per_cpu_s=evals_per_cpu_s,
            plies_per_s=_rate(played.num_plies, played.seconds, played.num_plies),
            plies_per_cpu_s=_rate(played.num_plies, cpu_s, played.num_plies),
            rows_per_s=_rate(played.num_rows, played.seconds, played.num_games),
            rows_per_cpu_s=_rate(played.num_rows, cpu_s, played.num_games),
            simulations_per_s=played.num_simulations / played.seconds,
            simulations_per_cpu_s=played.num_simulations / cpu_s,
            num_games=played.num_games,
            games_per_s=_rate(played.num_games, played.seconds, played.num_games),
            batch_rows=played.batch_rows,
            batch_capacity=played.batch_capacity,
            inference_busy=played.inference_s / played.threads_s,
            cores_busy=played.cores_busy,
            cache_hit_share=played.cache_hit_share,
        )

    def _alone(self, rows_per_s: Mapping[str, float]) -> BackendAlone:
        if isinstance(self.backend, LaneBackend):
            rates = {int(rows): rate for rows, rate in rows_per_s.items()}
            return DevicesAlone(self.backend, rates)
        return ThreadsAlone(self.backend, self._planes, self._cores)

    def _play(self, index: int) -> tuple[GenerationReport, float]:
        queue = _core.GameQueue(
            seed=index, generation=index + 1, model=0, num_games=_NUM_GAMES
        )
        segment = self._writer.open_games(index + 1, self._rules.name)
        ends_s: list[float] = []

        def watch(num_games: int, num_evaluations: int) -> None:
            # When this is first called, the devices are ready: the round begins.
            if not ends_s:
                ends_s.append(time.monotonic() + self._round_s)
            if time.monotonic() >= ends_s[0]:
                queue.stop()

        start_cpu_s = time.process_time()
        played = play_generation(
            self._rules,
            self._config,
            self.backend,
            queue,
            segment.sink,
            num_threads=self._cores,
            on_progress=watch,
            progress_interval_s=0.02,
        )
        cpu_s = time.process_time() - start_cpu_s
        segment.close()
        return played, cpu_s
