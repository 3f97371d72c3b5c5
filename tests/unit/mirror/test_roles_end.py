"""Processes on mirrors end where their mirror has failed, and where they are to."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tengen.experience import MAX_WRITERS
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import evict_mirrors, read_mirrors, write_actor_totals
from tests.integration.runs import wait_for
from tests.unit.mirror.conftest import TOKEN

LONG_S = 60


@pytest.fixture
def start(host, tmp_path):
    """Starts a Python module on a mirror in a folder."""
    started = []

    def start(*words):
        environment = {**os.environ, "TENGEN_RUN_TOKEN": TOKEN}
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


def connect_to(host):
    return f"127.0.0.1:{host.port - 2}"  # the run's service is the third of its doors


def is_here(host):
    return [one for one in read_mirrors(host.run) if not one.is_away]


def test_self_play_that_is_evicted_ends(host, start, tmp_path):
    """Without a model it never asks for a number."""
    host.run.models.remove(3)
    write_config(host.run, make_config("tictactoe", None, None))
    far = tmp_path / "far"
    process = start("tengen", "selfplay", str(far), "--connect", connect_to(host))
    wait_for(lambda: is_here(host))
    evict_mirrors(host.run, "selfplay", MAX_WRITERS - 1)
    _, err = process.communicate(timeout=LONG_S)
    assert process.returncode == 2
    assert b"has no place in this run any more" in err


def child(start, host, folder):
    words = ["--connect", connect_to(host), str(folder), "1", "actor"]
    return start("tengen.launch.child", *words)


def test_an_actor_that_is_evicted_ends(host, start, tmp_path, mirror_at):
    write_config(host.run, make_config("tictactoe", None, None))
    process = child(start, host, tmp_path / "far")
    wait_for(lambda: is_here(host))
    other = mirror_at(tmp_path / "other", "actor", index=0, is_vouched=True)
    assert process.wait(LONG_S) == 2  # its input is still open
    # It says last that all is saved, if it began to serve before.
    told = [json.loads(line) for line in process.stdout.read().splitlines()]
    errors = [message["error"] for message in told if "error" in message]
    assert len(errors) == 1
    assert "has no place in this run any more" in errors[0]
    write_actor_totals(other.run, 0, (5, 1))


def test_a_mirror_that_fails_stops_its_role(host, mirror_at, tmp_path):
    first = mirror_at(tmp_path / "a", "actor", index=3, is_vouched=True)
    mirror_at(tmp_path / "b", "actor", index=3, is_vouched=True)
    assert first._stop.wait(LONG_S)
    with pytest.raises(type(first._error), match="has no place in this run any more"):
        first.check()


def test_a_child_that_waits_for_its_host_hears_a_stop(host, start, tmp_path):
    host.close()
    process = child(start, host, tmp_path / "far")
    line = process.stderr.readline()
    assert b"waits for the run's host" in line
    process.stdin.write(b'{"stop": true}\n')
    process.stdin.flush()
    # It would wait for ten minutes.
    assert process.wait(LONG_S) == 0
    assert process.stdout.read() == b""
    host.open()
