"""Compares variants of a recipe that train with equal CPU-seconds from several seeds.

    python benchmarks/strength/sweep.py train --task gomoku/9 --cpu-seconds 1200 \\
        --out DIR --seeds 3 --arm base --arm rows-4 store.limiter.samples_per_row=4
    python benchmarks/strength/sweep.py train --task gomoku/9 --cpu-seconds 300 \\
        --out DIR --factor rows store.limiter.samples_per_row=4 --factor ...
    python benchmarks/strength/sweep.py judge --out DIR --pool RUN@9 RUN mcts:3000
    python benchmarks/strength/sweep.py table --out DIR

``train`` trains one single-core run per arm and seed; an arm is a name and its
settings. ``--jobs`` runs are parallel, in blocks with one run of each arm. With
``--factor``, the arms are a screening design (``screening.py``): 24 runs estimate the
effects of up to 11 settings, each from all runs. A repeated call trains what is
missing.

``judge`` measures the final network of each run against a frozen pool, and for Connect
Four the share of moves that the exact solver calls optimal. By default it uses the
openings and positions for tuning; ``--report`` uses others, on which nothing may be
chosen. Choose the pool and ``--simulations`` such that the runs score about half.

``table`` prints for each arm the mean with its 95 % confidence interval over seeds and
the difference from the first arm, or for each factor its effect with an interval from
the residuals of the design.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import tengen
from connect4_accuracy import optimal_share, solved_positions
from intervals import interval, welch
from screening import MAX_FACTORS, design, effects

from tengen import games
from tengen.evaluation import open_player, play_match
from tengen.evaluation.elo import Tally
from tengen.run.machine import cpu_features, machine_line

# Settings of all arms. Without ratings and the final match, only games and learning
# take time.
_COMMON = ("agent.rating.time_share=0", "agent.rating.final_games=0")
# The instructions that decide what a CPU-second buys.
_INSTRUCTIONS = (
    "avx2",
    "avx512f",
    "avx_vnni",
    "avx512_vnni",
    "avx512_bf16",
    "amx_bf16",
)
# Seeds of the openings and of the positions, for tuning and for reports.
_TUNING, _REPORTING = 0, 1


def train(args: argparse.Namespace) -> None:
    args.out.mkdir(parents=True, exist_ok=True)
    plan = _plan(args)
    path = args.out / "plan.json"
    if path.exists() and json.loads(path.read_text()) != plan:
        sys.exit(f"{path} has other arms, settings or CPU-seconds; use another --out")
    path.write_text(json.dumps(plan, indent=1))
    blocks = [
        (name, settings, seed)
        for seed in range(args.first_seed, args.first_seed + args.seeds)
        for name, settings in _shuffled(plan["arms"], seed)
    ]

    def run(block: tuple[str, list[str], int]) -> None:
        name, settings, seed = block
        out = args.out / f"{name}-s{seed}"
        log = args.out / f"{out.name}.json"
        if log.exists():
            return
        # The rest of an interrupted run, which would get a second budget.
        shutil.rmtree(out, ignore_errors=True)
        words = ["train", args.task, "--json", "--out", out, "--threads", 1]
        words += ["--cpu-seconds", args.cpu_seconds, "--seed", seed]
        words += [f"--set={setting}" for setting in (*plan["set"], *settings)]
        with subprocess.Popen(tengen(*words), stdout=subprocess.PIPE) as child:
            assert child.stdout is not None
            lines = child.stdout.read().splitlines()
            usage = os.wait4(child.pid, 0)[2]
        report = json.loads(lines[-1]) if lines else {}
        if report.get("exit_code") != 0:
            print(f"{out.name} failed: {report}", file=sys.stderr, flush=True)
            return
        report["cpu_s"] = round(usage.ru_utime + usage.ru_stime, 1)
        report["machine"] = f"{machine_line()}, {_instructions()}"
        log.write_text(json.dumps(report))
        print(f"{out.name} used {report['cpu_s']} CPU-s", file=sys.stderr, flush=True)

    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(run, blocks))


def _instructions() -> str:
    """Returns the names of the processor's instruction sets for networks."""
    return " ".join(name for name in _INSTRUCTIONS if name in cpu_features())


def _plan(args: argparse.Namespace) -> dict[str, Any]:
    plan: dict[str, Any] = {
        "task": args.task,
        "cpu_seconds": args.cpu_seconds,
        "set": [*_COMMON, *args.set],
        "factors": [name for name, *_ in args.factor],
        "arms": {name: settings for name, *settings in args.arm},
    }
    for index, levels in enumerate(design(len(args.factor)) if args.factor else ()):
        plan["arms"][f"f{index:02}"] = [
            setting
            for is_on, (_, *settings) in zip(levels, args.factor, strict=True)
            for setting in (settings if is_on else ())
        ]
    return plan


def _shuffled(arms: dict[str, list[str]], seed: int) -> list[tuple[str, list[str]]]:
    """Returns the arms in a random order, so that none has the same neighbours."""
    order = list(arms.items())
    random.Random(seed).shuffle(order)
    return order


def judge(args: argparse.Namespace) -> None:
    plan = json.loads((args.out / "plan.json").read_text())
    kind = "report" if args.report else "tuning"
    terms = {
        "pool": args.pool,
        "games": args.games,
        "simulations": args.simulations,
        "opening_plies": args.opening_plies,
        "positions": args.positions,
    }
    path = args.out / f"judged-{kind}.jsonl"
    known = _lines(path)
    if any(row["terms"] != terms for row in known):
        sys.exit(f"{path} has runs that were judged with other arguments; move it away")
    seed = _REPORTING if args.report else _TUNING
    positions = None
    for name in sorted(_reports(args.out).keys() - {row["run"] for row in known}):
        run = args.out / name
        row: dict[str, Any] = {"run": name, "terms": terms}
        if args.pool:
            scores = _scores(plan["task"], run, args, seed)
            tally = Tally(*map(sum, zip(*scores.values(), strict=True)))
            row |= {"elo": tally.elo, "score": tally.score, "scores": scores}
        if plan["task"] == "connect4":
            positions = positions or solved_positions(args.positions, seed)
            for simulations in (1, 64, 400):
                share = optimal_share(str(run), simulations, positions)
                row[f"optimal_{simulations}"] = 100 * share
        with path.open("a") as out:
            print(json.dumps(row), file=out)
        print(json.dumps(row), flush=True)


def _reports(folder: Path) -> dict[str, dict[str, Any]]:
    """Returns the reports of all finished runs, by name."""
    return {
        log.name.removesuffix(".json"): json.loads(log.read_text())
        for log in folder.glob("*-s*.json")
    }


def _scores(
    task: str, run: Path, args: argparse.Namespace, seed: int
) -> dict[str, tuple[int, int, int]]:
    """Returns the run's wins, draws and losses against each player of the pool."""
    found = {}
    player = open_player(str(run), num_threads=args.jobs, task=task)
    for word in args.pool:
        report = play_match(
            games.open_game(task),
            player,
            open_player(word, num_threads=args.jobs, task=task),
            num_games=args.games,
            num_simulations=args.simulations,
            num_threads=args.jobs,
            opening_plies=args.opening_plies,
            seed=seed,
        )
        tally = report.tally
        found[word] = (tally.wins, tally.draws, tally.losses)
    return found


def table(args: argparse.Namespace) -> None:
    plan = json.loads((args.out / "plan.json").read_text())
    kind = "report" if args.report else "tuning"
    judged = _lines(args.out / f"judged-{kind}.jsonl")
    reports = _reports(args.out)
    metric = args.metric or ("optimal_64" if plan["task"] == "connect4" else "elo")
    of_arm: dict[str, list[float]] = {arm: [] for arm in plan["arms"]}
    for row in judged:
        of_arm[row["run"].rpartition("-s")[0]].append(row[metric])
    if missing := [arm for arm, values in of_arm.items() if not values]:
        sys.exit(f"no run of {', '.join(missing)} is judged")
    print(
        f"{plan['task']}, {plan['cpu_seconds']:g} CPU-seconds, {metric} on the ", end=""
    )
    print(f"{kind} openings and positions, {judged[0]['terms']}; ", end="")
    print("; ".join(sorted({report["machine"] for report in reports.values()})))
    if plan["factors"]:
        _print_effects(plan, of_arm, metric)
    else:
        _print_arms(plan, of_arm, reports, metric)


def _print_effects(
    plan: dict[str, Any], of_arm: dict[str, list[float]], metric: str
) -> None:
    means = [sum(values) / len(values) for values in of_arm.values()]
    print(f"\n| factor | effect on {metric} | 95 % interval | t |\n|---|---|---|---|")
    rows = effects(len(plan["factors"]), means)
    for name, effect in zip(plan["factors"], rows, strict=True):
        low, high = effect.interval
        print(f"| {name} | {effect.size:+.1f} | {low:+.1f} to {high:+.1f} |", end="")
        print(f" {effect.t:+.1f} |")


def _print_arms(
    plan: dict[str, Any],
    of_arm: dict[str, list[float]],
    reports: dict[str, dict[str, Any]],
    metric: str,
) -> None:
    print(f"\n| arm | settings | CPU-s | games | steps | {metric} | 95 % | ", end="")
    first = next(iter(plan["arms"]))
    print(f"against {first} | 95 % |\n|---|---|---|---|---|---|---|---|---|")
    for arm, settings in plan["arms"].items():
        values = of_arm[arm]
        of_runs = [report for run, report in reports.items() if _is_of(arm, run)]
        cells = [arm, " ".join(settings)]
        for field in ("cpu_s", "num_games", "num_steps"):
            cells.append(", ".join(f"{report.get(field, 0):.0f}" for report in of_runs))
        mean = sum(values) / len(values)
        cells += [f"{mean:.1f}", _text(interval(values))]
        base = of_arm[first]
        if arm != first:
            cells.append(f"{mean - sum(base) / len(base):+.1f}")
            cells.append(_text(welch(values, base)))
        print(f"| {' | '.join(cells)} |")


def _is_of(arm: str, run: str) -> bool:
    return run.rpartition("-s")[0] == arm


def _text(found: tuple[float, float] | None) -> str:
    return "" if found is None else f"{found[0]:+.1f} to {found[1]:+.1f}"


def _lines(path: Path) -> list[dict[str, Any]]:
    text = path.read_text() if path.exists() else ""
    return [json.loads(line) for line in text.splitlines()]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    training = commands.add_parser("train")
    training.add_argument("--task", required=True)
    kinds = training.add_mutually_exclusive_group(required=True)
    for name in ("arm", "factor"):
        kinds.add_argument(
            f"--{name}", nargs="+", action="append", default=[], metavar="NAME a.b=v"
        )
    training.add_argument("--cpu-seconds", type=float, default=1200.0)
    training.add_argument("--seeds", type=int, help="3; 1 with --factor")
    training.add_argument("--first-seed", type=int, default=0)
    training.add_argument("--set", action="append", default=[], metavar="a.b=v")
    training.set_defaults(run=train)
    judging = commands.add_parser("judge")
    judging.add_argument("--pool", nargs="+", default=[], metavar="PLAYER")
    judging.add_argument("--games", type=int, default=40, help="against each player")
    judging.add_argument("--simulations", type=int, default=16)
    judging.add_argument("--opening-plies", type=int, default=4)
    judging.add_argument("--positions", type=int, default=2000)
    judging.set_defaults(run=judge)
    printing = commands.add_parser("table")
    printing.add_argument("--metric")
    printing.set_defaults(run=table)
    for command in (training, judging, printing):
        command.add_argument("--out", type=Path, required=True)
        command.add_argument("--jobs", type=int, default=os.cpu_count())
    for command in (judging, printing):
        command.add_argument("--report", action="store_true")
    args = parser.parse_args()
    if len(getattr(args, "factor", ())) > MAX_FACTORS:
        parser.error(f"--factor: at most {MAX_FACTORS}")
    if getattr(args, "seeds", 0) is None:
        args.seeds = 1 if args.factor else 3
    args.run(args)


if __name__ == "__main__":
    main()
