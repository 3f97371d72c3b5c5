"""A role process whose runner is gone, and what a process says before it ends."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tengen.launch.joined import Child
from tengen.launch.messages import Begun, Failed, Report, Saved, Stop, Turn
from tengen.launch.wire import Hub, Stream
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.roles.doors import TOKEN_VARIABLE
from tengen.run import RunDirectory
from tests.integration.own_time import wait_own_s
from tests.unit.launch.children import placed, received, started, the_hub

__all__ = ["the_hub"]

Start = Callable[..., Child]


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    return run


@pytest.fixture
def start(run: RunDirectory, hub: Hub) -> Start:
    """Starts a role process whose module was changed by some lines."""

    def make(changes: str, *roles: str) -> Child:
        code = f"import sys\nfrom tengen.launch import child\n{changes}\n"
        code += "sys.exit(child.main(sys.argv[1:]))\n"
        return started(hub, ["-c", code, str(run.path), "1", *roles])

    return make


# Each is a main thread that never looks up; the second keeps the interpreter's lock.
HANGS = ["threading.Event().wait()", "ctypes.PyDLL(None).pause()"]


@pytest.mark.parametrize("hangs", HANGS)
def test_one_that_hangs_is_ended_when_its_runner_is_gone(
    start: Start, hangs: str
) -> None:
    made = start(
        "import ctypes, threading\nchild._ALONE_S = 0.1\n"
        f"child._Child.serve = lambda self: {hangs}",
        "learn",
    )
    made.join()
    assert made.end(900) == "signal 9"


def joined(hub: Hub, run: RunDirectory, serve: str) -> tuple[Any, Stream, int]:
    """Starts a learner whose main thread does this; returns it, and its connection."""
    ticket = hub.ticket()
    code = "import sys, ctypes, time\nfrom tengen.launch import child\n"
    code += f"child._ALONE_S = 0.1\nchild._Child.serve = lambda self: {serve}\n"
    code += "sys.exit(child.main(sys.argv[1:]))\n"
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(run.path), "1", "learn"],
        env={**os.environ, **ticket.environment},
    )
    stream = ticket.wait(900)
    assert stream is not None
    assert isinstance(stream.receive(), Begun)
    return process, stream, process.pid


def test_one_that_hangs_is_ended_when_its_runner_on_another_host_is_gone(
    run: RunDirectory,
) -> None:
    """Over TCP, where the end of the other side alone is no hang-up."""
    with contextlib.closing(Hub.on_network(["127.0.0.1", "::1"])) as hub:
        process, stream, _ = joined(hub, run, HANGS[1])
        # The runner's host sends the end of the connection, and its port stays.
        with socket.socket(fileno=os.dup(stream.fileno())) as same:
            same.shutdown(socket.SHUT_WR)
        assert process.wait(900) == -signal.SIGKILL
        stream.close()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="time is found there")
def test_one_that_only_looks_at_the_clock_is_not_busy(
    hub: Hub, run: RunDirectory
) -> None:
    """It uses some hundredths of a core, as threads that poll do."""
    polls = "[time.sleep(0.001) for _ in iter(int, 1)]"
    process, stream, pid = joined(hub, run, polls)
    stream.close()
    wait_own_s(lambda: process.poll() is not None, lambda: [pid], 20.0)
    assert process.returncode == -signal.SIGKILL


SAVES = """
import threading
from tengen.errors import RunError
child._ALONE_S = 0.1
def save(self):
    raise RunError("disk (full) must have room; free some")
child.RoleHost.save = save
child.RoleHost.close = lambda self: threading.Event().wait()
"""
FULL = Failed("disk (full) must have room; free some", 1)


def test_one_that_cannot_save_says_so_before_its_environment_hangs(
    start: Start,
) -> None:
    made = start(SAVES, "learn")
    made.join()
    made.send(Stop())
    assert [made.receive(), made.receive()] == [FULL, Saved(False)]
    assert made.end(900) == "signal 9"


CLOSES = """
import types
from tengen.errors import RunError
from tengen.roles import host
def close(name):
    if name == "rate":
        raise RunError("disk (full) must have room; free some")
    if name == "actor":
        print("environment", file=sys.stderr, flush=True)
def make(name, *_):
    made = types.SimpleNamespace(turn=lambda: None, close=lambda: close(name))
    made.is_saved, made.save = True, lambda: None
    return made
host.make_role = make
"""


@pytest.mark.parametrize("role", ["rate", "gate"])
def test_what_fails_when_a_role_is_closed_is_told(
    start: Start, run: RunDirectory, role: str
) -> None:
    """And environments are closed behind it."""
    made = start(CLOSES, role, "actor")
    for name in (role, "actor"):
        made.send(Turn(name, {"sealed": 0}))
        while not isinstance(found := made.receive(), Report):
            assert found is not None
    made.send(Stop())
    fails = role == "rate"
    assert received(made) == [*([FULL] if fails else []), Saved(not fails)]
    assert made.end(900) == f"exit code {int(fails)}"
    assert "environment" in (run.logs / f"{role}.log").read_text()


DIES = """
import os, subprocess, types
from tengen.launch import child
subprocess.Popen(["sh", "-c", "sleep 100000; true"])
runner = types.SimpleNamespace(send=lambda message: None)
child._Child._die(types.SimpleNamespace(_to_runner=runner), "it hangs")
"""


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="they are found there")
def test_one_whose_environment_hangs_takes_the_simulator_with_it() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", DIES], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    # The end of the pipe: nobody has it any more.
    assert process.communicate(timeout=900) == (b"", b"it hangs\n")
    assert process.returncode == 1


WRITES = """
import os, sys, threading, time
from tengen import _core
lifeline = _core.Lifeline(0, 0.1)
lifeline.hold()
sys.stdin.read()
time.sleep(1.5)
print("written", flush=True)
lifeline.release()
threading.Event().wait()
"""


def test_a_write_that_is_under_way_is_let_finish_when_the_runner_is_gone() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", WRITES], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.communicate(timeout=900)[0] == b"written\n"
    assert process.returncode == -signal.SIGKILL


@pytest.mark.parametrize("is_asked", [True, False], ids=["stop", "closed"])
def test_one_that_waits_for_the_runs_host_hears_the_stop(
    hub: Hub, tmp_path: Path, is_asked: bool
) -> None:
    """Nobody listens there; the run would let it wait for ten minutes."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    words = ["-P", "-m", "tengen.launch.child", "--at-once", "--identity=far"]
    words += [f"--connect=127.0.0.1:{port}", "--", str(tmp_path / "far"), "1"]
    reading, writing = os.pipe()

    class Launcher:
        def start(self, command, place):  # type: ignore[no-untyped-def]
            environment = {**os.environ, **command.environment}
            process = subprocess.Popen(
                [sys.executable, *command.words], stderr=writing, env=environment
            )
            from tengen.launch.local import _Started

            return _Started(process)

    variables = {TOKEN_VARIABLE: 32 * "0", "TMPDIR": str(tmp_path)}
    words.append("selfplay")
    made = started(hub, words, Launcher(), placed("selfplay"), **variables)
    os.close(writing)
    made.join()
    with os.fdopen(reading, "rb") as errors:
        assert b"waits for the run's host" in errors.readline()
        # An error would end the run that is stopped; a signal is the system's.
        if is_asked:
            made.send(Stop())
            assert received(made) == []
            assert made.end(900) == "exit code 0"
        else:
            assert made.end(900) == "exit code 0"


def test_one_whose_runner_ended_before_it_joined_ends_at_once(
    hub: Hub, run: RunDirectory
) -> None:
    ticket = hub.ticket()
    hub.close()
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tengen.launch.child", str(run.path), "1", "gate"],
        env={**os.environ, **ticket.environment},
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 1
    assert "does not answer" in done.stderr
    assert not list(run.logs.glob("*"))


def test_one_that_nobody_started_says_who_does(run: RunDirectory) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "tengen.launch.child", str(run.path), "1", "gate"],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "start processes of a run with tengen train" in done.stderr


def test_a_connection_that_is_lost_is_the_end_of_the_process(start: Start) -> None:
    """While it lives: as where its host is cut off."""
    made = start("", "gate")
    made.send(Turn("gate", {"sealed": 0}))
    while not isinstance(made.receive(), Report):
        pass
    hears = threading.Thread(target=received, args=(made,))
    hears.start()
    assert made.end(900) == "exit code 0"
    hears.join()
