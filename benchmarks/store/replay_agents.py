"""What the capacity of a replay does for DQN and R2D2, as ``tengen train`` has them.

    python benchmarks/store/replay_agents.py run --out FOLDER --seeds 3
    python benchmarks/store/replay_agents.py table FOLDER

Each agent learns CartPole-v1 with replays of several capacities, once a seed, and the
last model plays 100 episodes by ``tengen eval``. Capacities are of the same numbers of
steps for both: an item of R2D2 begins every twenty steps, one of DQN with every step. A
folder that has a run's result does not make the run again.
``replay_size.py`` has a learner of its own beside the store, and shows what draws cost.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

TASK = "CartPole-v1"
# By agent, frames of a run, and steps behind one item and the next.
AGENTS = {"dqn": (100_000, 1), "r2d2": (80_000, 20)}
STEPS = (1_000, 4_000, 16_000, 64_000)
# Items that are there before the first batch, of the smallest replay too.
FIRST_STEPS = 1_000


def run(args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    for seed in range(1, args.seeds + 1):
        for agent in AGENTS:
            for steps in STEPS:
                path = args.out / f"{agent}-{steps}-{seed}.json"
                if not path.exists():
                    path.write_text(json.dumps(result(args.out, agent, steps, seed)))


def result(out: Path, agent: str, steps: int, seed: int) -> dict[str, Any]:
    """Trains and plays; returns what came of it."""
    frames, period = AGENTS[agent]
    folder = out / f"{agent}-{steps}-{seed}"
    settings = {
        "store.max_items": steps // period,
        "store.min_items": FIRST_STEPS // period,
    }
    words = ["train", TASK, "--agent", agent, "--frames", frames, "--seed", seed]
    words += ["--threads", 1, "--out", folder]
    for name, setting in settings.items():
        words += ["--set", f"{name}={setting}"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command(*words)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    curve = command("curves", folder, out / f"{agent}-{steps}-{seed}.csv")
    assert curve.returncode == 0
    played = command("eval", folder, "--episodes", 100, "--json").stdout
    report = json.loads(played.splitlines()[-1])
    return {
        "agent": agent,
        "steps": steps,
        "seed": seed,
        "eval": report["mean_return"],
        "late": late(out / f"{agent}-{steps}-{seed}.csv"),
        "cpu_s": after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime,
    }


def command(*words: Any) -> subprocess.CompletedProcess[str]:
    """Runs a command of tengen."""
    return subprocess.run(
        [sys.executable, "-m", "tengen", *map(str, words)],
        check=True,
        capture_output=True,
        text=True,
    )


def late(curve: Path) -> float:
    """Returns the mean return in training over the second half of a curve."""
    header, *lines = curve.read_text().splitlines()
    column = header.split(",").index("return_mean")
    returns = [line.split(",")[column] for line in lines]
    half = [float(word) for word in returns[len(returns) // 2 :] if word]
    return statistics.mean(half)


def table(args: argparse.Namespace) -> None:
    rows = [json.loads(path.read_text()) for path in args.folder.glob("*-*-*.json")]
    print("| agent | steps | items | seeds | eval, each seed | in training | CPU-s |")
    print("|---" * 7 + "|")
    for agent, (_, period) in AGENTS.items():
        for steps in STEPS:
            found = [r for r in rows if (r["agent"], r["steps"]) == (agent, steps)]
            found.sort(key=lambda row: row["seed"])
            if not found:
                continue
            cells = [
                agent,
                f"{steps:,}",
                f"{steps // period:,}",
                str(len(found)),
                ", ".join(f"{row['eval']:.0f}" for row in found),
                interval([row["late"] for row in found]),
                f"{statistics.median(row['cpu_s'] for row in found):.0f}",
            ]
            print(f"| {' | '.join(cells)} |")


def interval(values: list[float]) -> str:
    """Returns the mean with its standard error."""
    error = statistics.stdev(values) / len(values) ** 0.5 if len(values) > 1 else 0.0
    return f"{statistics.mean(values):.0f} +- {error:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    running = commands.add_parser("run")
    running.add_argument("--out", type=Path, required=True)
    running.add_argument("--seeds", type=int, default=3)
    running.set_defaults(call=run)
    printing = commands.add_parser("table")
    printing.add_argument("folder", type=Path)
    printing.set_defaults(call=table)
    args = parser.parse_args()
    args.call(args)


if __name__ == "__main__":
    main()
