"""Helpers that start and inspect small runs of the real command ``tengen train``."""

import os
import subprocess
import sys
import time
from pathlib import Path

from tengen.observe import read_events

SMALL = (
    "agent.actor.games_per_generation=24",
    "agent.actor.full_simulations=8",
    "agent.actor.num_slots=8",
    "store.min_rows=50",
    "store.limiter.samples_per_row=2",
    "learner.batch_size=32",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    "inference.precision=fp32",
    "inference.backend=openvino",
    "inference.batch_shape=dynamic",
)

HANG_S = 900.0
"""Seconds after which a test considers a process as hung, even on a busy machine."""

_ON_CORES = """
import sys
from tengen.cli import main
from tengen.run import machine
machine.available_cores = lambda: {cores}
sys.exit(main(sys.argv[1:]))
"""


def train_command(out, games, *extra, settings=SMALL, cores=None):
    """Returns the command line of a small run of tic-tac-toe.

    Args:
        out: The run directory.
        games: The number of games of this call.
        extra: Additional arguments.
        settings: Settings of the config.
        cores: The simulated number of cores; None for the real number.
    """
    program = ["-m", "tengen"]
    if cores is not None:
        program = ["-c", _ON_CORES.format(cores=cores)]
    command = [sys.executable, *program, "train", "tictactoe"]
    command += ["--out", str(out), "--games", str(games), *extra]
    for setting in settings:
        command += ["--set", setting]
    return command


def run_command(command, *, cwd=None, fault=None, timeout_s=HANG_S):
    """Runs a command to completion; ``fault`` is a fault point that kills a process."""
    env = {name: text for name, text in os.environ.items() if name != "TENGEN_FAULT"}
    if fault is not None:
        env["TENGEN_FAULT"] = fault
    return subprocess.run(
        command, cwd=cwd, env=env, capture_output=True, text=True, timeout=timeout_s
    )


def start_command(command):
    """Starts a command in its own session and process group."""
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def wait_for(happened, timeout_s=HANG_S):
    """Waits until ``happened`` returns true."""
    end_s = time.monotonic() + timeout_s
    begun_s = time.thread_time()
    while not happened():
        assert time.monotonic() < end_s, "it never happened"
        # Limits polling to a sixth of a CPU, which the awaited processes need.
        time.sleep(max(0.02, 5.0 * (time.thread_time() - begun_s)))
        begun_s = time.thread_time()


def events(out, kind):
    """Returns the runner's events of one kind, in order."""
    paths = sorted(
        out.glob("events/train-*.jsonl"), key=lambda p: int(p.stem.split("-")[1])
    )
    return [e for path in paths for e in read_events(path) if e["kind"] == kind]


def turns(out, role):
    """Returns the runner's turn events of a role, in order."""
    return [turn for turn in events(out, "turn") if turn["role"] == role]


def learned(out):
    """Returns the events of the learner's turns that made at least one step."""
    return [turn for turn in turns(out, "learn") if turn.get("num_steps")]


def process_of(out, role, index=0):
    """Returns the process ID of a role's current process, or None."""
    words = [f"--index={index}", str(out.absolute())]
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            found = (folder / "cmdline").read_bytes().decode().split("\0")
            name, parent = (folder / "stat").read_text().split("(", 1)[1].rsplit(")", 1)
            above = Path("/proc", parent.split()[1], "cmdline").read_bytes().decode()
        except OSError:
            continue
        is_child = "tengen.launch.child" in found and role in found
        # What an environment forked has the command line of its role.
        is_fork = above.split("\0") == found
        if is_child and not is_fork and all(word in found for word in words):
            return int(folder.name)
        # A forked process has its parent's command line, so its name is compared.
        if name == f"{role}-{index}" and words[1] in found:
            return int(folder.name)
    return None


def sealed(out):
    """Returns the bytes of the sealed segments by generation, which must be unique."""
    found = {}
    for path in out.glob("experience/*/*/[0-9]*.npz"):
        generation = int(path.stem)
        assert generation not in found, f"generation {generation} was sealed twice"
        found[generation] = path.read_bytes()
    return found


def weights(out):
    """Returns the weights of all published models by number."""
    paths = out.glob("models/[0-9]*/weights.safetensors")
    return {path.parent.name: path.read_bytes() for path in paths}
