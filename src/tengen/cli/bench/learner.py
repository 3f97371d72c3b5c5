"""``tengen bench learner``: rows per CPU-second of a learner that trains on games.

The benchmark first plays games with few simulations and random evaluations. Then it
measures two rates: of sampling and deriving rows alone, and of learning from rows.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

from tengen import _core, games
from tengen.actors import SelfplayConfig, play_generation
from tengen.agents.alphazero_loss import AlphaZeroLossConfig, AlphaZeroUpdate
from tengen.cli.bench.no_net import RandomBackend
from tengen.cli.bench.random_model import bench_net
from tengen.config import check, check_range
from tengen.experience import (
    ExperienceWriter,
    GameWindow,
    SamplesPerInsertConfig,
    WindowConfig,
)
from tengen.inference import (
    check_device_words,
    parse_devices,
)
from tengen.learners import LearnerConfig
from tengen.nets import NetConfig, board_of
from tengen.run import RunDirectory, available_cores, keep_freed_memory

_MAX_GAMES = 1_000_000
_MAX_BATCH = 65_536
_MAX_SECONDS = 86_400.0
# A warm-up long enough to start all threads and to allocate all buffers.
_NUM_WARMUP_STEPS = 3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen bench learner``."""
    parser.add_argument("--game", default="gomoku/9", help="the game (gomoku/9)")
    parser.add_argument(
        "--net",
        default="6x96",
        help="the network, BLOCKSxCHANNELS or minigo:6x64 (6x96)",
    )
    parser.add_argument(
        "--auxiliary",
        action="store_true",
        help="give the network auxiliary heads, and the rows their targets",
    )
    parser.add_argument(
        "--threads", type=int, help="threads of the learner (all cores)"
    )
    parser.add_argument(
        "--batch", type=int, default=256, help="rows per learner step (256)"
    )
    parser.add_argument(
        "--shards", type=int, help="parts of a batch, one pass each (at most 2)"
    )
    parser.add_argument(
        "--device", default="cpu", help="the device that computes the steps (cpu)"
    )
    parser.add_argument(
        "--games", type=int, default=64, help="number of games to learn from (64)"
    )
    parser.add_argument(
        "--seconds", type=float, default=10.0, help="seconds of learning (10)"
    )


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark and returns its report as JSON values.

    Raises:
        UsageError: An option is invalid.
        RunError: The disk is full.
    """
    most = available_cores()
    num_threads = most if args.threads is None else args.threads
    check_range("threads", num_threads, 1, most, "leave it out for all of them")
    check_range("batch", args.batch, 1, _MAX_BATCH)
    num_shards = min(2, args.batch) if args.shards is None else args.shards
    check_range("shards", num_shards, 1, args.batch)
    check(args.device != "auto", "device", "auto", "must be a device, such as cuda:0")
    check_device_words("device", args.device)
    parse_devices("device", args.device)
    config = LearnerConfig(
        batch_size=args.batch,
        num_shards=num_shards,
        device=args.device,
    )
    check_range("games", args.games, 1, _MAX_GAMES)
    check(
        0 < args.seconds <= _MAX_SECONDS,
        "seconds",
        args.seconds,
        "must be positive; use 10",
    )
    net = bench_net(args.net, auxiliary=args.auxiliary)
    games.allow(args.game)
    with tempfile.TemporaryDirectory(prefix="tengen-bench-") as folder:
        window = played_window(args.game, args.games, args.auxiliary, Path(folder))
        derived = _derive(window, args.batch)
        learned = _learn(window, net, config, num_threads, args.seconds)
    return {
        "name": "learner",
        "game": args.game,
        "net": args.net,
        "auxiliary": args.auxiliary,
        "threads": num_threads,
        "batch": args.batch,
        "shards": config.num_shards,
        "device": config.device,
        "window_rows": window.num_rows,
        **derived,
        **learned,
    }


def played_window(
    game: str, num_games: int, auxiliary: bool, folder: Path
) -> GameWindow:
    """Plays games with random evaluations; returns a window over their rows.

    Args:
        game: The game's name.
        num_games: Number of games.
        auxiliary: Whether rows have auxiliary targets.
        folder: An empty folder. It becomes the run directory.
    """
    rules = games.open_game(game)
    run = RunDirectory.create_or_resume(folder)
    writer = ExperienceWriter(run.experience / "selfplay-0", 1)
    segment = writer.open_games(1, game)
    play_generation(
        rules,
        SelfplayConfig(full_simulations=8, max_opening_plies=4),
        RandomBackend(board_of(rules).signature),
        _core.GameQueue(seed=0, generation=1, model=0, num_games=num_games),
        segment.sink,
        num_threads=1,
    )
    segment.close()
    writer.seal(1)
    config = WindowConfig(
        min_rows=1, expand_per_row=1.0, taper_exponent=1.0, limiter=_without_limit()
    )
    window = GameWindow(game, run.experience, config, seed=0, auxiliary=auxiliary)
    window.refresh()
    return window


def _without_limit() -> SamplesPerInsertConfig:
    return SamplesPerInsertConfig(samples_per_row=1e9, max_samples=1 << 60)


def _derive(window: GameWindow, batch: int) -> dict[str, float]:
    """Samples and derives batches for one CPU-second; returns this thread's rate."""
    num_rows, start_s = 0, time.thread_time()
    while time.thread_time() - start_s < 1.0:
        window.sample(batch).ack()
        num_rows += batch
    return {"derived_rows_per_cpu_s": num_rows / (time.thread_time() - start_s)}


def _learn(
    window: GameWindow,
    net: NetConfig,
    config: LearnerConfig,
    num_threads: int,
    seconds: float,
) -> dict[str, float]:
    import torch

    from tengen.learners import Learner

    keep_freed_memory()
    torch.manual_seed(0)
    wanted = board_of(games.open_game(window.game)).signature
    learner = Learner(
        config,
        net.build(wanted),
        AlphaZeroUpdate(AlphaZeroLossConfig()),
        window,
        num_threads=num_threads,
        device=config.device,
    )
    with learner:
        for _ in learner.steps(_NUM_WARMUP_STEPS):
            pass
        start_s, start_cpu_s = time.perf_counter(), time.process_time()
        num_steps, wait_s = 0, 0.0
        while time.perf_counter() - start_s < seconds:
            for metrics in learner.steps(10):
                num_steps += 1
                wait_s += metrics["sample_wait_s"]
        passed_s = time.perf_counter() - start_s
        cpu_s = time.process_time() - start_cpu_s
    return {
        "rows_per_s": num_steps * config.batch_size / passed_s,
        "rows_per_cpu_s": num_steps * config.batch_size / cpu_s,
        "share_waiting": wait_s / passed_s,
        "cores_busy": cpu_s / passed_s,
    }
