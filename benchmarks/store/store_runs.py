"""What real runs ask of the store, and how long their learners wait for it.

    python benchmarks/store/store_runs.py --out FOLDER [--minutes 3] [--json]

Five runs train at once, each a ``tengen train`` of its own with a table of its own: a
run's table is its learner's, and runs cannot share one server. Of each it prints what
an item is, as the agent writes it, what its actors wrote and its learner drew a second
of the run, and which share of the learner's steps was spent waiting for a batch that
was not drawn yet (``sample_wait_s`` beside ``train_s`` in ``RUN/events``).

The reference's bytes and rates are those that ``tengen bench store`` replays.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tengen.agents.environment_agent import EnvironmentAgent
from tengen.bench.store_workloads import WORKLOADS
from tengen.experience import ReplayConfig
from tengen.roles import read_config
from tengen.run import RunDirectory, machine_line

RUNS = {
    "dqn": ("atari/Pong", "dqn"),
    "ppo": ("atari/Qbert", "ppo"),
    "r2d2": ("atari/Pong", "r2d2"),
    "impala": ("atari/Qbert", "vtrace"),
    "sac": ("mujoco/Hopper", "sac"),
}
"""The run of each workload: a task and an agent."""


def start(out: Path, name: str, minutes: float) -> subprocess.Popen[bytes]:
    """Starts a run, whose words go to a file beside it."""
    task, agent = RUNS[name]
    words = ("train", task, "--agent", agent, "--out", out / name)
    limits = ("--minutes", minutes, "--threads", 1)
    with (out / f"{name}.log").open("wb") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "tengen", *map(str, (*words, *limits))],
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def events(run: Path) -> Iterator[dict[str, Any]]:
    """Yields what a run told."""
    for path in sorted((run / "events").glob("*.jsonl")):
        yield from map(json.loads, path.read_text().splitlines())


def report(out: Path, name: str) -> dict[str, Any]:
    """Returns what a run that has ended asked of its table."""
    run = RunDirectory.open(out / name)
    config = read_config(run)
    agent, store = config.agent, config.store
    assert isinstance(agent, EnvironmentAgent)
    assert isinstance(store, ReplayConfig)
    plan = agent.plan_table(config, run)
    layout = agent.layout(agent.net_signature(config).state)
    told = list(events(run.path))
    times = [event["time_s"] for event in told]
    seconds = max(times) - min(times)
    turns = [one for one in told if (one["kind"], one.get("role")) == ("turn", "learn")]
    # A closed item repeats the steps that it shares with the one before it.
    new_steps = layout.num_stored if layout.is_closed else layout.period
    learned = [turn for turn in turns if turn.get("num_steps")]
    num_steps = sum(turn["num_steps"] for turn in learned)
    waited = sum(turn["num_steps"] * turn["sample_wait_s"] for turn in learned)
    trained = sum(turn["num_steps"] * turn["train_s"] for turn in learned)
    num_new = sum(turn.get("num_new", 0) for turn in turns)
    workload = WORKLOADS[name]
    return {
        "task": config.task,
        "agent": agent.kind,
        "sampler": store.sampler,
        "entries": store.max_items,
        "step_bytes": plan.table.step_bytes,
        "item_steps": layout.num_stored,
        "item_bytes": plan.table.item_bytes,
        "new_item_bytes": plan.table.step_bytes * new_steps,
        "batch_size": config.learner.batch_size,
        "adds/s": num_new / seconds,
        "samples/s": num_steps * config.learner.batch_size / seconds,
        "learner_steps": num_steps,
        "wait_ms": 1e3 * waited / max(1, num_steps),
        "train_ms": 1e3 * trained / max(1, num_steps),
        "wait_share": waited / max(1e-9, waited + trained),
        "reference": {
            "entries": workload.entries,
            "item_bytes": workload.item_bytes,
            "adds/s": workload.adds_per_s,
            "samples/s": workload.samples_per_s,
            "batch_size": workload.batch_size,
        },
    }


def main() -> None:
    """Runs and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    args.out.mkdir(parents=True)
    started = {name: start(args.out, name, args.minutes) for name in RUNS}
    for name, process in started.items():
        if process.wait() != 0:
            print(f"{name} failed; see {args.out / name}.log", file=sys.stderr)
    found = {
        name: report(args.out, name)
        for name, process in started.items()
        if process.returncode == 0
    }
    if args.json:
        print(json.dumps({**found, "machine": machine_line()}))
        return
    for name, values in found.items():
        print(name, json.dumps(values))


if __name__ == "__main__":
    main()
