"""Self-play against the backend alone: what share of its best rate games can use.

Rounds take turns in one process: the backend evaluates fixed batches of real positions
as fast as it can, at its best batch size, then games are played, written durably, with
the same model and threads. The share is the median over pairs of neighbouring rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tengen import _core, games
from tengen.actors import GenerationReport, SelfplayConfig, play_generation
from tengen.config import check_range
from tengen.inference import Backend, InferenceConfig, choose, open_backend
from tengen.models import (
    ModelExporter,
    ModelMeta,
    can_quantise,
    publish_model,
    quantise,
)
from tengen.nets import FeatureSpec, parse_net
from tengen.run import RunDirectory, available_cores
from tengen.store import ExperienceWriter

__all__ = ["add_arguments", "run"]

_BATCHES = (8, 16, 32, 64)
_ROUND_S = 3.0
_NUM_ROUNDS = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench selfplay``."""
    parser.add_argument("--game", default="gomoku/9", help="a native game (gomoku/9)")
    parser.add_argument("--net", default="6x96", help="blocks x channels (6x96)")
    parser.add_argument("--cores", type=int, help="worker threads (all cores)")
    parser.add_argument("--simulations", type=int, default=64, help="a search (64)")
    parser.add_argument("--slots", type=int, default=16, help="games a thread (16)")
    parser.add_argument("--cache-mib", type=int, default=64, help="a thread (64)")
    parser.add_argument(
        "--backend", choices=("auto", "openvino", "torch"), default="auto"
    )
    parser.add_argument(
        "--precision", choices=("auto", "fp32", "bf16", "int8"), default="auto"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the shares and rates; pins this process to the cores it measures.

    Raises:
        UsageError: An option is refused.
        RunError: The backend refuses the model, or the disk is full.
    """
    most = available_cores()
    cores = most if args.cores is None else args.cores
    check_range("cores", cores, 1, most, "leave it out for all of them")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    config = SelfplayConfig(
        full_simulations=args.simulations,
        num_slots=args.slots,
        cache_mib=args.cache_mib,
        max_opening_plies=4,
    )
    inference = InferenceConfig(backend=args.backend, precision=args.precision)
    start_s, start_cpu_s = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        bench = _Bench(args.game, args.net, config, inference, Path(folder), cores)
        rounds = [bench.pair(index) for index in range(_NUM_ROUNDS)]
        best_batch = bench.best_batch
    report = {
        "name": "selfplay",
        "game": args.game,
        "net": args.net,
        "cores": cores,
        "seconds": time.perf_counter() - start_s,
        "cpu_seconds": time.process_time() - start_cpu_s,
        "backend": bench.backend.name,
        "precision": bench.backend.precision,
        "simulations": args.simulations,
        "slots": args.slots,
        "best_batch": best_batch,
    }
    for field in _Pair.__dataclass_fields__:
        report[field] = statistics.median(getattr(pair, field) for pair in rounds)
    return report


@dataclass(frozen=True)
class _Pair:
    """One round of the backend and the round of games after it."""

    share_of_backend: float
    """Evaluations per second of games over those of the backend alone."""
    share_of_backend_cpu: float
    """The same per CPU-second, for busy machines."""
    backend_evals_per_s: float
    backend_evals_per_cpu_s: float
    evals_per_s: float
    evals_per_cpu_s: float
    rows_per_s: float
    rows_per_cpu_s: float
    simulations_per_s: float
    simulations_per_cpu_s: float
    games_per_s: float
    batch_rows: float
    cache_hit_share: float


class _Bench:
    def __init__(
        self,
        game: str,
        net: str,
        config: SelfplayConfig,
        inference: InferenceConfig,
        folder: Path,
        cores: int,
    ) -> None:
        self._game = game
        self._config = config
        self._cores = cores
        self._run = RunDirectory.create_or_resume(folder)
        self._writer = ExperienceWriter(self._run.experience / "bench", 1)
        rules = games.make(game)
        features = FeatureSpec(
            num_planes=rules.num_planes,
            height=rules.height,
            width=rules.width,
            num_actions=rules.num_actions,
            policy_layout=rules.policy_layout,
        )
        self._planes = games.random_positions(rules, 256, seed=0)
        directory = _publish(self._run, game, features, net)
        if inference.backend != "torch" and can_quantise():
            quantise(directory, self._planes)
        self._rules = rules
        choice = choose(directory, inference, self._planes, rules.num_actions, cores)
        self._num_actions = rules.num_actions
        self.backend: Backend = open_backend(directory, choice.config, cores)
        rates = {batch: self._raw(batch, 0.5)[0] for batch in _BATCHES}
        self.best_batch = max(rates, key=lambda batch: rates[batch])

    def pair(self, index: int) -> _Pair:
        """Measures the backend, then games."""
        raw_s, raw_cpu_s = self._raw(self.best_batch, _ROUND_S)
        played, cpu_s = self._play(index)
        evals_per_s = played.num_evaluations / played.seconds
        evals_per_cpu_s = played.num_evaluations / cpu_s
        looked_up = played.num_cache_hits + played.num_evaluations
        return _Pair(
            share_of_backend=evals_per_s / raw_s,
            share_of_backend_cpu=evals_per_cpu_s / raw_cpu_s,
            backend_evals_per_s=raw_s,
            backend_evals_per_cpu_s=raw_cpu_s,
            evals_per_s=evals_per_s,
            evals_per_cpu_s=evals_per_cpu_s,
            rows_per_s=played.num_rows / played.seconds,
            rows_per_cpu_s=played.num_rows / cpu_s,
            simulations_per_s=played.num_simulations / played.seconds,
            simulations_per_cpu_s=played.num_simulations / cpu_s,
            games_per_s=played.num_games / played.seconds,
            batch_rows=played.num_evaluations / played.num_batches,
            cache_hit_share=played.num_cache_hits / looked_up,
        )

    def _raw(self, batch: int, seconds: float) -> tuple[float, float]:
        """Returns evaluations per second and per CPU-second of the backend alone."""
        counts = [0] * self._cores
        barrier = threading.Barrier(self._cores + 1)
        end_s = [0.0]

        def work(index: int) -> None:
            order = np.arange(batch) + index * batch
            rows = self._planes[order % len(self._planes)].copy()
            policy = np.zeros((batch, self._num_actions), np.float32)
            value = np.zeros(batch, np.float32)
            runner = self.backend.bind(rows, policy, value)
            runner.run(batch)
            barrier.wait()
            while time.perf_counter() < end_s[0]:
                runner.run(batch)
                counts[index] += batch

        threads = [threading.Thread(target=work, args=(i,)) for i in range(self._cores)]
        for thread in threads:
            thread.start()
        end_s[0] = time.perf_counter() + 3600.0
        barrier.wait()
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        end_s[0] = start_s + seconds
        for thread in threads:
            thread.join()
        spent_s = time.perf_counter() - start_s
        return sum(counts) / spent_s, sum(counts) / (time.process_time() - start_cpu_s)

    def _play(self, index: int) -> tuple[GenerationReport, float]:
        queue = _core.GameQueue(
            seed=index, generation=index + 1, model=0, num_games=10_000_000
        )
        segment = self._writer.open_games(index + 1, self._game)
        timer = threading.Timer(_ROUND_S, queue.stop)
        start_cpu_s = time.process_time()
        timer.start()
        try:
            played = play_generation(
                self._rules,
                self._config,
                self.backend,
                queue,
                segment.sink,
                num_threads=self._cores,
            )
        finally:
            timer.cancel()
        cpu_s = time.process_time() - start_cpu_s
        segment.close()
        return played, cpu_s


def _publish(run: RunDirectory, game: str, features: FeatureSpec, net: str) -> Path:
    """Publishes a model with random weights; speed does not depend on them."""
    import torch

    from tengen.nets import build_net

    torch.manual_seed(0)
    config = parse_net(net)
    weights = build_net(features, config).state_dict()
    meta = ModelMeta(
        task=game,
        agent="alphazero",
        net=config,
        features=features,
        generation=0,
        num_steps=0,
        num_samples=0,
        sha256={},
    )
    tensors = {name: tensor.numpy() for name, tensor in weights.items()}
    return publish_model(run.candidates, 0, meta, tensors, ModelExporter()).path
