"""Tests that a run learns equally well while its processes are killed repeatedly.

    python benchmarks/faults/kill_storm.py --out FOLDER --minutes 10
    python benchmarks/faults/kill_storm.py --out FOLDER --task minatar/Breakout \\
        --agent dqn --actors 0

Trains for ``--minutes``. About every half minute a random process of the run (an actor,
the inference server or the learner; with ``--actors 0`` the single process) gets
SIGKILL; halfway the command gets SIGINT and is run again, and at three quarters all of
its processes get SIGKILL. Then undisturbed runs with other seeds train for as many
frames, and the last models of all runs are evaluated. Training returns are reported
too; those of the killed run are biased, because kills abort mostly long episodes.

Fails if a command exits unexpectedly, if memory is left in /dev/shm, or if the killed
run's score is below the lowest other score by more than the others' range.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import processes, report_of, run_command, tengen

from tengen.run import RunDirectory, service_folder

MARKS = 6


def start(
    out: Path, args: argparse.Namespace, seed: int, frames: Any
) -> subprocess.Popen[bytes]:
    words = ["train", args.task, "--agent", args.agent, "--threads", 2, "--out", out]
    words += ["--actors", args.actors] if args.actors else []
    # A cooldown would make the learning rate depend on a command's budget.
    settings = {"learner.optimizer.cooldown": 0}
    command = tengen(*words, "--seed", seed, "--frames", frames, settings=settings)
    with open(out.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)


def stop(run: subprocess.Popen[bytes]) -> int:
    """Interrupts a run, which has its own session; returns its exit code."""
    if run.poll() is None:
        run.send_signal(signal.SIGINT)
    return run.wait(120)


def children(out: Path) -> list[int]:
    """Returns the IDs of the run's role processes."""
    programs = {"tengen.launch.child", "tengen.launch.fork_server"}
    return [
        number
        for number, process in processes().items()
        if programs & set(process.words) and str(out.absolute()) in process.words
    ]


def storm(out: Path, args: argparse.Namespace) -> dict[str, Any]:
    """Trains for ``--minutes`` under kills; returns the number of each kind of kill."""
    draws = random.Random(args.seed)
    until = time.monotonic() + 60 * args.minutes
    half_s, last_s = until - 30 * args.minutes, until - 15 * args.minutes
    counts = {"kills": 0, "interrupted": 0, "killed_whole": 0}
    frames = "100M"
    run = start(out, args, args.seed, frames)
    try:
        while (now := time.monotonic()) < until:
            assert run.poll() is None, f"it ended, see {out.with_suffix('.log')}"
            if now >= half_s:
                run.send_signal(signal.SIGINT)
                assert run.wait(120) == 130
                run, half_s = start(out, args, args.seed, frames), until
                counts["interrupted"] += 1
            elif now >= last_s:
                os.killpg(run.pid, signal.SIGKILL)
                run.wait()
                run, last_s = start(out, args, args.seed, frames), until
                counts["killed_whole"] += 1
            elif found := children(out):
                os.kill(draws.choice(found), signal.SIGKILL)
                counts["kills"] += 1
            time.sleep(draws.uniform(0.5, 1.5) * args.every)
    finally:
        exit_code = stop(run)
    assert exit_code == 130
    return counts


def curve(out: Path) -> tuple[list[tuple[int, float]], int]:
    """Returns agent steps and mean returns, in order, and the run's last agent step.

    The curve may end before that step: after a kill, no episode may have ended yet.
    """
    path = out.with_suffix(".csv")
    run_command(tengen("curves", out, path))
    with path.open() as file:
        rows = list(csv.DictReader(file))
    points = [
        (int(row["agent_steps"]), float(row["return_mean"]))
        for row in rows
        if row["return_mean"]
    ]
    return points, int(rows[-1]["agent_steps"])


def at(points: list[tuple[int, float]], frames: int) -> str:
    """Returns the last return reported up to ``frames`` as text, or a dash."""
    before = [value for steps, value in points if steps <= frames]
    return f"{before[-1]:.1f}" if before else "-"


def score(out: Path) -> float:
    """Returns the mean return of the last model in thirty episodes."""
    return float(report_of("eval", out, "--episodes", 30)["mean_return"])


def main() -> int:
    """Returns 1 if the killed run's score is too far below the undisturbed runs'."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--task", default="atari/Pong/classic")
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--actors", type=int, default=2, help="0: all in one process")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--every", type=float, default=30.0, help="seconds a kill")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--undisturbed", type=int, default=2, help="runs beside it")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    # SIGTERM must end the run too, like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    killed = args.out / "killed"
    counts = storm(killed, args)
    returns, frames = curve(killed)
    points = {"killed": returns}
    run = RunDirectory.open(killed)
    left = [service_folder(run, name) for name in ("store", "inference")]
    assert not any(path.exists() for path in left), "memory was left behind"
    for seed in range(args.seed + 1, args.seed + 1 + args.undisturbed):
        out = args.out / f"undisturbed-{seed}"
        undisturbed = start(out, args, seed, frames)
        try:
            assert undisturbed.wait() == 0
        finally:
            stop(undisturbed)
        points[out.name], _ = curve(out)
    scores = {name: score(args.out / name) for name in points}
    counts["deaths"] = sum(
        json.loads(line)["kind"] == "death"
        for path in (killed / "events").glob("*.jsonl")
        for line in path.read_text().splitlines()
    )
    print(counts)
    print("| frames | " + " | ".join(points) + " |")
    print("|---" * (1 + len(points)) + "|")
    for mark in range(1, MARKS + 1):
        now = frames * mark // MARKS
        print(f"| {now:,} | " + " | ".join(at(p, now) for p in points.values()) + " |")
    print("| played | " + " | ".join(f"{one:.1f}" for one in scores.values()) + " |")
    ours, *others = scores.values()
    return int(ours < min(others) - (max(others) - min(others)))


if __name__ == "__main__":
    sys.exit(main())
