"""Actors that are forks of one process: each is what a process of its own would be."""

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from tengen import games
from tengen.errors import TengenWarning
from tengen.launch.launcher import Command, role_command
from tengen.launch.local import ForkServer, LocalLauncher
from tengen.launch.messages import Begun, Stop, Turn
from tengen.launch.workers import Worker
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory
from tests.unit.launch.children import placed, received, started, the_hub

__all__ = ["the_hub"]

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.skipif(
    not hasattr(os, "pidfd_open"), reason="this system has no descriptors of processes"
)

TURN = Turn("actor", {"sealed": 0})
DRAWING = """
import os
import numpy as np
from gymnasium.envs.classic_control import CartPoleEnv
class Drawing(CartPoleEnv):
    def __init__(self):
        super().__init__()
        with open(f"drawn-{os.getpid()}", "a") as file:
            print(np.random.random(), file=file)
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "drawing.py").write_text(DRAWING)
    monkeypatch.syspath_prepend(tmp_path)
    games.allow("drawing:Drawing")
    run = RunDirectory.create_or_resume(tmp_path / "run")
    made = make_config("drawing:Drawing", "ppo", None)
    write_config(run, override(made, ["launch.roles.actor.count=2"]))
    return run


@pytest.fixture
def launcher(run):
    launcher = LocalLauncher(run)
    yield launcher
    launcher.close()


def started_as(run, hub, launcher, index, role="actor"):
    worker = Worker(name=role, roles=(role,), index=index)
    words = role_command(run, worker, "drawing:Drawing", at_once=True)
    return started(hub, words, launcher, placed(role))


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def begun(child):
    message = child.join()
    assert isinstance(message, Begun)
    return message.process


def is_fork(pid):
    """Whether a process is the child of a server, and not of this process."""
    return parent_of(pid) != os.getpid()


def private_mb(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    found = [line.split()[1] for line in lines if line.startswith("Private_")]
    return sum(map(int, found)) / 1024


def wait_for(ready):
    until = time.monotonic() + 600.0
    while not (found := ready()):
        assert time.monotonic() < until
        time.sleep(0.02)
    return found


def test_forks_are_small_named_and_draw_numbers_of_their_own(
    run, hub, launcher, tmp_path
):
    children = [started_as(run, hub, launcher, index) for index in range(2)]
    for child in children:
        child.send(TURN)  # it makes its environments before it connects
        assert is_fork(begun(child))

    def drawn():
        own = tmp_path / f"drawn-{os.getpid()}"  # which asked for the spaces
        files = [file for file in tmp_path.glob("drawn-*") if file != own]
        return files if len(files) == 2 and all(f.read_text() for f in files) else None

    files = wait_for(drawn)
    first, second = (file.read_text().splitlines()[0] for file in files)
    assert first != second
    pids = [int(file.name.removeprefix("drawn-")) for file in files]
    names = {Path(f"/proc/{pid}/comm").read_text().strip() for pid in pids}
    assert names == {"actor-0", "actor-1"}
    for pid in pids:
        assert str(run.path) in Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        # 10.5; 16 where the server imported less, 32 where each imports by itself.
        assert private_mb(pid) < 14
    # Ends that one fork had of another's would keep it from ending.
    children[0].send(Stop())
    received(children[0])
    assert children[0].end(30) == "exit code 0"
    children[1].kill()
    received(children[1])
    assert children[1].end(30) == "signal 9"
    children[1].kill()  # does nothing to whoever has its number now


def test_a_fork_that_does_not_leave_is_killed(run, hub, launcher):
    child = started_as(run, hub, launcher, 3)
    pid = wait_for(lambda: pid_of(run, "actor-3"))
    os.kill(pid, signal.SIGSTOP)
    assert child.end(0.1) == "signal 9"
    assert pid_of(run, "actor-3") is None


def test_forks_outlive_their_server_and_later_ones_begin_anew(run, hub, launcher):
    before = started_as(run, hub, launcher, 0)
    fork = begun(before)
    server = parent_of(fork)
    assert server != os.getpid()
    os.kill(server, signal.SIGKILL)
    wait_for(lambda: parent_of(fork) != server)
    with pytest.warns(TengenWarning, match="fork server .* ended .* separate "):
        anew = started_as(run, hub, launcher, 1)
    assert not is_fork(begun(anew))
    for child, how in ((before, "an unobserved end"), (anew, "exit code 0")):
        assert how in child.end(30)


def test_a_server_with_threads_forks_nothing(run, hub, monkeypatch, tmp_path):
    # Python imports this module before any other.
    (tmp_path / "sitecustomize.py").write_text(
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
    )
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    server = ForkServer(run)
    with pytest.warns(TengenWarning, match="fork server"):
        assert server.start(Command(words=[])) is None
    server.close()


def test_the_launcher_forks_actors_alone(run, hub, launcher):
    for role in ("actor", "inference"):
        child = started_as(run, hub, launcher, 0, role)
        assert is_fork(begun(child)) == (role == "actor")
        assert child.end(30) == "exit code 0"


def pid_of(run, name):
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            is_it = (folder / "comm").read_text().strip() == name
            is_it = is_it and str(run.path) in (folder / "cmdline").read_text()
            is_it = is_it and "Z" not in (folder / "stat").read_text().split()[2]
        except OSError:
            continue
        if is_it:
            return int(folder.name)
    return None
