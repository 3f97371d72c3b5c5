"""What a prioritized replay of Pong takes, filled and drawn from as DQN does.

    python benchmarks/store/pong_replay.py [--steps 1000000] [--memory-gb 4] [--json]

Sixteen copies of ``atari/Pong`` are stepped with random actions; their blocks go
through the table that ``tengen train atari/Pong --agent dqn`` opens, each screen stored
once, and after each turn the learner's batches are drawn and acknowledged with
priorities, and the table is made durable. No network is there, so that what the process
takes beside the table is Python, the emulators and the store itself.

It prints bytes of the steps and what stacks of four would take, the greatest memory of
the process, beyond the table's budget and beyond the steps that are in memory, and
items a second of each part's own time. ``--memory-gb 0`` is the default of a run, half
of the memory.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tempfile
import time
from pathlib import Path

import numpy as np

from tengen import envs
from tengen.agents.environment_agent import EnvironmentAgent
from tengen.experience import ReplayConfig
from tengen.recipes.registry import make_config
from tengen.roles import RunConfig
from tengen.run import RunDirectory, machine_line

TASK = "atari/Pong"
NUM_STACKED = 4
FRAME_BYTES = 84 * 84


def config_of(num_steps: int, memory_bytes: int, samples_per_item: float) -> RunConfig:
    """Returns DQN's config of Pong with a replay of so many steps."""
    config = make_config(TASK, "dqn", None)
    assert isinstance(config.store, ReplayConfig)
    store = dataclasses.replace(
        config.store,
        max_items=num_steps,
        memory_bytes=memory_bytes,
        samples_per_item=samples_per_item,
    )
    return dataclasses.replace(config, store=store)


def rss_bytes() -> int:
    """Returns the memory of this process, the table's included."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


def disk_bytes(folder: Path) -> int:
    """Returns what a folder's files take."""
    return sum(512 * p.stat().st_blocks for p in folder.rglob("*") if p.is_file())


def measure(
    folder: Path, num_steps: int, memory_bytes: int, samples_per_item: float
) -> dict[str, object]:
    """Fills the table and draws from it; returns what was measured."""
    config = config_of(num_steps, memory_bytes, samples_per_item)
    agent = config.agent
    assert isinstance(agent, EnvironmentAgent)
    run = RunDirectory.create_or_resume(folder)
    num_envs = agent.actor.num_envs
    rng = np.random.default_rng(1)
    env = envs.make(TASK, num_envs, seed=1)
    before = rss_bytes()
    table = agent.open_experience(config, run, None)
    print(table.room.line, flush=True)
    block = agent.make_block(env.spec, table.layout, num_envs)
    actions = env.spec.actions
    values = agent.priority_tensors(actions)
    writer = table.writer("actor-0", num_envs, agent.first_priorities(actions))
    batch_size = config.learner.batch_size
    spent = dict.fromkeys(("insert", "sample", "durable"), 0.0)
    counts = {"insert": 0, "sample": 0}
    most = 0
    waits: list[float] = []
    begun = shown = time.monotonic()
    observation = env.reset()
    while table.describe()["num_items"] < num_steps:
        is_over = False
        while not is_over:
            action = rng.integers(actions.num_choices[0], size=num_envs)
            step = env.step(action)
            # In place of the Q values of a network, for the items' priorities.
            made = {name: rng.random(num_envs, np.float32) for name in values}
            block.append(observation, {"action": action, **made}, step, 0)
            observation, is_over = step.observation, block.is_full
        columns = block.take(observation)
        start = time.monotonic()
        counts["insert"] += writer.append(columns, {})
        spent["insert"] += time.monotonic() - start
        while table.available() >= batch_size:
            start = time.monotonic()
            batch = table.sample(batch_size)
            batch.ack(rng.random(batch_size) + 1e-6)
            waits.append(time.monotonic() - start)
            spent["sample"] += waits[-1]
            counts["sample"] += batch_size
        start = time.monotonic()
        table.flush()
        spent["durable"] += time.monotonic() - start
        most = max(most, rss_bytes())
        if time.monotonic() - shown > 30:
            shown = time.monotonic()
            print(f"{counts['insert']:,} items, {most / 1e9:.2f} GB", flush=True)
    seconds = time.monotonic() - begun
    found = table._table.describe()
    on_disk = disk_bytes(run.experience)
    budget = table.room.memory_bytes
    line = table.room.line.replace(str(folder), "RUN")
    step_bytes = table._table.config.step_bytes
    raw = num_steps * step_bytes
    num_drawn = found["num_chunk_hits"] + found["num_chunk_misses"]
    ordered = np.sort(waits)
    start = time.monotonic()
    table.close()
    env.close()
    return {
        "line": line,
        "steps": num_steps,
        "seconds": seconds,
        "step_bytes": step_bytes,
        "raw_gb": raw / 1e9,
        "stacks_gb": num_steps * NUM_STACKED * FRAME_BYTES / 1e9,
        "memory_budget_gb": budget / 1e9,
        "rss_gb": most / 1e9,
        "rss_beyond_budget_gb": max(0, most - budget) / 1e9,
        "rss_beyond_steps_gb": (most - min(raw, budget)) / 1e9,
        "rss_before_table_gb": before / 1e9,
        "disk_gb": on_disk / 1e9,
        "inserts/s": counts["insert"] / spent["insert"],
        "samples/s": counts["sample"] / spent["sample"],
        "batch_ms_median": 1e3 * float(ordered[len(ordered) // 2]),
        "batch_ms_p99": 1e3 * float(ordered[len(ordered) * 99 // 100]),
        "durable_s": spent["durable"],
        "close_s": time.monotonic() - start,
        "chunk_hits": found["num_chunk_hits"] / max(1, num_drawn),
        "machine": machine_line(),
    }


def main() -> None:
    """Measures and prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--memory-gb", type=float, default=0.0, help="0: half of it")
    parser.add_argument("--samples-per-item", type=float, default=1.0)
    parser.add_argument("--folder", help="on the disk to use (a temporary one)")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        found = measure(
            Path(folder) / "run",
            args.steps,
            int(args.memory_gb * 1e9),
            args.samples_per_item,
        )
    if args.json:
        print(json.dumps(found))
        return
    for name, value in found.items():
        print(
            f"{name}: {value:,.3f}" if isinstance(value, float) else f"{name}: {value}"
        )


if __name__ == "__main__":
    main()
