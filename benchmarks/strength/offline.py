"""Compares learners on the frozen games of one run, at equal CPU-seconds.

    python benchmarks/strength/offline.py RUN --cpu-seconds 60 --seeds 3 --arm base \\
        --arm adamw learner.optimizer.kind=adamw

Each arm trains the run's initial network from scratch, with the run's config and the
arm's settings, on 90 % of the games, for equal CPU-seconds of one thread, and with the
cool-down of the learning rate. Then the losses of the averaged network on rows of the
other games are computed. Prints a line per arm and seed, and a table of means with 95 %
confidence intervals. A lower loss does not prove a stronger player: self-play with
another learner plays other games.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from intervals import interval, welch

from tengen import games
from tengen.agents.alphazero import AlphaZero
from tengen.agents.alphazero_loss import AlphaZeroUpdate
from tengen.experience import GameWindow, SamplesPerInsertConfig, WindowConfig
from tengen.nets import board_of
from tengen.overrides import override
from tengen.roles.config.run_file import read_config
from tengen.run import RunDirectory, keep_freed_memory
from tengen.run.machine import machine_line

_HELD_OUT = 0.1
_STEPS_AT_ONCE = 10


def trained(
    path: Path, settings: list[str], seed: int, cpu_seconds: float, num_rows: int
) -> dict[str, float]:
    """Trains a network, and returns its held-out losses, steps and CPU-seconds."""
    import torch

    from tengen.learners import Learner

    torch.set_num_threads(1)
    keep_freed_memory()
    run = RunDirectory(path)
    config = override(read_config(run), settings)
    agent = AlphaZero.of(config.agent, "offline")
    assert isinstance(config.store, WindowConfig)
    store = dataclasses.replace(
        config.store,
        min_rows=1,
        max_rows=1 << 40,
        expand_per_row=1.0,
        taper_exponent=1.0,
        validation_share=_HELD_OUT,
        limiter=SamplesPerInsertConfig(samples_per_row=1e9, max_samples=1 << 60),
    )
    # The same rows of the held-out games for all arms and seeds.
    auxiliary = bool(getattr(config.net, "auxiliary", False))
    held_out = GameWindow(config.task, run.experience, store, 0, auxiliary=auxiliary)
    held_out.refresh()
    columns = held_out.validation(num_rows)
    assert columns is not None
    window = GameWindow(config.task, run.experience, store, seed, auxiliary=auxiliary)
    window.refresh()
    torch.manual_seed(seed)
    net = config.net.build(board_of(games.open_game(config.task)).signature)
    update = AlphaZeroUpdate(agent.loss)
    with Learner(config.learner, net, update, window) as learner:
        begun_s = time.process_time()
        while (spent_s := time.process_time() - begun_s) < cpu_seconds:
            learner.remaining = 1.0 - spent_s / cpu_seconds
            for _ in learner.steps(_STEPS_AT_ONCE):
                pass
        losses = learner.validate(columns)
        return {**losses, "num_steps": learner.num_steps, "cpu_s": round(spent_s, 1)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument(
        "--arm", nargs="+", action="append", required=True, metavar="NAME a.b=v"
    )
    parser.add_argument("--cpu-seconds", type=float, default=100.0)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=16_384, help="held-out rows")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = "1"
    losses: dict[str, list[dict[str, float]]] = {name: [] for name, *_ in args.arm}
    with ProcessPoolExecutor(args.jobs, get_context("spawn")) as pool:
        begun = [
            (name, seed, pool.submit(trained, args.run, settings, seed, *_of(args)))
            for seed in range(args.seeds)
            for name, *settings in args.arm
        ]
        for name, seed, future in begun:
            losses[name].append(future.result())
            print(json.dumps({"arm": name, "seed": seed, **losses[name][-1]}))
    print(f"\n{args.run}, {machine_line()}\n")
    _print_table(losses)


def _of(args: argparse.Namespace) -> tuple[float, int]:
    return args.cpu_seconds, args.rows


def _print_table(losses: dict[str, list[dict[str, float]]]) -> None:
    first = next(iter(losses))
    names = list(losses[first][0])
    print(f"| arm | {' | '.join(names)} | loss against {first}, 95 % |")
    print("|---" * (len(names) + 2) + "|")
    for arm, rows in losses.items():
        cells: list[Any] = [arm]
        for name in names:
            values = [row[name] for row in rows]
            mean, found = sum(values) / len(values), interval(values)
            half = "" if found is None else f" +- {(found[1] - found[0]) / 2:.4f}"
            whole = name in ("num_steps", "cpu_s")
            cells.append(f"{mean:.0f}" if whole else f"{mean:.4f}{half}")
        found = welch(
            [row["loss"] for row in rows], [row["loss"] for row in losses[first]]
        )
        text = "" if found is None else f"{found[0]:+.4f} to {found[1]:+.4f}"
        cells.append("" if arm == first else text)
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
