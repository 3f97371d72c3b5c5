"""Processes on mirrors end where their mirror has failed, and where they are to."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest

from tengen.experience import MAX_WRITERS
from tengen.launch.messages import Failed, Stop
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import evict_mirrors, read_mirrors, write_actor_totals
from tests.integration.runs import wait_for
from tests.unit.launch.children import received, started, the_hub
from tests.unit.remote.conftest import TOKEN
from tests.unit.remote.playing import NO_PLACE, fails

__all__ = ["the_hub"]

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
    assert NO_PLACE in err.decode()


@pytest.fixture
def child(hub, host, tmp_path):
    """A role process of a runner that works on a mirror."""
    words = ["-P", "-m", "tengen.launch.child", "--connect", connect_to(host)]
    words += ["--identity=far", str(tmp_path / "far"), "1", "actor"]
    made = started(hub, words, TENGEN_RUN_TOKEN=TOKEN, TMPDIR=str(tmp_path))
    yield made
    made.kill()


def test_an_actor_that_is_evicted_ends(host, child, tmp_path, mirror_at):
    write_config(host.run, make_config("tictactoe", None, None))
    child.join()
    wait_for(lambda: is_here(host))
    other = mirror_at(tmp_path / "other", "actor", index=0, is_vouched=True)
    (failed,) = [told for told in received(child) if isinstance(told, Failed)]
    assert NO_PLACE in failed.error
    assert child.end(LONG_S) == "exit code 2"
    write_actor_totals(other.run, 0, (5, 1))


def test_a_mirror_that_fails_stops_its_role(host, mirror_at, tmp_path):
    stop = threading.Event()
    first = mirror_at(tmp_path / "a", "actor", index=3, is_vouched=True, stop=stop)
    mirror_at(tmp_path / "b", "actor", index=3, is_vouched=True)
    assert stop.wait(LONG_S)
    fails(first, NO_PLACE)


def test_a_child_that_waits_for_its_host_hears_a_stop(host, child):
    host.close()
    child.join()
    child.send(Stop())
    # It would wait for ten minutes.
    assert received(child) == []
    assert child.end(LONG_S) == "exit code 0"
    host.open()
