"""What open pages cost a run that trains: rows, in windows with and without a server.

    python benchmarks/serve/serve_training.py CartPole-v1 --pages 20 --rounds 3 \\
        --seconds 40

One run trains all along. Windows alternate, with and without `tengen serve` of it and
so many pages that hear of its changes, half of them of the list, the others of the run;
the first of a round has no server in one and a server in the next. A window begins and
ends where the run tells of its progress. Prints rows a second and rows for each second
of the training's own processor time, by windows, and the ratios of the rounds.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from serve_pages import ask, hear

from tengen.observe.cpu_time import tree_cpu_s
from tengen.run import machine_line

WAIT_S = 300.0
TENGEN = [sys.executable, "-P", "-m", "tengen"]


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task")
    parser.add_argument("--pages", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=40.0)
    parser.add_argument("--warm", type=float, default=30.0, help="seconds before")
    parser.add_argument("--set", action="append", default=[], dest="settings")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder) / "run"
        command = [*TENGEN, "train", args.task, "--out", str(run), "--minutes", "600"]
        for setting in args.settings:
            command += ["--set", setting]
        train = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            told(run, train.pid, 0)
            time.sleep(args.warm)
            rounds = [measure(run, train.pid, args, i) for i in range(args.rounds)]
        finally:
            train.terminate()
            train.wait()
    ratios = {
        name: [round(one["with"][name] / one["without"][name], 3) for one in rounds]
        for name in ("rows_per_s", "rows_per_cpu_s")
    }
    medians = {name: statistics.median(values) for name, values in ratios.items()}
    print(
        json.dumps(
            {
                "machine": machine_line(),
                "task": args.task,
                "pages": args.pages,
                "rounds": rounds,
                "with / without": ratios,
                "medians": medians,
            },
            indent=2,
        )
    )


def measure(
    run: Path, train: int, args: argparse.Namespace, index: int
) -> dict[str, dict[str, float]]:
    """Returns both windows of a round."""
    found: dict[str, dict[str, float]] = {}
    for name in ("without", "with") if index % 2 == 0 else ("with", "without"):
        if name == "without":
            found[name] = window(run, train, args.seconds)
            continue
        with pages_open(run, args.pages) as server:
            before_s = tree_cpu_s(root=server) or 0.0
            found[name] = window(run, train, args.seconds)
            used_s = (tree_cpu_s(root=server) or 0.0) - before_s
        found[name]["server_share"] = round(used_s / found[name]["seconds"], 4)
    return found


def window(run: Path, train: int, seconds: float) -> dict[str, float]:
    """Returns what the run does for so long."""
    first = told(run, train, 0)
    first = told(run, train, first["rows"] + 1)
    time.sleep(seconds)
    last = told(run, train, told(run, train, 0)["rows"] + 1)
    passed_s, rows = last["time_s"] - first["time_s"], last["rows"] - first["rows"]
    used_s = last["cpu_s"] - first["cpu_s"]
    return {
        "seconds": round(passed_s, 1),
        "rows_per_s": round(rows / passed_s, 1),
        "rows_per_cpu_s": round(rows / used_s, 1),
    }


def told(run: Path, train: int, least_rows: float) -> dict[str, float]:
    """Returns the learner's next count of rows, and the processor time by then."""
    until_s = time.monotonic() + WAIT_S
    while time.monotonic() < until_s:
        for path in sorted(run.glob("events/train-*.jsonl")):
            for line in reversed(path.read_text().splitlines(keepends=True)):
                event = json.loads(line) if line.endswith("\n") else {}
                rows = (event.get("table") or {}).get("num_rows")
                if event.get("role") != "learn" or rows is None:
                    continue
                if rows >= least_rows:
                    cpu_s = tree_cpu_s(root=train) or 0.0
                    return {"rows": rows, "time_s": event["time_s"], "cpu_s": cpu_s}
                break
        time.sleep(0.2)
    raise SystemExit(f"run ({run}) told nothing for {WAIT_S:g} s; look at its output")


@contextmanager
def pages_open(run: Path, pages: int) -> Iterator[int]:
    """Serves a run to pages; gives the server's process."""
    command = [*TENGEN, "serve", "--port", "0", str(run)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        found = re.search(r":(\d+)/", server.stdout.readline())
        assert found is not None
        port, counts = int(found[1]), [0] * pages
        name = json.loads(ask(port, "/api/runs"))[0]["id"]
        paths = ("/api/changes", f"/api/runs/{name}/changes")
        for page in range(pages):
            words = (port, paths[page % 2], counts, page)
            Thread(target=hear, args=words, daemon=True).start()
        time.sleep(3)
        yield server.pid
        assert all(counts), "a page heard nothing"
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
