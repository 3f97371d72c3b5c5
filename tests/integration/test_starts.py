"""A starting run reports each step before the step begins."""

import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.own_time import wait_own_s
from tests.integration.runs import SMALL, run_command, train_command

pytest.importorskip("gymnasium")

ENVIRONMENTS = Path(__file__).parents[1] / "environments.py"


def phases(output):
    told = [
        line.removeprefix("starting: ")
        for line in output.splitlines()
        if line.startswith("starting: ")
    ]
    return told[told[0] == "checking the config" :]  # printed only on slow machines


BEFORE_IMPORTS = """
import sys, threading
from tengen import cli
from tengen.observe import view
from tengen.recipes import run
said = threading.Event()
starting = view.View.starting
def tell(self, what):
    starting(self, f"{what}; imported: {[*{'torch', 'openvino'} & {*sys.modules}]}")
    said.set()
view.View.starting = tell
run._PATIENCE_S = 0.0
run.check_writable = lambda path: said.wait(900)
sys.exit(cli.main(["train", "connect4", "--set", "foo=1"]))
"""


def test_a_game_is_said_to_start_before_torch_or_openvino_is_imported(tmp_path):
    done = subprocess.run(
        [sys.executable, "-P", "-c", BEFORE_IMPORTS],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert done.stdout == "starting: checking the config; imported: []\n"
    assert "foo" in done.stderr
    assert done.returncode == 2


def test_a_pipe_is_told_what_the_start_does(tmp_path):
    settings = tuple(one for one in SMALL if "precision" not in one)
    command = train_command(tmp_path / "run", 24, settings=settings)
    done = run_command(command)
    assert done.returncode == 0, done.stderr
    assert phases(done.stdout) == [
        "process learn",
        "making the network",
        "exporting the network",
        "measuring the machine",
        "process selfplay",
        "compiling the network",
    ]
    again = phases(run_command(command).stdout)
    assert again[:2] == ["process learn", "restoring checkpoint 000001"]
    assert "measuring the machine" not in again  # the result is stored


@pytest.mark.parametrize(
    "is_terminal",
    [pytest.param(False, marks=pytest.mark.soak), True],
    ids=["pipe", "terminal"],
)
def test_each_step_of_the_start_is_told_before_it_is_made(tmp_path, is_terminal):
    """The environment's constructor blocks until the test has read its message."""
    (tmp_path / "my_envs.py").write_text(ENVIRONMENTS.read_text())
    command = [sys.executable, "-P", "-m", "tengen", "train", "my_envs:Waiting"]
    command += ["--agent", "ppo", "--out", "run", "--frames", "2k"]
    command += ["--set", "agent.actor.num_envs=1"]
    ours, theirs = pty.openpty() if is_terminal else os.pipe()
    child = subprocess.Popen(
        command,
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "200"},
    )
    os.close(theirs)
    # The runner and the role's process create one instance each for the spaces; then
    # the process creates the instance that it steps.
    if Path("/proc/self/task").exists():
        came = select.poll()
        came.register(ours, select.POLLIN)
        wait_own_s(lambda: came.poll(0), lambda: [child.pid], 15.0)
    read_until(ours, "making the environment")
    (tmp_path / "go-0").touch()
    # A terminal shows the newest step twice a second, so it may miss short steps.
    read_until(ours, "stage" if is_terminal else "process learn")
    read_until(ours, "making the environment")
    (tmp_path / "go-1").touch()
    (tmp_path / "go-2").touch()
    assert read_until(ours, "measure its return")
    assert child.wait(300) == 0
    os.close(ours)


def read_until(descriptor, text):
    """Reads until the output contains ``text``; returns the output."""
    found = ""
    while not found.endswith(text):
        ready, _, _ = select.select([descriptor], [], [], 300)
        assert ready, f"nothing came after {found}"
        # Reads single bytes, so that nothing after the text is lost.
        found += os.read(descriptor, 1).decode(errors="replace")
    return found
