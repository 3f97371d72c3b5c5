"""A role process whose runner is gone."""

from __future__ import annotations

import io
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


def listening(
    monkeypatch: pytest.MonkeyPatch, text: bytes
) -> tuple[child._Commands, list[int]]:
    alarms: list[int] = []
    monkeypatch.setattr(signal, "alarm", alarms.append)
    made = child._Commands()
    reading, writing = os.pipe()
    os.write(writing, text)
    thread = threading.Thread(target=made.listen, args=(io.FileIO(reading),))
    thread.start()
    assert made.stop.wait(20)
    assert alarms == []  # the runner is there: it decides
    os.close(writing)
    thread.join(20)
    return made, alarms


def test_a_stop_ends_the_turn_and_the_closed_input_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = b'{"turn": "learn"}\n{"stop": true}\n'
    made, alarms = listening(monkeypatch, text)
    assert made._turns == [{"turn": "learn"}]
    assert alarms == [child._ALONE_S]


def test_one_that_hangs_is_ended_by_the_system(tmp_path: Path) -> None:
    """Its main thread never looks up, as in an environment that waits for ever."""
    run = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(run, make_config("tictactoe", None, None))
    code = (
        "import sys, time\n"
        "from tengen.launch import child\n"
        "child._ALONE_S = 1\n"
        "child._Child.serve = lambda self: time.sleep(600)\n"
        "child.main(sys.argv[1:])\n"
    )
    words = [sys.executable, "-c", code, str(run.path), "1", "learn"]
    process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGALRM


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
        assert process.wait(30) == 0
        assert process.stdout.read() == b""
    finally:
        process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()
