"""Environments that, like simulators, fork processes that outlive the role."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.transport import Client, Dialect, NetDoor, Server, Service
from tests.integration.runs import events, process_of, turns, wait_for

pytest.importorskip("gymnasium")
pytestmark = pytest.mark.skipif(
    not Path("/proc/self").exists(), reason="processes are found there"
)

FORKS = """
import ctypes, os, signal, time
from pathlib import Path

from gymnasium.envs.classic_control import CartPoleEnv


class Forks(CartPoleEnv):
    def __init__(self):
        super().__init__()
        self.num_steps = 0
        self.is_killed = Path(__file__).with_name("killed")
        children = []
        for fork in (os.fork, ctypes.PyDLL(None).fork):
            child = fork()
            if child == 0:
                os.setsid()
                while True:
                    signal.pause()
            children.append(child)
        with Path(__file__).with_name("children").open("a") as file:
            file.writelines(f"{child}\\n" for child in children)

    def step(self, action):
        # The run cannot end before its role was killed.
        while not self.is_killed.exists() and self.num_steps >= 400:
            time.sleep(0.01)
        self.num_steps += 1
        return super().step(action)
"""


def test_a_role_begins_again_beside_what_its_environment_forked(tmp_path: Path) -> None:
    (tmp_path / "forks.py").write_text(FORKS)
    out = tmp_path / "run"
    words = ["train", "forks:Forks", "--agent", "ppo", "--frames", "3000"]
    printed = tmp_path / "printed"
    with printed.open("w") as file:
        run = subprocess.Popen(
            [sys.executable, "-m", "tengen", *words, "--threads=1", f"--out={out}"],
            cwd=tmp_path,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
    children: set[int] = set()
    try:
        wait_for(lambda: len(turns(out, "learn")) >= 2)
        role = process_of(out, "learn")
        assert role is not None
        os.kill(role, signal.SIGKILL)
        (tmp_path / "killed").touch()
        run.wait(900)
        children = {int(line) for line in (tmp_path / "children").read_text().split()}
        assert run.returncode == 0, printed.read_text()
        assert [death["how"] for death in events(out, "death")] == ["signal 9"]
        # The forked processes must still exist.
        for child in children:
            os.kill(child, 0)
    finally:
        for child in children:
            os.kill(child, signal.SIGKILL)
        if run.poll() is None:
            os.killpg(run.pid, signal.SIGKILL)
            run.wait()


def test_a_port_does_not_live_on_in_what_its_server_forked() -> None:
    dialect = Dialect("echo", 1)
    service = Service(
        dialect=dialect,
        questions={"say": lambda message: message["text"]},
        sessions={},
        num_sessions=lambda: 0,
        is_closing=lambda: False,
    )
    server = Server(NetDoor(listen="127.0.0.1:0").open(dialect), service)
    connection, _ = Client(dialect, server.address).open({"ask": "say", "text": "a"})
    child = os.fork()
    if child == 0:
        signal.pause()
        os._exit(0)
    try:
        address = server.address
        server.close()
        connection.close()
        port = int(address.rpartition(":")[2])
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port), timeout=10)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
