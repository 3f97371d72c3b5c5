"""Standalone roles of an environment run, with the actor on a simulated other host."""

import contextlib
import os
import shutil
import signal
import socket
import sys
from pathlib import Path

import pytest

from tengen.observe import read_events
from tengen.run import RunDirectory
from tengen.transport import fingerprint_of
from tests.integration.runs import run_command, start_command, wait_for

pytest.importorskip("gymnasium")

SETTINGS = (
    "inference.backend=torch",
    "inference.precision=fp32",
    "inference.batch_shape=dynamic",
    "agent.actor.num_envs=4",
)

STEADY = "tests.environments:Steady"
CERTIFICATE = Path(__file__).parents[1] / "unit" / "store" / "tls_certificate.pem"


def role(name, run, *extra):
    words = [sys.executable, "-m", "tengen", name, str(run), "--task", STEADY]
    return [*words, "--threads", "1", *extra]


def free_port():
    """Returns the first of four consecutive free ports."""
    while True:
        with contextlib.ExitStack() as stack, contextlib.suppress(OSError):
            port = 0
            for place in range(4):
                one = stack.enter_context(socket.socket())
                one.bind(("127.0.0.1", port and port + place))
                port = port or int(one.getsockname()[1])
            if port <= 65470:  # leaves ports for 64 servers
                return port


@pytest.fixture
def processes():
    started = {}
    yield started
    for child in started.values():
        if child.poll() is None:
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate()


def num_turns(run, name):
    paths = run.glob(f"events/{name}-command-*.jsonl")
    return sum(e["kind"] == "turn" for path in paths for e in read_events(path))


def served(run):
    """Returns the number of groups of copies in each server's last report."""
    paths = run.glob("events/inference-command-*.jsonl")
    told = [e for path in paths for e in read_events(path) if e["kind"] == "turn"]
    told.sort(key=lambda event: float(event["time_s"]))
    return {event["server"]: event["num_sessions"] for event in told}


@pytest.mark.slow
def test_an_actor_of_another_host(tmp_path, processes, monkeypatch):
    """An actor with run.json, an address and a token survives a kill of the learner."""
    run, far = tmp_path / "run", tmp_path / "far"
    port = free_port()
    words = [sys.executable, "-m", "tengen", "train", STEADY, "--agent", "ppo"]
    words += ["--frames", "0", "--out", str(run)]
    settings = (
        *SETTINGS,
        f"launch.listen=127.0.0.1:{port}",
        f"launch.certificate_file={CERTIFICATE}",
        f"launch.key_file={CERTIFICATE.with_name('tls_key.pem')}",
        "launch.roles.inference.count=2",
    )
    done = run_command([*words, *(f"--set={setting}" for setting in settings)])
    assert done.returncode == 0, done.stderr
    for name in ("learn", "export", "gate", "inference"):
        processes[name] = start_command(role(name, run))
    processes["second"] = start_command(role("inference", run, "--index", "1"))
    far.mkdir()
    shutil.copy(run / "run.json", far)
    fingerprint = fingerprint_of(CERTIFICATE)
    connect = ("--connect", f"127.0.0.1:{port}", "--fingerprint", fingerprint)
    # The run rejects an actor without the token, and with a wrong token.
    done = run_command(role("actor", far, *connect))
    assert done.returncode == 2
    assert "token (TENGEN_RUN_TOKEN, not set) must be set" in done.stderr
    wait_for(lambda: (run / "endpoints" / "store.json").exists())
    for name in ("inference", "inference-1"):
        wait_for(lambda n=name: (run / "endpoints" / f"{n}.json").exists())
    monkeypatch.setenv("TENGEN_RUN_TOKEN", 32 * "0")
    done = run_command(role("actor", far, *connect))
    assert done.returncode == 2
    assert "token (not shown) must be that of the run" in done.stderr
    secret = run / "endpoints" / "token"
    assert secret.stat().st_mode & 0o077 == 0
    monkeypatch.setenv("TENGEN_RUN_TOKEN", secret.read_text())
    processes["actor"] = start_command(role("actor", far, *connect))
    wait_for(lambda: num_turns(run, "learn") >= 3)
    # Each server gets one of the actor's two groups of copies.
    wait_for(lambda: served(run) == {0: 1, 1: 1})

    # The learner, which has the table, is killed: the actor connects to its successor.
    os.killpg(processes["learn"].pid, signal.SIGKILL)
    processes.pop("learn").communicate()
    learned, acted = num_turns(run, "learn"), num_turns(far, "actor")
    processes["learn"] = start_command(role("learn", run))
    wait_for(lambda: num_turns(run, "learn") > learned + 2)
    wait_for(lambda: num_turns(far, "actor") > acted)

    os.killpg(processes["actor"].pid, signal.SIGINT)
    _, errors = processes["actor"].communicate(timeout=900)
    assert processes["actor"].returncode == 130, errors
    done = run_command([sys.executable, "-m", "tengen", "stop", str(run)])
    assert done.returncode == 0
    for child in processes.values():
        if child is not processes["actor"]:
            _, errors = child.communicate(timeout=900)
            assert child.returncode == 0, errors
    assert (RunDirectory(run).models.latest() or 0) >= 1
    words = [sys.executable, "-m", "tengen", "eval", str(run), "--task", STEADY]
    done = run_command([*words, "--episodes", "3"])
    assert done.returncode == 0, done.stderr
