"""What an actor process takes beyond the environments that it steps.

    python benchmarks/training/actor_memory.py [--task CartPole-v1] [--agent ppo]
        [--seconds 20]

Trains by two actor processes and, after that time, reads the memory of the first one.
Beside it a bare process makes as many copies of the environment by gymnasium alone and
steps each of them a hundred times. ``pss`` counts a page that several processes have
by its share, ``private`` those that no other process has, ``rss`` every page whole;
rows and steps of an actor lie in memory that inference and the learner have too.
Reads ``/proc``: Linux, and an id of gymnasium.

Prints a table in MiB, and the last line as JSON.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ABSENT = ("torch", "openvino", "onnx")
BARE = """
import sys, time
import gymnasium
copies = [gymnasium.make(sys.argv[1]) for _ in range(int(sys.argv[2]))]
for copy in copies:
    copy.reset(seed=0)
    for _ in range(100):
        *_, terminated, truncated, _ = copy.step(copy.action_space.sample())
        if terminated or truncated:
            copy.reset()
print("made", flush=True)
time.sleep(1e6)
"""


def memory_of(pid: int) -> dict[str, float]:
    """Returns MiB of a living process."""
    found = {"rss": 0.0, "pss": 0.0, "private": 0.0}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, _, rest = line.partition(":")
        kind = "private" if name.startswith("Private_") else name.lower()
        if kind in found:
            found[kind] += int(rest.split()[0]) / 1024
    return {kind: round(value, 1) for kind, value in found.items()}


def actor_of(run: Path) -> int:
    """Returns the number of the run's first actor process, a fork with its name."""
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode().split("\0")
            name = (folder / "comm").read_text().strip()
        except OSError:
            continue
        if name == "actor-0" and str(run) in words:
            return int(folder.name)
    raise SystemExit("actor_memory: the run has no actor process; see its output above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--task", default="CartPole-v1")
    parser.add_argument("--agent", default="ppo")
    parser.add_argument("--seconds", type=float, default=20.0)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = Path(folder).resolve() / "run"
        words = [sys.executable, "-m", "tengen", "train", args.task]
        words += ["--agent", args.agent, "--actors", "2", "--frames", "1000M"]
        training = subprocess.Popen([*words, "--out", str(run)])
        try:
            while not list(run.glob("models/[0-9]*")) and training.poll() is None:
                time.sleep(0.1)
            time.sleep(args.seconds)
            actor = actor_of(run)
            maps = Path(f"/proc/{actor}/maps").read_text()
            loaded = [name for name in ABSENT if f"/{name}/" in maps]
            config = json.loads((run / "run.json").read_text())["config"]
            copies = config["agent"]["actor"]["num_envs"]
            bare = subprocess.Popen(
                [sys.executable, "-c", BARE, args.task, str(copies)],
                stdout=subprocess.PIPE,
            )
            assert bare.stdout is not None
            assert bare.stdout.readline()
            found = {"actor": memory_of(actor), "bare": memory_of(bare.pid)}
            bare.kill()
        finally:
            training.send_signal(signal.SIGINT)
            training.wait()
    found["beyond"] = {
        kind: round(found["actor"][kind] - found["bare"][kind], 1)
        for kind in found["actor"]
    }
    for name, memory in found.items():
        print(name, "  ".join(f"{kind} {value}" for kind, value in memory.items()))
    print(json.dumps({**found, "copies": copies, "loaded": loaded}))


if __name__ == "__main__":
    main()
