"""Tests whether agents reach their target returns: training, then evaluation.

For each row, trains a task with the row's settings and three seeds in sequence,
evaluates the last model with ``tengen eval``, and writes each seed's curve as CSV. An
interrupted run resumes; a seed that has a result is skipped.

    python benchmarks/learning/learning_runs.py --out FOLDER
    python benchmarks/learning/learning_runs.py --out FOLDER --only pong-ppo --seeds 1
    python benchmarks/learning/learning_runs.py --out FOLDER --table

The first command runs all rows and takes hours; the last prints the existing results.
``python benchmarks/learning/curves.py --group NAME FOLDER/NAME-*.csv`` plots a row.
"""

from __future__ import annotations

import argparse
import csv
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import report_of, run_command, tengen

MINUTES, FRAMES = "--minutes", "--frames"


class Row(NamedTuple):
    """A task with an agent, its settings and its target return."""

    task: str
    agent: str
    budget: tuple[str, str]
    target: float
    settings: tuple[str, ...] = ()


# Frames here are environment steps; an Atari step is four frames of the emulator.
ROWS = {
    "pong-ppo": Row("atari/Pong/classic", "ppo", (FRAMES, "1500000"), 15.0),
    "pong-vtrace": Row("atari/Pong/classic", "vtrace", (FRAMES, "2500000"), 0.0),
    "pong-r2d2": Row("atari/Pong/r2d2", "r2d2", (FRAMES, "1000000"), 0.0),
    # The first reward needs a chance crossing of the road. PPO made none in 250,000
    # steps; a copy that is greedy on random Q values may walk straight on.
    "freeway-dqn": Row("atari/Freeway/classic", "dqn", (FRAMES, "500000"), 20.0),
    "breakout-ppo": Row("atari/Breakout/classic", "ppo", (FRAMES, "1200000"), 30.0),
    "football-vtrace": Row(
        "football/academy_empty_goal_close", "vtrace", (FRAMES, "150000"), 0.8
    ),
    "vizdoom-vtrace": Row("vizdoom/Basic", "vtrace", (FRAMES, "250000"), 80.0),
    "vizdoom-ppo": Row("vizdoom/Basic", "ppo", (FRAMES, "120000"), 80.0),
    "hopper-sac": Row("mujoco/Hopper", "sac", (FRAMES, "250000"), 1000.0),
    "pendulum-sac": Row("Pendulum-v1", "sac", (FRAMES, "20000"), -170.0),
    "pole-a2c": Row("CartPole-v1", "a2c", (FRAMES, "400000"), 195.0),
    "pole-dqn": Row("CartPole-v1", "dqn", (FRAMES, "200000"), 475.0),
    "pole-iqn": Row("CartPole-v1", "iqn", (FRAMES, "150000"), 195.0),
    "pole-r2d2": Row("CartPole-v1", "r2d2", (FRAMES, "120000"), 475.0),
    "acrobot-ppo": Row("Acrobot-v1", "ppo", (MINUTES, "5"), -90.0),
    "breakout-minatar": Row("minatar/Breakout", "ppo", (FRAMES, "2000000"), 20.0),
    "asterix-minatar": Row("minatar/Asterix", "ppo", (FRAMES, "1500000"), 15.0),
    "invaders-minatar": Row("minatar/SpaceInvaders", "ppo", (MINUTES, "30"), 60.0),
    "doorkey-ppo": Row("minigrid/DoorKey-5x5", "ppo", (MINUTES, "10"), 0.95),
    "repeat-r2d2": Row("popgym/RepeatPreviousEasy", "r2d2", (MINUTES, "15"), 0.5),
    "repeat-ppo": Row("popgym/RepeatPreviousEasy", "ppo", (MINUTES, "15"), 0.5),
    # Without memory, one guess in four is right, so the best return is -0.5.
    "repeat-dqn": Row("popgym/RepeatPreviousEasy", "dqn", (MINUTES, "15"), -0.6),
}


def main() -> int:
    """Runs the selected rows; returns 1 if a target was missed."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder, for all")
    parser.add_argument("--only", action="append", choices=sorted(ROWS), default=[])
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args()
    seeds = [int(word) for word in args.seeds.split(",")]
    names = args.only or list(ROWS)
    if not args.table:
        args.out.mkdir(parents=True, exist_ok=True)
        for name in names:
            for seed in seeds:
                _run(args, name, seed)
    return _show(args.out, names)


def _run(args: argparse.Namespace, name: str, seed: int) -> None:
    row, place = ROWS[name], f"{name}-{seed}"
    result, run = args.out / f"{place}.json", args.out / place
    chosen = [*row.settings, *args.settings]
    asked = [row.task, row.agent, *row.budget, *chosen]
    if result.exists():
        if json.loads(result.read_text()).get("asked") == asked:
            return
        # The row's settings have changed since the old run.
        shutil.rmtree(run, ignore_errors=True)
    words = [*_budget_left(run, row.budget), "--seed", seed, "--threads", 1]
    words += [word for one in chosen for word in ("--set", one)]
    command = tengen("train", row.task, "--agent", row.agent, *words, "--out", run)
    print(f"{place}: {' '.join(command[1:])}", file=sys.stderr, flush=True)
    begun_s = time.monotonic()
    cpu_s = run_command(command, args.out / f"{place}.log")
    minutes = (time.monotonic() - begun_s) / 60.0
    run_command(tengen("curves", run, args.out / f"{place}.csv"))
    report = report_of("eval", run, "--episodes", args.episodes)
    kept = {key: report.get(key) for key in ("mean_return", "low", "high")}
    kept |= {"minutes": minutes, "cpu_s": cpu_s, "settings": chosen, "asked": asked}
    result.write_text(json.dumps(kept))


def _budget_left(run: Path, budget: tuple[str, str]) -> tuple[str, str]:
    """Returns a run's remaining budget, because a budget counts from each command.

    The CPU-seconds in the result exclude earlier commands; see the run's events.
    """
    num_rows, elapsed_s = 0, 0.0
    for path in sorted(run.glob("events/train-*.jsonl")):
        events = [json.loads(line) for line in path.read_text().splitlines()]
        told = [event for event in events if event["kind"] == "progress"]
        if told:
            num_rows = max(num_rows, told[-1]["num_rows"])
            elapsed_s += told[-1]["elapsed_s"]
    kind, amount = budget
    if kind == FRAMES:
        return kind, str(max(0, int(amount) - num_rows))
    return kind, str(max(0.0, float(amount) - elapsed_s / 60.0))


def _show(folder: Path, names: list[str]) -> int:
    """Prints a line per result; returns 1 if one is below its target."""
    is_missed = False
    print(
        "| row | task | agent | budget | target | seed | mean (interval) "
        "| at the end of training | CPU-s |"
    )
    print("|---" * 9 + "|")
    for name in names:
        row = ROWS[name]
        for path in sorted(folder.glob(f"{name}-[0-9]*.json")):
            kept: dict[str, Any] = json.loads(path.read_text())
            is_missed |= kept["mean_return"] < row.target
            seed = path.stem.removeprefix(f"{name}-")
            mean = f"{kept['mean_return']:.2f}"
            if kept["low"] is not None:
                mean += f" ({kept['low']:.2f} to {kept['high']:.2f})"
            budget = " ".join(row.budget).removeprefix("--")
            trained = _last_return(path.with_suffix(".csv"))
            print(
                f"| {name} | {row.task} | {row.agent} | {budget} | {row.target:g} "
                f"| {seed} | {mean} | {trained} | {kept['cpu_s']:.0f} |"
            )
    return int(is_missed)


def _last_return(curve: Path) -> str:
    """Returns the mean return of the last hundred training episodes, from the curve.

    Unlike evaluation, the episodes include exploration and several models.
    """
    with curve.open() as file:
        found = [row["return_mean"] for row in csv.DictReader(file)]
    told = [word for word in found if word]
    return f"{float(told[-1]):.2f}" if told else "-"


if __name__ == "__main__":
    sys.exit(main())
