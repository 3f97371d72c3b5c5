"""Compares PPO, APPO, SAC, PQN and DQN with other libraries, in CPU-seconds.

    pip install stable-baselines3==2.9.2 opencv-python-headless sbx-rl==0.28.0
    python benchmarks/training/peers.py ppo|solved --rounds 3 [--peer-python PYTHON]

    python -m venv SF && SF/bin/pip install torch sample-factory==2.1.1 \\
        gymnasium==0.29.1 numpy==1.26.4 ale-py==0.10.1
    SF/bin/pip uninstall shimmy opencv-python
    SF/bin/pip install opencv-python-headless
    python benchmarks/training/peers.py appo --rounds 2 --peer-python SF/bin/python

``ppo``: Pong on one thread, against stable-baselines3. ``appo``: Pong with two actor
processes, against Sample Factory. Both sides have the same network, environment copies,
unroll lengths, epochs and batches; tengen runs in float32, as the others do, and in
bfloat16. Each program makes a short and a long run; the rate is computed from the
differences, which exclude imports. CPU-seconds cover all processes of a program.

``solved``: Pendulum-v1 and CartPole-v1 on one thread with each library's defaults; a
round is a seed. The others train until 100 greedy episodes reach the return, without
the CPU-seconds of imports and evaluation. tengen trains for fixed frames, minus the
CPU-seconds of a run of one turn.
"""

from __future__ import annotations

import argparse
import re
import shlex
import subprocess
import sys
import tempfile
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.harness import report_of, run_command, tengen

from tengen.run import RunDirectory
from tengen.run.actor_counts import read_actor_counts

UNROLL, EPOCHS, BATCH, NUM_ENVS = 128, 4, 256, 8


class Comparison(ABC):
    """An agent of tengen, and the same agent in another library.

    Attributes:
        peer_name: The other library.
        few: Agent steps of the short run.
        many: Agent steps of the long run.
    """

    peer_name: str
    few: int
    many: int

    @abstractmethod
    def peer(self, python: str, num_steps: int, folder: Path) -> list[str]:
        """Returns the command line of the other library."""

    @abstractmethod
    def ours(self, num_steps: int) -> tuple[tuple[object, ...], dict[str, Any]]:
        """Returns the arguments and settings of ``tengen train``."""

    def peer_steps(self, num_steps: int, log: str) -> float:
        """Returns the number of steps that the other library made."""
        return float(num_steps)

    def measured(self, name: str, python: str, num_steps: int) -> tuple[float, float]:
        """Returns a run's agent steps and its CPU-seconds."""
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            log = folder / "log"
            if name == self.peer_name:
                cpu_s = run_command(self.peer(python, num_steps, folder), log)
                return self.peer_steps(
                    num_steps, log.read_text(errors="replace")
                ), cpu_s
            words, settings = self.ours(num_steps)
            settings["learner.precision"] = name
            settings["inference.precision"] = "fp32" if name == "float32" else "bf16"
            words = ("train", *words, "--frames", num_steps, "--out", folder / "run")
            cpu_s = run_command(tengen(*words, settings=settings), log)
            # Without actor processes a run makes exactly the requested number of steps.
            counts = read_actor_counts(RunDirectory(folder / "run"))
            made = counts.get("num_rows", num_steps)
            return float(made), cpu_s


class Ppo(Comparison):
    """PPO on Pong, on one thread."""

    peer_name = "stable-baselines3"
    few, many = NUM_ENVS * UNROLL, 5 * NUM_ENVS * UNROLL

    def peer(self, python: str, num_steps: int, folder: Path) -> list[str]:
        code = f"""
import ale_py, gymnasium, torch
torch.set_num_threads(1)
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_atari_env
from stable_baselines3.common.vec_env import VecFrameStack
gymnasium.register_envs(ale_py)
envs = VecFrameStack(make_atari_env("PongNoFrameskip-v4", n_envs={NUM_ENVS}), 4)
PPO("CnnPolicy", envs, n_steps={UNROLL}, n_epochs={EPOCHS}, batch_size={BATCH},
    learning_rate=2.5e-4, clip_range=0.1, ent_coef=0.01, device="cpu",
).learn({num_steps})
"""
        return [python, "-c", code]

    def ours(self, num_steps: int) -> tuple[tuple[object, ...], dict[str, Any]]:
        settings = {
            **ppo_settings(1),
            "agent.trace_lambda": 0.95,
            "agent.clip_ratio": 0.1,
            "learner.optimizer.learning_rate": 2.5e-4,
            "inference.backend": "torch",
        }
        return ("atari/Pong/classic", "--agent", "ppo", "--threads", 1), settings


class Appo(Comparison):
    """Asynchronous PPO on Pong, with two actor processes."""

    peer_name = "sample-factory"
    num_actors = 2
    few = 4 * num_actors * NUM_ENVS * UNROLL
    many = 5 * few
    frames_per_step = 4

    def peer(self, python: str, num_steps: int, folder: Path) -> list[str]:
        script = folder / "run.py"  # a file, because the workers import it
        script.write_text(
            "import sys, ale_py\n"
            'if __name__ == "__main__":\n'
            "    from sf_examples.atari.train_atari import main\n"
            "    sys.exit(main())\n"
        )
        settings = {
            "algo": "APPO",
            "env": "atari_pong",
            "experiment": "peer",
            "train_dir": folder / "train",
            "device": "cpu",
            "num_workers": self.num_actors,
            "num_envs_per_worker": NUM_ENVS,
            "worker_num_splits": 2,
            "rollout": UNROLL,
            "num_epochs": EPOCHS,
            "num_batches_per_epoch": self.num_actors * NUM_ENVS * UNROLL // BATCH,
            "batch_size": BATCH,
            "use_rnn": False,
            "async_rl": True,
            "train_for_env_steps": self.frames_per_step * num_steps,
        }
        return [python, str(script), *(f"--{k}={v}" for k, v in settings.items())]

    def peer_steps(self, num_steps: int, log: str) -> float:
        told = re.findall(r"Collected \{0: (\d+)\}", log)
        return int(told[-1]) / self.frames_per_step

    def ours(self, num_steps: int) -> tuple[tuple[object, ...], dict[str, Any]]:
        words = ("atari/Pong/classic", "--agent", "ppo", "--actors", self.num_actors)
        return words, ppo_settings(self.num_actors)


# Task, return, steps between evaluations, the others' class, tengen's agents and frames
SOLVED = (
    ("Pendulum-v1", -170, 1_000, "SAC", {"sac": 4_000}),
    ("CartPole-v1", 475, 8_192, "PPO", {"ppo": 30_000, "pqn": 90_000, "dqn": 60_000}),
)
SOLVE = """
import importlib, sys, time, gymnasium, torch
torch.set_num_threads(1)
from stable_baselines3.common.evaluation import evaluate_policy
library, kind, task, least, every, seed = sys.argv[1:]
kind = getattr(importlib.import_module(library), kind)
seconds, mean, env = 0.0, float("-inf"), gymnasium.make(task)
agent = kind("MlpPolicy", task, seed=int(seed), device="cpu")
while mean < float(least):
    start = time.process_time()
    agent.learn(int(every), reset_num_timesteps=False)
    seconds += time.process_time() - start
    mean, _ = evaluate_policy(agent, env, 100)
    steps = agent.num_timesteps
    print(library, task, f"{steps} steps, {seconds:.1f} CPU-s: {mean}", flush=True)
"""


def solve(python: str, seed: int) -> None:
    """Prints returns and CPU-seconds of each library on small tasks, with defaults."""
    for task, least, every, kind, agents in SOLVED:
        for library in ("stable_baselines3", "sbx"):
            words = (library, kind, task, str(least), str(every), str(seed))
            subprocess.run([python, "-c", SOLVE, *words], check=True)
        for agent, frames in agents.items():
            with tempfile.TemporaryDirectory() as place:
                ours = ["train", task, "--agent", agent, "--launch", "inline"]
                ours += ["--threads", "1", "--seed", str(seed), "--frames"]
                start = shlex.join(tengen(*ours, 1, "--out", f"{place}/start"))
                start_s = run_command(["sh", "-c", f"{start} || true"])
                cpu_s = run_command(tengen(*ours, frames, "--out", f"{place}/run"))
                found = report_of("eval", f"{place}/run", "--episodes", 100)
            took = f"{frames} frames, {cpu_s - start_s:.1f} CPU-s"
            print("tengen", agent, task, f"{took}: {found['mean_return']}", flush=True)


def ppo_settings(num_actors: int) -> dict[str, Any]:
    """Returns tengen's settings for PPO with ``num_actors`` actor processes."""
    num_copies = num_actors * NUM_ENVS
    return {
        "agent.actor.num_envs": NUM_ENVS,
        "agent.actor.turn_steps": UNROLL,
        "agent.unroll_length": UNROLL,
        "agent.num_epochs": EPOCHS,
        "agent.num_minibatches": num_copies * UNROLL // BATCH,
        "learner.batch_size": num_copies,
        "store.max_items": 2 * num_copies,
    }


def main() -> None:
    """Prints a line for each program and round."""
    agents = {"ppo": Ppo(), "appo": Appo()}
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("agent", choices=[*agents, "solved"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--peer-python", default=sys.executable, help="has the peer")
    args = parser.parse_args()
    for number in range(args.rounds):
        if args.agent == "solved":
            solve(args.peer_python, number + 1)
            continue
        compared = agents[args.agent]
        for name in (compared.peer_name, "float32", "bfloat16"):
            few, few_s = compared.measured(name, args.peer_python, compared.few)
            many, many_s = compared.measured(name, args.peer_python, compared.many)
            rate = (many - few) / (many_s - few_s)
            print(f"{name}: {rate:.0f} agent steps a CPU-second", flush=True)


if __name__ == "__main__":
    main()
