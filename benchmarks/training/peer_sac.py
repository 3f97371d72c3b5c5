"""Gradient steps of SAC on Hopper a CPU-second: tengen's beside stable-baselines3's.

    pip install stable-baselines3==2.9.2 mujoco imageio packaging
    python benchmarks/training/peer_sac.py --rounds 3 [--peer-python PYTHON]

Both train two hidden layers of 256 units, batches of 256, one gradient step a step of
the environment, on one thread, acting included. Each is a process that is run for a few
steps and for many; the difference is what counts, so that imports do not. CPU-seconds
are of the process and its children. Beside each rate stands the share of what one
thread multiplies in float32, by the arithmetic that a step must do.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

FEW, MANY = 2_000, 8_000
FIRST = 1_000
BATCH, UNITS = 256, 256
NUM_OBSERVATIONS, NUM_ACTIONS = 11, 3

PEER = f"""
import torch
torch.set_num_threads(1)
from stable_baselines3 import SAC
SAC("MlpPolicy", "Hopper-v5", batch_size={BATCH}, learning_starts={FIRST}, seed=1,
    device="cpu").learn(STEPS)
"""


def peer(python: str, num_steps: int) -> list[str]:
    """Returns the command line of stable-baselines3."""
    return [python, "-c", PEER.replace("STEPS", str(num_steps))]


def tengen(num_steps: int, precision: str, folder: str) -> list[str]:
    """Returns the command line of tengen."""
    words = [sys.executable, "-m", "tengen", "train", "mujoco/Hopper", "--agent"]
    words += ["sac", "--frames", str(num_steps), "--threads", "1", "--seed", "1"]
    words += ["--set", f"learner.precision={precision}", "--set"]
    return [*words, f"store.min_items={FIRST}", "--out", str(Path(folder) / "run")]


def cpu_s(words: list[str]) -> float:
    """Returns the CPU-seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def step_flops() -> float:
    """Returns the multiplications and additions of one gradient step.

    The target is a pass of the policy and of both target critics; the critics learn by
    a pass and two back; the policy learns by a pass and two back, and through the
    critics by a pass and one back.
    """
    hidden = UNITS * UNITS
    policy = NUM_OBSERVATIONS * UNITS + hidden + UNITS * 2 * NUM_ACTIONS
    critic = (NUM_OBSERVATIONS + NUM_ACTIONS) * UNITS + hidden + UNITS
    return 2.0 * BATCH * (4 * policy + 2 * (1 + 3 + 2) * critic)


def peak_flops() -> float:
    """Returns what one thread of torch does a second in a large product."""
    import torch

    torch.set_num_threads(1)
    side = 1024
    one, other = torch.randn(side, side), torch.randn(side, side)
    best_s = float("inf")
    for _ in range(20):
        begun_s = time.perf_counter()
        torch.mm(one, other)
        best_s = min(best_s, time.perf_counter() - begun_s)
    return 2.0 * side**3 / best_s


def main() -> None:
    """Prints a line for each program and round."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--peer-python",
        default=sys.executable,
        help="has stable-baselines3 (this one)",
    )
    args = parser.parse_args()
    for _ in range(args.rounds):
        peak = peak_flops()
        print(f"one thread multiplies at {peak / 1e9:.0f} GFLOP/s in float32")
        for name in ("stable-baselines3", "float32", "bfloat16"):
            spent = []
            for num_steps in (FEW, MANY):
                with tempfile.TemporaryDirectory() as folder:
                    words = (
                        peer(args.peer_python, num_steps)
                        if name == "stable-baselines3"
                        else tengen(num_steps, name, folder)
                    )
                    spent.append(cpu_s(words))
            rate = (MANY - FEW) / (spent[1] - spent[0])
            share = rate * step_flops() / peak
            print(
                f"{name}: {rate:.0f} gradient steps a CPU-second, {share:.2f} of that",
                flush=True,
            )


if __name__ == "__main__":
    main()
