"""Measures launchers: rows per CPU-second and the time to the first row.

In each round every launcher trains a new run to the same budget, with the same
processes and threads, in alternating order. A run's processes belong to its roles
(``tengen.launch.child``, the server that forks actors, and their children), to the rest
of tengen (the runner, and the other ranks of ``mpirun``), or to the launcher
(``mpirun``; Ray's daemons and workers). CPU time is read from ``/proc`` ten times a
second, so that of a process's last tenth of a second may be missed. Their memory is
read once a second, as ``Pss`` of ``smaps_rollup``, which divides a shared page among
the processes that map it.

    python benchmarks/training/launchers.py --launchers local,mpi --rounds 5
    python benchmarks/training/launchers.py --launchers local,ray --tasks frames

``own`` is rows divided by the CPU-seconds of all tengen processes. ``roles`` counts the
CPU-seconds of the roles only, and ``all`` adds those of the launcher. Ratios are
relative to the first launcher of the same round; their median is the result.
``first_row_s`` is the time from the command to the first durable game, or to an actor's
first frame. Memory is the maximum total of all processes of a kind.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import TENGEN, memory_mib, processes

from tengen.experience.games.files import experience_files
from tengen.learners.checkpoint import read_extra
from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_counts

_LOOK_S = 0.1
# Seconds between memory samples, because reading a process's pages takes milliseconds.
_WEIGH_S = 1.0
_KINDS = ("roles", "tengen", "launcher")
_SELFPLAY = (
    "agent.actor.games_per_generation=16",
    "agent.actor.full_simulations=24",
    "agent.actor.cheap_simulations=8",
    "agent.actor.num_slots=16",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "inference.backend=openvino",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
    "store.min_rows=200",
    "launch.roles.selfplay.count=2",
)
_FRAMES = ("inference.backend=torch", "launch.roles.actor.count=2")


Alive = tuple[int, int]
"""A process ID and its start time, because IDs are reused."""
Seen = dict[Alive, tuple[str, float]]


class Work(NamedTuple):
    """The training that each launcher runs once per round."""

    task: str
    budget: tuple[str, str]
    settings: tuple[str, ...]
    num_ranks: int
    """Number of MPI ranks, including one rank for each process that acts."""


class Spent(NamedTuple):
    """The rows and costs of one run; memory is the maximum by kind of process."""

    rows: int
    first_row_s: float
    wall_s: float
    roles_s: float
    tengen_s: float
    launcher_s: float
    memory_mib: dict[str, float]

    @property
    def rates(self) -> dict[str, float]:
        """Rows per CPU-second of the roles, of tengen, and of all processes."""
        own_s = self.roles_s + self.tengen_s
        return {
            "own": self.rows / own_s,
            "roles": self.rows / self.roles_s,
            "all": self.rows / (own_s + self.launcher_s),
        }


def main() -> int:
    """Prints a line per run and the ratios; with ``--json`` one object at the end."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--launchers", default="local,mpi", help="the first is 1.0")
    parser.add_argument("--tasks", default="rows,frames", help="rows, frames or both")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--games", type=int, default=128, help="of rows (128)")
    parser.add_argument("--frames", type=int, default=40_000, help="of frames (40000)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    launchers = args.launchers.split(",")
    works = {
        "rows": Work("go/7", ("--games", str(args.games)), _SELFPLAY, 3),
        "frames": Work("CartPole-v1", ("--frames", str(args.frames)), _FRAMES, 3),
    }
    report: dict[str, Any] = {}
    for name in args.tasks.split(","):
        rounds: list[dict[str, Spent]] = []
        for number in range(args.rounds):
            order = launchers if number % 2 == 0 else launchers[::-1]
            rounds.append({one: _run(works[name], one) for one in order})
            for one in launchers:
                print(name, number, one, _shown(rounds[-1][one]), flush=True)
        report[name] = _summary(rounds, launchers)
        for one, words in report[name].items():
            print(name, one, json.dumps(words), flush=True)
    if args.json:
        print(json.dumps(report))
    return 0


def _run(work: Work, launcher: str) -> Spent:
    folder = Path(tempfile.mkdtemp(prefix="launchers-"))
    out = folder / "run"
    command = [*TENGEN, "train", work.task, *work.budget]
    command += ["--launch", launcher, "--out", str(out), "--seed", "1"]
    if work.task != "go/7":
        command += ["--agent", "ppo"]
    for setting in work.settings:
        command += ["--set", setting]
    if launcher == "ray":
        # Starts a cluster for this command, so that all of Ray's costs are counted.
        command += ["--set", "launch.address=local"]
    if launcher == "mpi":
        mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none"]
        mpirun += ["--allow-run-as-root"] if os.geteuid() == 0 else []
        command = [*mpirun, "-n", str(work.num_ranks), *command]
    start_s = time.monotonic()
    with open(folder / "printed", "wb") as printed:
        process = subprocess.Popen(command, stdout=printed, stderr=printed)
        seen: Seen = {}
        memory_mib = dict.fromkeys(_KINDS, 0.0)
        weighed_s, first_row_s = start_s, math.nan
        while process.poll() is None:
            if math.isnan(first_row_s) and _has_rows(out):
                first_row_s = time.monotonic() - start_s
            alive = _look(process.pid, seen)
            if time.monotonic() - weighed_s >= _WEIGH_S:
                weighed_s = time.monotonic()
                for kind, mib in _weigh(alive, seen).items():
                    memory_mib[kind] = max(memory_mib[kind], mib)
            time.sleep(_LOOK_S)
    wall_s = time.monotonic() - start_s
    if process.returncode != 0:
        raise SystemExit((folder / "printed").read_text()[-2000:])
    run = RunDirectory(out)
    newest = run.checkpoints.latest()
    assert newest is not None
    rows = int(read_extra(run.checkpoints.entry(newest))["data"]["num_rows"])
    shutil.rmtree(folder)
    cpu_s = dict.fromkeys(_KINDS, 0.0)
    for kind, seconds in seen.values():
        cpu_s[kind] += seconds
    return Spent(
        rows,
        first_row_s,
        wall_s,
        cpu_s["roles"],
        cpu_s["tengen"],
        cpu_s["launcher"],
        memory_mib,
    )


def _has_rows(out: Path) -> bool:
    """Returns whether the run has a durable game, or an actor has made a frame."""
    run = RunDirectory(out)
    games = experience_files(run.experience, "journal")
    games += experience_files(run.experience, "npz")
    if any(path.exists() and path.stat().st_size for path in games):
        return True
    return read_actor_counts(run).get("num_rows", 0) > 0


def _look(root: int, seen: Seen) -> list[Alive]:
    """Updates the CPU time of each process in a tree.

    Args:
        root: The process that was started.
        seen: Kind and CPU-seconds by process and its start time; updated.

    Returns:
        The processes that are alive now.
    """
    alive: list[Alive] = []
    table = processes()
    for process, found in table.items():
        kinds = []
        at = process
        while at in table and at != root:
            kinds.append(_kind(table[at].words))
            at = table[at].parent
        if at != root:
            continue
        kinds.append(_kind(table[root].words) if root in table else "")
        # The nearest known ancestor decides: a child of a role belongs to the role.
        kind = next((one for one in kinds if one), "launcher")
        key = process, found.started
        if key in seen and not kinds[0]:
            kind = seen[key][0]  # the process has ended and lost its command line
        seen[key] = (kind, found.cpu_s)
        alive.append(key)
    return alive


def _weigh(alive: list[Alive], seen: Seen) -> dict[str, float]:
    """Returns the memory of processes by kind, in MiB."""
    found = dict.fromkeys(_KINDS, 0.0)
    for key in alive:
        found[seen[key][0]] += memory_mib(key[0], "Pss:")
    return found


def _kind(words: list[str]) -> str:
    # A forked actor has the command line of the server that forked it.
    if {"tengen.launch.child", "tengen.launch.fork_server"} & set(words):
        return "roles"
    if words[0] == "mpirun" or "raylet" in words[0] or "ray::" in words[0]:
        return "launcher"
    if any("site-packages/ray/" in word for word in words):
        return "launcher"
    return "tengen" if "tengen" in words and "train" in words else ""


def _summary(
    rounds: list[dict[str, Spent]], launchers: list[str]
) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for one in launchers:
        runs = [spent[one] for spent in rounds]
        ratios = {
            kind: [
                spent[one].rates[kind] / spent[launchers[0]].rates[kind]
                for spent in rounds
            ]
            for kind in runs[0].rates
        }
        found[one] = {
            "rows_per_cpu_s": round(statistics.median(s.rates["own"] for s in runs), 1),
            **{
                f"{kind}_ratio": round(statistics.median(values), 3)
                for kind, values in ratios.items()
            },
            **{
                f"{kind}_ratios": [round(value, 3) for value in ratios[kind]]
                for kind in ("own", "roles")
            },
            "roles_s": round(statistics.median(s.roles_s for s in runs), 2),
            "tengen_s": round(statistics.median(s.tengen_s for s in runs), 2),
            "launcher_s": round(statistics.median(s.launcher_s for s in runs), 2),
            "first_row_s": round(statistics.median(s.first_row_s for s in runs), 2),
            "first_row_ratio": round(
                statistics.median(
                    spent[one].first_row_s / spent[launchers[0]].first_row_s
                    for spent in rounds
                ),
                3,
            ),
            "wall_s": round(statistics.median(s.wall_s for s in runs)),
            "memory_mib": {
                kind: round(statistics.median(s.memory_mib[kind] for s in runs))
                for kind in _KINDS
            },
        }
    return found


def _shown(spent: Spent) -> str:
    return (
        f"{spent.rows} rows in {spent.wall_s:.0f} s, the first after "
        f"{spent.first_row_s:.1f} s; CPU of roles {spent.roles_s:.1f} "
        f"s, of tengen beside them {spent.tengen_s:.2f} s, of the launcher "
        f"{spent.launcher_s:.2f} s; {spent.rates['own']:.1f} rows per own CPU-second; "
        f"MiB at most "
        + ", ".join(f"{kind} {mib:.0f}" for kind, mib in spent.memory_mib.items())
    )


if __name__ == "__main__":
    sys.exit(main())
