"""Agent steps of Pong by PPO a CPU-second: tengen's beside stable-baselines3's.

    pip install stable-baselines3==2.9.2 opencv-python-headless
    python benchmarks/training/peer_ppo.py --rounds 3 [--peer-python PYTHON]

Both train the same network on 8 copies, unrolls of 128 steps, four epochs of batches of
256, no sticky actions, screens of 84 x 84 in fours, on one thread. Each is a process
that is run for a few steps and for many; the difference is what counts, so that imports
do not. CPU-seconds are of the process and its children.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

NUM_ENVS, UNROLL, EPOCHS, BATCH = 8, 128, 4, 256
TURN = NUM_ENVS * UNROLL
FEW, MANY = TURN, 5 * TURN

PEER = f"""
import ale_py, gymnasium, torch
torch.set_num_threads(1)
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack
gymnasium.register_envs(ale_py)
envs = VecFrameStack(make_atari_env("PongNoFrameskip-v4", n_envs={NUM_ENVS}), 4)
PPO("CnnPolicy", envs, n_steps={UNROLL}, n_epochs={EPOCHS}, batch_size={BATCH},
    learning_rate=2.5e-4, clip_range=0.1, ent_coef=0.01, device="cpu",
).learn(STEPS)
"""


def peer(python: str, num_steps: int) -> list[str]:
    """Returns the command line of stable-baselines3."""
    return [python, "-c", PEER.replace("STEPS", str(num_steps))]


def tengen(num_steps: int, precision: str, folder: str) -> list[str]:
    """Returns the command line of tengen."""
    settings = {
        "agent.actor.num_envs": NUM_ENVS,
        "agent.actor.turn_steps": UNROLL,
        "agent.unroll_length": UNROLL,
        "agent.num_epochs": EPOCHS,
        "agent.num_minibatches": TURN // BATCH,
        "agent.trace_lambda": 0.95,
        "agent.clip_ratio": 0.1,
        "learner.batch_size": NUM_ENVS,
        "learner.precision": precision,
        "learner.optimizer.learning_rate": 2.5e-4,
        "inference.backend": "torch",
        "inference.precision": "fp32" if precision == "float32" else "bf16",
        "store.max_items": 2 * NUM_ENVS,
    }
    words = [sys.executable, "-m", "tengen", "train", "atari/Pong/classic"]
    words += ["--agent", "ppo", "--frames", str(num_steps), "--threads", "1"]
    words += ["--out", str(Path(folder) / "run")]
    return words + [f"--set={name}={value}" for name, value in settings.items()]


def cpu_s(words: list[str]) -> float:
    """Returns the CPU-seconds of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


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
            print(f"{name}: {rate:.0f} agent steps a CPU-second", flush=True)


if __name__ == "__main__":
    main()
