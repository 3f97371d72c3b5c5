"""A role process whose runner is gone."""

from __future__ import annotations

import io
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tengen.launch import child
from tengen.recipes import make_config
from tengen.roles import TOKEN_VARIABLE, write_config
from tengen.run import RunDirectory
from tests.integration.own_time import wait_own_s


def listening(text: bytes) -> tuple[child._Commands, list[bool]]:
    """Commands, and whether ``stop`` was set when each stop was told."""
    told: list[bool] = []
    made = child._Commands()
    made.on_stop = lambda: told.append(made.stop.is_set())
    reading, writing = os.pipe()
    os.write(writing, text)
    thread = threading.Thread(target=made.listen, args=(io.FileIO(reading),))
    thread.start()
    assert made.stop.wait(900)
    os.close(writing)
    thread.join(900)
    return made, told


def test_a_stop_ends_the_turn_and_the_closed_input_the_process() -> None:
    made, told = listening(b'{"turn": "learn"}\n{"stop": true}\n')
    assert made._turns == [{"turn": "learn"}]
    assert told == [True, True]


# Each is a main thread that never looks up; the second keeps the interpreter's lock.
HANGS = ["threading.Event().wait()", "ctypes.PyDLL(None).pause()"]


@pytest.mark.parametrize("hangs", HANGS)
def test_one_that_hangs_is_ended_when_its_runner_is_gone(
    tmp_path: Path, hangs: str
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    code = (
        "import ctypes, sys, threading\n"
        "from tengen.launch import child\n"
        "child._ALONE_S = 0.1\n"
        f"child._Child.serve = lambda self: {hangs}\n"
        "child.main(sys.argv[1:])\n"
    )
    words = [sys.executable, "-c", code, str(run.path), "1", "learn"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.communicate(timeout=900)
    assert process.returncode == -signal.SIGKILL


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="time is found there")
def test_one_that_only_looks_at_the_clock_is_not_busy(tmp_path: Path) -> None:
    """It uses some hundredths of a core, as threads that poll do."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    code = (
        "import sys, time\n"
        "from tengen.launch import child\n"
        "child._ALONE_S = 2.0\n"
        "def serve(self):\n"
        "    while True: time.sleep(0.001)\n"
        "child._Child.serve = serve\n"
        "child.main(sys.argv[1:])\n"
    )
    words = [sys.executable, "-c", code, str(run.path), "1", "learn"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    wait_own_s(lambda: process.poll() is not None, lambda: [process.pid], 20.0)
    assert process.returncode == -signal.SIGKILL


SAVES = """
import sys, threading
from tengen.errors import RunError
from tengen.launch import child
child._ALONE_S = 0.1
def save(self):
    raise RunError("disk (full) must have room; free some")
child.RoleHost.save = save
child.RoleHost.close = lambda self: threading.Event().wait()
child.main(sys.argv[1:])
"""


def test_one_that_cannot_save_says_so_before_its_environment_hangs(
    tmp_path: Path,
) -> None:
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    words = [sys.executable, "-c", SAVES, str(run.path), "1", "learn"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b'{"stop": true}\n')
    process.stdin.flush()
    told = [json.loads(process.stdout.readline()) for _ in range(2)]
    error = "disk (full) must have room; free some"
    assert told == [{"error": error, "exit_code": 1}, {"saved": False}]
    process.communicate(timeout=900)
    assert process.returncode == -signal.SIGKILL


CLOSES = """
import sys, threading, types
from tengen.errors import RunError
from tengen.launch import child
from tengen.roles import host
def close(name):
    if name == "rate":
        raise RunError("disk (full) must have room; free some")
    if name == "actor":
        print("environment", file=sys.stderr, flush=True)
def make(name, *_):
    return types.SimpleNamespace(turn=lambda: None, close=lambda: close(name))
host.make_role = make
sys.exit(child.main(sys.argv[1:]))
"""


@pytest.mark.parametrize("role", ["rate", "gate"])
def test_what_fails_when_a_role_is_closed_is_told(tmp_path: Path, role: str) -> None:
    """And environments are closed behind it."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    words = [sys.executable, "-c", CLOSES, str(run.path), "1", role, "actor"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    turns = [{"turn": name, "sealed": 0} for name in (role, "actor")]
    lines = [json.dumps(line) for line in (*turns, {"stop": True})]
    assert process.stdin is not None
    assert process.stdout is not None
    for line in lines:
        process.stdin.write(f"{line}\n".encode())
        process.stdin.flush()
        if "turn" in line:
            assert "report" in json.loads(process.stdout.readline())
    rest, _ = process.communicate(timeout=900)
    told = [json.loads(line) for line in rest.splitlines()]
    error = {"error": "disk (full) must have room; free some", "exit_code": 1}
    fails = role == "rate"
    assert told == [*([error] if fails else []), {"saved": not fails}]
    assert process.returncode == int(fails)
    assert "environment" in (run.logs / f"{role}.log").read_text()


DIES = """
import os, subprocess, types
from tengen.launch import child
subprocess.Popen(["sh", "-c", "sleep 100000; true"])
with open(os.devnull, "wb") as runner:
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_asked: bool
) -> None:
    """Nobody listens there; the run would let it wait for ten minutes."""
    monkeypatch.setenv(TOKEN_VARIABLE, 32 * "0")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    words = [sys.executable, "-P", "-m", "tengen.launch.child", "--at-once"]
    words += [f"--connect=127.0.0.1:{port}", "--", str(tmp_path / "far"), "1"]
    process = subprocess.Popen(
        [*words, "selfplay"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdin is not None
    assert process.stderr is not None
    assert process.stdout is not None
    try:
        assert b"waits for the run's host" in process.stderr.readline()
        if is_asked:
            process.stdin.write(b'{"stop": true}\n')
            process.stdin.flush()
        else:
            process.stdin.close()
        # An error would end the run that is stopped; a signal is the system's.
        assert process.wait(900) == 0
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
