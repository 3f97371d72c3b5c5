"""Agent steps of Pong by asynchronous PPO a CPU-second: beside Sample Factory's APPO.

    python -m venv SF && SF/bin/pip install torch sample-factory==2.1.1 \\
        gymnasium==0.29.1 numpy==1.26.4 ale-py==0.10.1
    SF/bin/pip uninstall shimmy opencv-python
    SF/bin/pip install opencv-python-headless
    python benchmarks/training/peer_appo.py --rounds 3 --peer-python SF/bin/python

Both have two actors of 8 copies in processes of their own, unrolls of 128 steps, four
epochs of batches of 256, no memory, and convolutions of 32, 64 and 64 channels before
512 units. Each has the screens of its own wrappers. tengen is run in float32, as Sample
Factory computes, and in bfloat16. Each is run for a few steps and for many; the
difference is what counts, so that imports do not. CPU-seconds are of all processes.
"""

from __future__ import annotations

import argparse
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_counts

NUM_ACTORS, NUM_ENVS, UNROLL, EPOCHS, BATCH = 2, 8, 128, 4, 256
TURN = NUM_ACTORS * NUM_ENVS * UNROLL
FEW, MANY = 4 * TURN, 20 * TURN
FRAMES_PER_STEP = 4
PEER_NAME = "sample-factory"

PEER = """
import sys
import ale_py
if __name__ == "__main__":
    from sf_examples.atari.train_atari import main
    sys.exit(main())
"""


def peer(python: str, num_steps: int, folder: Path) -> tuple[list[str], Path]:
    """Returns Sample Factory's command line, and where its words go."""
    script = folder / "run.py"
    script.write_text(PEER)
    settings = {
        "algo": "APPO",
        "env": "atari_pong",
        "experiment": "peer",
        "train_dir": folder / "train",
        "device": "cpu",
        "num_workers": NUM_ACTORS,
        "num_envs_per_worker": NUM_ENVS,
        "worker_num_splits": 2,
        "rollout": UNROLL,
        "num_epochs": EPOCHS,
        "num_batches_per_epoch": TURN // BATCH,
        "batch_size": BATCH,
        "use_rnn": False,
        "async_rl": True,
        "train_for_env_steps": FRAMES_PER_STEP * num_steps,
    }
    words = [python, str(script), *(f"--{k}={v}" for k, v in settings.items())]
    return words, folder / "words"


def tengen(num_steps: int, precision: str, folder: Path) -> list[str]:
    """Returns tengen's command line."""
    settings = {
        "learner.precision": precision,
        "inference.precision": "fp32" if precision == "float32" else "bf16",
        "agent.actor.num_envs": NUM_ENVS,
        "agent.actor.turn_steps": UNROLL,
        "agent.unroll_length": UNROLL,
        "agent.num_epochs": EPOCHS,
        "agent.num_minibatches": TURN // BATCH,
        "learner.batch_size": NUM_ACTORS * NUM_ENVS,
        "store.max_items": 2 * NUM_ACTORS * NUM_ENVS,
    }
    words: list[object] = [sys.executable, "-m", "tengen", "train"]
    words += ["atari/Pong/classic"]
    words += ["--agent", "ppo", "--actors", NUM_ACTORS, "--frames", num_steps]
    words += ["--out", folder / "run"]
    return [*map(str, words), *(f"--set={k}={v}" for k, v in settings.items())]


def measured(name: str, python: str, num_steps: int) -> tuple[float, float]:
    """Returns the steps that were made, and the CPU-seconds of all processes."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        words, log = peer(python, num_steps, folder)
        if name != PEER_NAME:
            words = tengen(num_steps, name, folder)
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        with log.open("wb") as out:
            subprocess.run(words, check=True, stdout=out, stderr=out, cwd=folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        if name != PEER_NAME:
            made = read_actor_counts(RunDirectory(folder / "run"))["num_rows"]
            return float(made), spent
        told = re.findall(r"Collected \{0: (\d+)\}", log.read_text(errors="replace"))
        return int(told[-1]) / FRAMES_PER_STEP, spent


def main() -> None:
    """Prints a line for each program and round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable)
    args = parser.parse_args()
    for _ in range(args.rounds):
        for name in (PEER_NAME, "float32", "bfloat16"):
            few = measured(name, args.peer_python, FEW)
            many = measured(name, args.peer_python, MANY)
            rate = (many[0] - few[0]) / (many[1] - few[1])
            print(f"{name}: {rate:.0f} agent steps a CPU-second", flush=True)


if __name__ == "__main__":
    main()
