"""Runs the minigo benchmark several times and scores the runs as MLPerf does.

    python benchmarks/learning/mlperf_runs.py --out FOLDER --target TARGET
    python benchmarks/learning/mlperf_runs.py --out FOLDER --target TARGET --runs 1 \\
        --restart-one
    python benchmarks/learning/mlperf_runs.py --out FOLDER --table

Trains one run per seed, in sequence, with ``tengen train TASK --recipe RECIPE``. TARGET
is the player against which a model must win half of its games. A run's result, from its
``eval/target/result.json``, is the wall-clock time until the first passing model was
created.

Of ten runs, the score drops the fastest and the slowest and averages the rest (MLPerf
training rules v2.1). A run without a passing model counts as the slowest; with two such
runs there is no score. With fewer than ten runs the same mean is printed, but is not an
MLPerf score.

Repeating the command resumes: finished runs are skipped, and an interrupted run resumes
from its files. Its time includes the interruption. ``cpu_seconds`` covers all commands
of a run, evaluation included; ``cpu_seconds_to_pass`` ends when the passing model was
created, but includes the evaluation at the end of earlier commands. ``--restart-one``
kills all processes of the first run with SIGKILL some seconds after its third model was
published, and repeats the command. The table is also in ``FOLDER/runs.csv``. The exit
code is 1 if a run failed, or if more runs did not pass than a score may leave out.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import TENGEN, children_cpu_s

from tengen.observe.cpu_time import tree_cpu_s
from tengen.run import NumberedFolder

NUM_RUNS = 10
KILL_AT_MODEL = 3
KILL_AFTER_S = 5.0
LOOK_S = 0.5
COLUMNS = (
    "seed",
    "passed",
    "seconds",
    "smoothed_seconds",
    "win_rate",
    "confirmation",
    "num_evaluated",
    "cpu_seconds_to_pass",
    "cpu_seconds",
    "num_calls",
    "num_kills",
)


class Call(NamedTuple):
    """The result of one tengen command."""

    exit_code: int
    cpu_s: float
    cpu_s_of_models: dict[int, float]
    """CPU-seconds of the command until each model that it published was noticed."""
    was_killed: bool


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the benchmark; returns 1 if a run failed or too few passed.

    With three or more runs, one may fail to pass, because the score drops the slowest.
    """
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="a folder, for all")
    parser.add_argument("--task", default="go/7")
    parser.add_argument("--recipe", default="mlperf_minigo_small")
    parser.add_argument("--target", help="the player to reach; a RUN@N or a model")
    parser.add_argument("--runs", type=int, default=NUM_RUNS)
    parser.add_argument("--first-seed", type=int, default=1)
    parser.add_argument("--set", action="append", default=[], dest="settings")
    parser.add_argument("--restart-one", action="store_true")
    parser.add_argument("--table", action="store_true", help="run nothing")
    args = parser.parse_args(argv)
    # Handle SIGTERM like Ctrl-C, so that the run does not continue alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        args.out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"--out ({args.out}) cannot be made, {error.strerror}")
    seeds = range(args.first_seed, args.first_seed + args.runs)
    if not args.table:
        if args.target is None:
            parser.error("--target is needed, but for --table")
        for seed in seeds:
            is_killed = args.restart_one and seed == args.first_seed
            if problem := make(args, seed, is_killed=is_killed):
                print(f"seed {seed}: {problem}", file=sys.stderr)
                return 1
    rows = [row for seed in seeds if (row := read_row(args.out, seed)) is not None]
    with open(args.out / "runs.csv", "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print("\n".join(table(rows)))
    times = [row["seconds"] for row in rows]
    print("\n".join(verdict(times)))
    return int(too_few_passed(times))


def make(args: argparse.Namespace, seed: int, *, is_killed: bool) -> str:
    """Trains a run until its result, or resumes it; returns the error message."""
    run, path = args.out / f"seed-{seed}", args.out / f"seed-{seed}.json"
    settings = [f"agent.target.opponent={args.target}", *args.settings]
    asked = [args.task, "--recipe", args.recipe, "--seed", str(seed)]
    asked += [word for one in settings for word in ("--set", one)]
    kept: dict[str, Any] = {
        "asked": asked,
        "cpu_s": 0.0,
        "cpu_s_of_models": {},
        "num_calls": 0,
        "num_kills": 0,
    }
    if path.exists():
        kept = json.loads(path.read_text())
        if kept["asked"] != asked:
            return f"{path} is of another command; choose another --out"
    while not (run / "eval" / "target" / "result.json").exists():
        command = [*TENGEN, "train", *asked, "--out", str(run)]
        print(f"seed {seed}: {' '.join(command[1:])}", file=sys.stderr, flush=True)
        must_kill = is_killed and not kept["num_kills"]
        ended = call(command, run, must_kill=must_kill)
        for model, cpu_s in ended.cpu_s_of_models.items():
            kept["cpu_s_of_models"][str(model)] = round(kept["cpu_s"] + cpu_s, 2)
        kept["cpu_s"] += ended.cpu_s
        kept["num_calls"] += 1
        kept["num_kills"] += ended.was_killed
        path.write_text(json.dumps(kept, indent=1))
        if ended.was_killed:
            continue
        if must_kill:
            return f"it ended before it could be killed; remove {run} and {path}"
        if ended.exit_code != 0:
            return f"exit code {ended.exit_code}, see {run}.log"
        if not (run / "eval" / "target" / "result.json").exists():
            return f"no eval/target/result.json in {run}, see {run}.log"
    return ""


def call(command: Sequence[str], run: Path, *, must_kill: bool) -> Call:
    """Runs tengen in its own process group, and kills the group if ``must_kill``.

    The CPU-seconds of a command that exits cover all processes that were waited for;
    after a kill, they cover all its processes until the kill.
    """
    models, kill_at_s = NumberedFolder(run / "models"), math.inf
    known, seen = models.latest() or 0, dict[int, float]()
    before_s = children_cpu_s()

    def look(cpu_s: float) -> int:
        newest = models.latest() or 0
        seen.update(dict.fromkeys(range(known + len(seen) + 1, newest + 1), cpu_s))
        return newest

    with open(run.with_name(f"{run.name}.log"), "ab") as log:
        process = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True
        )
        try:
            while process.poll() is None:
                cpu_s = tree_cpu_s(root=process.pid) or 0.0
                newest = look(cpu_s)
                if must_kill and math.isinf(kill_at_s):
                    if newest >= KILL_AT_MODEL:
                        kill_at_s = time.monotonic() + KILL_AFTER_S
                elif time.monotonic() >= kill_at_s:
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()
                    return Call(process.returncode, cpu_s, seen, was_killed=True)
                time.sleep(LOOK_S)
        except KeyboardInterrupt:
            # The run has its own process group, so forward the signal.
            process.send_signal(signal.SIGINT)
            process.wait()
    cpu_s = children_cpu_s() - before_s
    look(cpu_s)
    return Call(process.returncode, cpu_s, seen, was_killed=False)


def score(times: Sequence[float | None]) -> float | None:
    """Returns the mean time without the fastest and the slowest run, in seconds.

    Args:
        times: One per run; None if no model passed, which counts as the slowest.

    Returns:
        None with fewer than three runs, or if two or more did not pass.
    """
    slowest_last = sorted(math.inf if time is None else time for time in times)
    kept = slowest_last[1:-1]
    return statistics.fmean(kept) if kept and not math.isinf(kept[-1]) else None


def too_few_passed(times: Sequence[float | None]) -> bool:
    """Returns whether more runs did not pass than a score may leave out."""
    may_fail = 1 if len(times) >= 3 else 0
    return not times or times.count(None) > may_fail


def verdict(times: Sequence[float | None]) -> list[str]:
    """Returns lines that state the score and the spread of the runs."""
    known = [time for time in times if time is not None]
    lines = [f"{len(known)} of {len(times)} runs passed"]
    if known:
        mean_s = statistics.fmean(known)
        spread = f"{min(known):,.1f} to {max(known):,.1f} s, mean {mean_s:,.1f} s"
        if len(known) > 1:
            spread += f", standard deviation {statistics.stdev(known):,.1f} s"
        lines.append(spread)
    found = score(times)
    if found is None:
        lines.append("no score: it needs three runs, of which one may not have passed")
    else:
        what = "score" if len(times) == NUM_RUNS else "mean, and no MLPerf score,"
        lines.append(
            f"{what} without the fastest and the slowest of {len(times)}: "
            f"{found:,.1f} s ({found / 60:.2f} min)"
        )
    return lines


def read_row(folder: Path, seed: int) -> dict[str, Any] | None:
    """Returns the row of a run; None if the run has no result yet."""
    told = folder / f"seed-{seed}" / "eval" / "target"
    if not (told / "result.json").exists():
        return None
    result = json.loads((told / "result.json").read_text())
    kept = json.loads((folder / f"seed-{seed}.json").read_text())
    win_rate = None
    if result["passed"] is not None:
        path = told / f"{result['passed']:06d}.json"
        win_rate = json.loads(path.read_text())["win_rate"]
    confirmation = result["confirmation"]
    to_pass_s = kept.get("cpu_s_of_models", {}).get(str(result["passed"]))
    return {
        "seed": seed,
        "passed": result["passed"],
        "seconds": result["passed_after_s"],
        "smoothed_seconds": result["smoothed_after_s"],
        "win_rate": win_rate,
        "confirmation": None if confirmation is None else confirmation["win_rate"],
        "num_evaluated": len(list(told.glob("[0-9]" * 6 + ".json"))),
        "cpu_seconds_to_pass": None if to_pass_s is None else round(to_pass_s, 1),
        "cpu_seconds": round(kept["cpu_s"], 1),
        "num_calls": kept["num_calls"],
        "num_kills": kept["num_kills"],
    }


def table(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Returns the rows as a Markdown table; a dash marks an unknown value."""
    lines = ["| " + " | ".join(COLUMNS).replace("_", " ") + " |"]
    lines.append("|---" * len(COLUMNS) + "|")
    for row in rows:
        cells = [
            "-" if value is None else f"{value:.10g}" for value in map(row.get, COLUMNS)
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


if __name__ == "__main__":
    sys.exit(main())
