"""Compares variants of a recipe that train with equal budgets.

    python benchmarks/strength/recipe_sweep.py train --task gomoku/9 --minutes 8 \\
        --out DIR --variant base \\
        --variant rows-8 store.limiter.samples_per_row=8
    python benchmarks/strength/recipe_sweep.py judge --task gomoku/9 --out DIR

``train`` trains one single-core run per variant, which is a name and its settings;
``--jobs`` runs are parallel, with equal shares of the machine. ``judge`` prints a line
per run: for Connect Four the share of moves that the solver calls optimal, with the raw
policy and with 64 simulations; for other games the score of the final network against
``--against``: a variant with each of its seeds (default ``base``), or a player.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import report_of, tengen

_ROOT = Path(__file__).resolve().parent
# Settings of all variants, stated explicitly so that later changes of recipes do not
# affect them. Ratings are off, so that only games and learning take time.
COMMON = (
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "store.limiter.samples_per_row=4",
    "agent.stages=[]",
    "agent.actor.search.score_weight=0",
)


def train(args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)

    def run(variant: list[str]) -> None:
        name, *settings = variant
        out = args.out / f"{name}-s{args.seed}"
        words = ["train", args.task, "--json", "--out", out, "--threads", 1]
        words += ["--minutes", args.minutes, "--seed", args.seed]
        words += [f"--set={setting}" for setting in (*COMMON, *args.set, *settings)]
        with subprocess.Popen(tengen(*words), stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            lines = child.stdout.read().splitlines()
            usage = os.wait4(child.pid, 0)[2]
        report = json.loads(lines[-1])
        report["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
        (args.out / f"{out.name}.json").write_text(json.dumps(report))
        print(f"{name} used {report['cpu_s']} CPU-s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run, args.variant))


def judge(args: argparse.Namespace) -> None:
    logs = sorted(args.out.glob("*.json"))
    runs = [log.with_suffix("") for log in logs]
    optimal = {}
    if args.task == "connect4":
        optimal = _accuracies(runs, args.positions)
    for log, run in zip(logs, runs, strict=True):
        report = json.loads(log.read_text())
        row: dict[str, Any] = {"run": run.name}
        row |= {name: report.get(name) for name in ("cpu_s", "generation", "num_games")}
        row |= optimal.get(str(run), {})
        if not optimal:
            seeds = [str(r) for r in runs if r.name.rpartition("-s")[0] == args.against]
            others = seeds or [args.against]
            row["scores"] = {
                Path(other).name: _score(run, other, args.games)
                for other in others
                if other != str(run)
            }
        print(json.dumps(row), flush=True)


def _accuracies(runs: list[Path], positions: int) -> dict[str, dict[str, float]]:
    """Returns each run's share of optimal moves by simulations."""
    words = [sys.executable, str(_ROOT / "connect4_accuracy.py"), *map(str, runs)]
    # Not the default seed, which reports use.
    words += ["--simulations", "1", "64", "--positions", str(positions), "--json"]
    words += ["--seed", "0"]
    found: dict[str, dict[str, float]] = {}
    for line in subprocess.check_output(words).splitlines():
        row = json.loads(line)
        shares = found.setdefault(row["player"], {})
        shares[f"optimal_{row['simulations']}"] = row["optimal_share"]
    return found


def _score(run: Path, other: str, games: int) -> float:
    return float(report_of("match", run, other, "--games", games)["score_a"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument(
        "--variant", nargs="+", action="append", required=True, metavar="NAME a.b=v"
    )
    training.add_argument("--minutes", type=float, default=8.0)
    training.add_argument("--seed", type=int, default=0)
    training.add_argument("--jobs", type=int, default=os.cpu_count())
    training.add_argument("--set", action="append", default=[])
    training.set_defaults(run=train)
    judging = commands.add_parser("judge")
    judging.add_argument("--positions", type=int, default=2000)
    judging.add_argument("--games", type=int, default=400)
    judging.add_argument("--against", default="base", help="a variant, or mcts:300")
    judging.set_defaults(run=judge)
    for command in (training, judging):
        command.add_argument("--task", required=True)
        command.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
