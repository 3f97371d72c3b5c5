"""Measures the throughput of hundreds of actors on one host, and killing a tenth.

    python benchmarks/cluster/many_actors.py [--actors 300] [--step-ms 16]
        [--seconds 30]

Runs ``tengen train`` on this host with ``--actors`` actor processes of one copy, one
inference server, and one learner with its table. A step of the environment
(``timed_env.py``) sleeps, as if a simulator ran on its own core, returns an observation
of 7,056 bytes and records its time. Halfway through, a tenth of the actors is killed
with SIGKILL, and the runner restarts them.

Reports steps per second and the maximum that the environments alone would reach
(actors / step time); the time between two steps of an actor (inference, sampling,
writing and waiting for a core: p50, p99); the longest time in which no actor began a
step, before and after the kill; private memory of the actors (``Private_*`` of
``smaps_rollup``: pages that no other process maps); CPU-seconds per role. Linux only.

Prints a table, and JSON on the last line (``--json``: only JSON).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from timed_env import NOTE

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import TENGEN, memory_mib, processes

from tengen.observe import read_events

START_S = 300.0
WARM_S = 4.0
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
FORKS = "tengen.launch.fork_server"


def processes_of(run: Path) -> dict[int, str]:
    """Returns a run's process IDs with their roles, or ``fork server``."""
    found = {}
    for number, process in processes().items():
        if str(run) not in process.words:
            continue
        if process.name.startswith("actor-"):
            found[number] = "actor"
        elif FORKS in process.words:
            found[number] = "fork server"
        elif "tengen.launch.child" in process.words:
            found[number] = process.words[process.words.index(str(run)) + 2]
        elif "train" in process.words:
            found[number] = "runner"
    return found


def cpu_s(known: dict[int, str]) -> dict[int, float]:
    """Returns the CPU-seconds so far of the living ``known`` processes, by ID."""
    return {
        number: process.cpu_s
        for number, process in processes().items()
        if number in known
    }


def machine_busy_s() -> float:
    """Returns the CPU-seconds used so far by all processes of the machine."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
    idle = int(fields[3]) + int(fields[4])
    return (sum(map(int, fields[:8])) - idle) / TICKS_PER_S


def notes_of(folder: Path) -> Iterator[NDArray[np.int64]]:
    """Yields each actor's step records, ``[steps, 2]``; see ``timed_env.NOTE``."""
    for path in folder.iterdir():
        content = path.read_bytes()
        whole = len(content) // NOTE.size * NOTE.size
        yield np.frombuffer(content[:whole], "<i8").reshape(-1, 2)


def window(notes: NDArray[np.int64], begin_ns: int, end_ns: int) -> dict[str, float]:
    """Returns the rate, pauses and longest gap of steps in a time window."""
    begun = notes[:, 0]
    inside = notes[(begun >= begin_ns) & (begun < end_ns)]
    times = np.sort(inside[:, 0])
    edges = np.concatenate([[begin_ns], times, [end_ns]])
    between_ms = inside[:, 1] / 1e6
    return {
        "steps_per_s": len(inside) / ((end_ns - begin_ns) / 1e9),
        "between_p50_ms": float(np.percentile(between_ms, 50)),
        "between_p99_ms": float(np.percentile(between_ms, 99)),
        "longest_gap_ms": float(np.diff(edges).max() / 1e6),
    }


class Training:
    """A training run of the benchmark, in its own process."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.out = folder / "run"
        self.notes = folder / "notes"
        self.notes.mkdir()
        # Capacity for some items per actor, as in ``tengen bench actors``.
        room = f"store.max_items={max(64, 4 * args.actors)}"
        settings = ["agent.actor.num_envs=1", room, *args.set]
        words = [*TENGEN, "train", "timed_env:Timed"]
        words += ["--agent", args.agent, "--launch", "local", "--frames", "1000M"]
        words += ["--actors", str(args.actors), "--out", str(self.out)]
        words += [word for one in settings for word in ("--set", one)]
        here = str(Path(__file__).parent)
        paths = [here, *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join(paths),
            "TIMED_ENV_FOLDER": str(self.notes),
            "TIMED_ENV_STEP_MS": str(args.step_ms),
            "TIMED_ENV_BYTES": str(args.bytes),
        }
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                words, env=environment, stdout=log, stderr=log
            )

    def wait_for(self, num_actors: int) -> float:
        """Waits until ``num_actors`` have stepped; returns the seconds waited."""
        begun_s = time.monotonic()
        while sum(1 for _ in self.notes.iterdir()) < num_actors:
            if self.process.poll() is not None or time.monotonic() > begun_s + START_S:
                raise SystemExit(
                    f"many_actors: {num_actors} actors did not begin; the run said "
                    f"{self.log.read_text()[-500:]}"
                )
            time.sleep(0.1)
        return time.monotonic() - begun_s

    def end(self) -> int:
        """Interrupts the run; returns its exit code."""
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)


def measure(args: argparse.Namespace) -> dict[str, Any]:
    """Runs the benchmark and returns its report."""
    with tempfile.TemporaryDirectory() as name:
        training = Training(args, Path(name).resolve())
        try:
            started_s = training.wait_for(args.actors)
            time.sleep(WARM_S)
            report = watch(args, training)
            code = training.end()
        finally:
            if training.process.poll() is None:
                training.process.kill()
                training.process.wait()
        paths = (training.out / "events").glob("train-*.jsonl")
        told = [one for path in paths for one in read_events(path)]
        events = [one for one in told if one["kind"] == "death"]
        report["deaths"] = [f"{one['role']}: {one['how']}" for one in events]
        # The end of the log names the bottleneck, or the reason why the run ended.
        report["said"] = training.log.read_text(errors="replace")[-600:].splitlines()
    report["exit_code"] = code
    report["started_s"] = started_s
    settings = ("actors", "agent", "step_ms", "bytes", "seconds", "kill", "set")
    return report | {key: vars(args)[key] for key in settings}


def watch(args: argparse.Namespace, training: Training) -> dict[str, Any]:
    """Returns the measurements of a running training, before and after a kill."""
    known = processes_of(training.out)
    used, machine_s = cpu_s(known), machine_busy_s()
    begin_ns = time.monotonic_ns()
    time.sleep(args.seconds)
    middle_ns = time.monotonic_ns()
    later, machine_s = cpu_s(known), machine_busy_s() - machine_s
    seconds = (middle_ns - begin_ns) / 1e9
    roles = dict.fromkeys(known.values(), 0.0)
    for pid, used_s in used.items():
        roles[known[pid]] += later.get(pid, used_s) - used_s
    actors = sorted(pid for pid, role in known.items() if role == "actor")
    memory = [memory_mib(pid, "Private_") for pid in actors]
    others = {
        role: memory_mib(p, "Private_") for p, role in known.items() if role != "actor"
    }
    kill_ns = time.monotonic_ns()
    for pid in actors[: args.kill]:
        os.kill(pid, signal.SIGKILL)
    time.sleep(args.seconds)
    end_ns = time.monotonic_ns()
    notes = np.concatenate(list(notes_of(training.notes)))
    before = window(notes, begin_ns, middle_ns)
    ideal = 1000 * args.actors / args.step_ms
    own_s = sum(roles.values())
    return {
        "before": before,
        "after": window(notes, kill_ns, end_ns),
        "of_ideal": before["steps_per_s"] / ideal,
        "private_mb": {
            "actor_median": statistics.median(memory),
            "actor_max": max(memory),
            **others,
        },
        "cores": {role: round(used_s / seconds, 3) for role, used_s in roles.items()},
        "cores_of_others": round((machine_s - own_s) / seconds, 3),
        "cpu_ms_per_step": {
            role: 1000 * used_s / (before["steps_per_s"] * seconds)
            for role, used_s in roles.items()
        },
        "alive_at_end": sum(
            role == "actor" for role in processes_of(training.out).values()
        ),
    }


def show(report: dict[str, Any]) -> None:
    """Prints the table."""
    print(f"{report['actors']} actors of {report['step_ms']:g} ms a step")
    print("           steps/s  between steps p50 ms  p99 ms  longest gap ms")
    for name in ("before", "after"):
        row = report[name]
        print(
            f"{name:8} {row['steps_per_s']:9,.0f} {row['between_p50_ms']:21.2f} "
            f"{row['between_p99_ms']:7.1f} {row['longest_gap_ms']:15.1f}"
        )
    memory = report["private_mb"]
    print(
        f"of actors / step {report['of_ideal']:.3f}; {report['kill']} killed, "
        f"{report['alive_at_end']} alive at the end; all began in "
        f"{report['started_s']:.1f} s\n"
        f"private MiB of an actor: median {memory['actor_median']:.1f}, most "
        f"{memory['actor_max']:.1f}\n"
        f"cores: {report['cores']}, others {report['cores_of_others']}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--actors", type=int, default=300)
    parser.add_argument("--agent", default="vtrace")
    parser.add_argument("--step-ms", type=float, default=16.0)
    parser.add_argument("--bytes", type=int, default=84 * 84, help="of an observation")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each half")
    parser.add_argument("--kill", type=int, help="actors (a tenth)")
    parser.add_argument("--set", action="append", default=[], metavar="a.b=v")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    if args.actors < 1 or args.seconds <= 0 or args.step_ms <= 0:
        parser.error("--actors must be 1 or more, --seconds above 0, --step-ms too")
    args.kill = args.actors // 10 if args.kill is None else args.kill
    report = measure(args)
    if not args.json:
        show(report)
    print(json.dumps(report))


if __name__ == "__main__":
    main()
