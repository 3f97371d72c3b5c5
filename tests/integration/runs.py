"""Small real runs for tests: a few games of tic-tac-toe, by the real command."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tengen.observe import read_events
from tests import templates

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
"""After this a test takes a process to hang, however busy the machine is."""

_ON_CORES = """
import sys
from tengen.cli import main
from tengen.run import machine
machine.available_cores = lambda: {cores}
sys.exit(main(sys.argv[1:]))
"""


def train_command(
    out: Path,
    games: int,
    *extra: str,
    settings: tuple[str, ...] = SMALL,
    cores: int | None = None,
) -> list[str]:
    """Returns the command line of a small tic-tac-toe run.

    Args:
        out: The run directory.
        games: After how many it ends.
        extra: More arguments.
        settings: Of the config.
        cores: What the command takes for the cores of the machine; None for the truth.
    """
    program = ["-m", "tengen"]
    if cores is not None:
        program = ["-c", _ON_CORES.format(cores=cores)]
    command = [sys.executable, *program, "train", "tictactoe"]
    command += ["--out", str(out), "--games", str(games), *extra]
    for setting in settings:
        command += ["--set", setting]
    return command


def run_command(
    command: list[str], *, fault: str | None = None, timeout_s: float = HANG_S
) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end."""
    env = {name: text for name, text in os.environ.items() if name != "TENGEN_FAULT"}
    if fault is not None:
        env["TENGEN_FAULT"] = fault
    with _shared_templates(command):
        return subprocess.run(
            command, env=env, capture_output=True, text=True, timeout=timeout_s
        )


def start_command(command: list[str]) -> subprocess.Popen[str]:
    """Starts a command in a process group of its own, as a shell does."""
    with _shared_templates(command):
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )


@contextlib.contextmanager
def _shared_templates(command: list[str]) -> Iterator[None]:
    """Has the run that a command makes share traced networks with others."""
    out = Path(command[command.index("--out") + 1]) if "--out" in command else None
    if out is not None:
        templates.lend(out)
    yield
    if out is not None:
        templates.keep(out)


def wait_for(happened: Callable[[], object], timeout_s: float = HANG_S) -> None:
    """Returns once something is true."""
    end_s = time.monotonic() + timeout_s
    while not happened():
        assert time.monotonic() < end_s, "it never happened"
        time.sleep(0.02)


def events(out: Path, kind: str) -> list[dict[str, Any]]:
    """Returns every event of a kind that the runner wrote, in order."""
    paths = sorted(
        out.glob("events/train-*.jsonl"), key=lambda p: int(p.stem.split("-")[1])
    )
    return [e for path in paths for e in read_events(path) if e["kind"] == kind]


def sealed(out: Path) -> dict[int, bytes]:
    """Returns the bytes of every sealed segment by generation; none twice."""
    found: dict[int, bytes] = {}
    for path in out.glob("experience/*/*/[0-9]*.npz"):
        generation = int(path.stem)
        assert generation not in found, f"generation {generation} was sealed twice"
        found[generation] = path.read_bytes()
    return found


def weights(out: Path) -> dict[str, bytes]:
    """Returns the weights of every published model by number."""
    paths = out.glob("models/[0-9]*/weights.safetensors")
    return {path.parent.name: path.read_bytes() for path in paths}
