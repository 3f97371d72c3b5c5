"""A role process whose runner is gone."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tengen.launch import child
from tengen.recipes import make_config
from tengen.roles import write_config
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
