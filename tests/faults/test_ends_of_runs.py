"""Runs save everything when they end, even if an environment crashes or hangs.

No process remains after the terminal is closed or the runner is killed.
"""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen.learners.checkpoint import read_model
from tengen.run import RunDirectory
from tests.integration.own_time import wait_own_s
from tests.integration.runs import events, wait_for

pytest.importorskip("gymnasium")

ENVIRONMENTS = Path(__file__).parents[1] / "environments.py"
LONG_S = 300
END_S = 20.0
"""Maximum seconds for a run to end, as ``wait_own_s`` counts; includes 5 s of grace."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working directory that contains ``my_envs.py``."""
    (tmp_path / "my_envs.py").write_text(ENVIRONMENTS.read_text())
    return tmp_path


def command(name: str, *words: str) -> list[str]:
    train = [sys.executable, "-P", "-m", "tengen", "train", f"my_envs:{name}"]
    return [*train, "--agent", "ppo", "--out", "run", *words]


@pytest.mark.parametrize(
    "name", ["CrashingInClose", "HangingInCloseAtLast", "KeepingTheProcess"]
)
def test_a_run_ends_well_whatever_its_environment_does_when_it_is_closed(
    folder: Path, name: str
) -> None:
    done = subprocess.run(
        command(name, "--frames", "2k"),
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=LONG_S,
    )
    assert (done.returncode, done.stderr) == (0, "")
    run = RunDirectory(folder / "run")
    newest = run.checkpoints.latest()
    assert newest is not None
    data = read_model(run.checkpoints.entry(newest)).extra["data"]
    assert data["num_rows"] >= 2000


def living(folder: Path) -> set[int]:
    """Returns the IDs of the processes whose working directory is ``folder``."""
    found = set()
    for path in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if os.readlink(path / "cwd") == str(folder):
                found.add(int(path.name))
    return found


@pytest.fixture
def gone(folder: Path) -> Iterator[None]:
    """Kills the processes that a failed test leaves."""
    yield
    for number in living(folder):
        with contextlib.suppress(ProcessLookupError):
            os.kill(number, signal.SIGKILL)


needs_proc = pytest.mark.skipif(
    not Path("/proc/self/cwd").exists(), reason="processes are found in /proc"
)


def spins(folder: Path) -> bool:
    return any(folder.glob("spins-*"))


@needs_proc
@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("extra", [(), ("--actors", "2")], ids=["inline", "local"])
def test_a_killed_runner_leaves_no_process(
    folder: Path, extra: tuple[str, ...]
) -> None:
    """A process ends even if its environment never releases the GIL."""
    words = (*extra, "--frames", "1M", "--set", "agent.actor.step_timeout_s=600")
    child = subprocess.Popen(
        command("Spinning", *words), cwd=folder, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: spins(folder), LONG_S)
    assert len(living(folder)) > 1
    child.kill()
    child.wait()
    wait_own_s(lambda: not living(folder), lambda: living(folder), END_S)


@needs_proc
@pytest.mark.usefixtures("gone")
@pytest.mark.parametrize("name", ["Plain", "Waiting"])
def test_a_closed_terminal_ends_every_process_with_everything_saved(
    folder: Path, name: str
) -> None:
    """The terminal is closed during training (Plain) or during startup (Waiting)."""
    ours, theirs = pty.openpty()
    settings = ("--set", "agent.actor.num_envs=1", "--set", "agent.unroll_length=16")
    words = ("--frames", "10M", *settings)
    # Releases the first two instances, which only report their spaces.
    for number in range(2):
        (folder / f"go-{number}").touch()
    child = subprocess.Popen(
        [sys.executable, "-c", IN_TERMINAL, *command(name, *words)],
        cwd=folder,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    run = RunDirectory(folder / "run")
    if name == "Waiting":
        wait_for(lambda: read_all(ours) and (folder / "came-2").exists(), LONG_S)
    else:
        wait_for(
            lambda: (
                read_all(ours)
                and any(turn.get("num_steps") for turn in events(run.path, "turn"))
            ),
            LONG_S,
        )
    os.close(ours)
    wait_own_s(
        lambda: child.poll() is not None and not living(folder),
        lambda: living(folder),
        END_S,
    )
    assert child.returncode == 130
    newest = run.checkpoints.latest()
    assert newest is not None
    data = read_model(run.checkpoints.entry(newest)).extra["data"]
    assert (data["num_rows"] > 0) == (name == "Plain")
    if name == "Plain":
        return  # tests/faults/test_inline_kills.py resumes such a run
    for number in range(9):
        (folder / f"go-{number}").touch()
    more = command(name, "--frames", "500", *settings)
    done = subprocess.run(more, cwd=folder, capture_output=True, timeout=LONG_S)
    assert done.returncode == 0, done.stderr


@needs_proc
@pytest.mark.usefixtures("gone")
def test_a_stop_ends_what_a_half_made_environment_has_started(folder: Path) -> None:
    (folder / "go-0").touch()  # releases the runner's instance, which reports spaces
    words = ("--frames", "10M", "--set", "agent.actor.num_envs=1")
    child = subprocess.Popen(
        command("Simulated", *words), cwd=folder, stdout=subprocess.DEVNULL
    )
    wait_for(lambda: (folder / "came-1").exists(), LONG_S)
    child.send_signal(signal.SIGINT)
    wait_own_s(
        lambda: child.poll() is not None and not living(folder),
        lambda: living(folder),
        END_S,
    )
    assert child.returncode == 130


# Makes standard input the controlling terminal of the session. Restores SIGHUP, which
# is ignored if the tests run under nohup.
IN_TERMINAL = """
import fcntl, os, signal, sys, termios
signal.signal(signal.SIGHUP, signal.SIG_DFL)
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
os.execv(sys.argv[1], sys.argv[1:])
"""


def read_all(terminal: int) -> bool:
    """Drains the terminal, so that writers do not block; returns true."""
    os.set_blocking(terminal, False)
    with contextlib.suppress(BlockingIOError):
        while os.read(terminal, 1 << 16):
            pass
    return True
