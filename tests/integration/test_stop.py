"""A signal or the STOP file ends any work of a run and saves everything.

The matches in these tests would take days, so only a stop can end them.
"""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tengen.run import RunDirectory
from tests.integration.runs import (
    SMALL,
    events,
    run_command,
    sealed,
    start_command,
    train_command,
    wait_for,
)

ENDLESS = 1_000_000


def end(child, number):
    """Sends a signal to the process group; returns the exit code."""
    os.killpg(child.pid, number)
    _, errors = child.communicate(timeout=900)
    assert "Traceback" not in errors
    return child.returncode


def role_command(name, out, *extra):
    return [sys.executable, "-m", "tengen", name, str(out), "--json", *extra]


@pytest.mark.parametrize(
    "number", [pytest.param(signal.SIGINT, marks=pytest.mark.soak), signal.SIGTERM]
)
def test_a_signal_in_the_closing_match(tmp_path, number):
    out = tmp_path / "run"
    settings = (*SMALL, f"agent.rating.final_games={ENDLESS}")
    child = start_command(train_command(out, 24, settings=settings))
    wait_for(lambda: events(out, "end"))
    assert end(child, number) == 130
    assert not list(out.glob("eval/*")) + list(out.glob("games/*"))
    # The same command resumes the run and publishes its final match.
    done = run_command([*train_command(out, 24), "--set", "agent.rating.final_games=4"])
    assert done.returncode == 0, done.stderr
    record = json.loads((out / "eval" / "final-1.json").read_text())
    assert record["b"] == "bundled:tictactoe"
    assert record["wins_a"] + record["draws"] + record["wins_b"] == 4
    lines = (out / "games" / "final-1.jsonl").read_text().splitlines()
    scores = [json.loads(line)["score_a"] for line in lines]
    assert sum(scores) == record["wins_a"] + record["draws"] / 2
    assert len(sealed(out)) == 2


def test_a_signal_in_the_gate_leaves_the_candidate(tmp_path):
    out = tmp_path / "run"
    gate = ("agent.gate.kind=match", f"agent.gate.num_games={ENDLESS}")
    child = start_command(train_command(out, 48, settings=(*SMALL, *gate)))
    run = RunDirectory(out)
    wait_for(lambda: run.models.numbers() == [0] and run.candidates.numbers() == [1])
    assert end(child, signal.SIGINT) == 130
    assert (run.models.numbers(), run.candidates.numbers()) == ([0], [1])
    # The resumed gate repeats the match and decides.
    done = run_command([*train_command(out, 1), "--set", "agent.gate.num_games=2"])
    assert done.returncode == 0, done.stderr
    assert 1 in run.models.numbers() + run.rejected.numbers()


def test_a_signal_in_a_rating_publishes_nothing(tmp_path):
    out = tmp_path / "run"
    rating = ("time_share=0.9", f"num_games={ENDLESS}", f"round_games={ENDLESS}")
    settings = (*SMALL, *(f"agent.rating.{setting}" for setting in rating))
    child = start_command(train_command(out, 24 * 1000, settings=settings))
    wait_for(lambda: RunDirectory(out).lock_holder("rate"))
    assert end(child, signal.SIGTERM) == 130
    assert not list(out.glob("eval/*"))


def test_stop_ends_a_single_role_and_no_other_begins(tmp_path):
    out = tmp_path / "run"
    done = run_command(train_command(out, 24))
    assert done.returncode == 0, done.stderr
    run = RunDirectory(out)
    content = run.read_run()
    content["config"]["agent"]["actor"]["games_per_generation"] = ENDLESS
    run.write_run(content)
    child = start_command(role_command("selfplay", out, "--threads", "1"))
    journals = out / "experience" / "selfplay-0"
    wait_for(lambda: any(p.stat().st_size > 4096 for p in journals.glob("*/*.journal")))
    assert run_command([*role_command("stop", out)]).returncode == 0
    output, errors = child.communicate(timeout=900)
    assert child.returncode == 0, errors
    report = json.loads(output.splitlines()[-1])
    assert report["last"]["stopped"]
    assert 0 < report["last"]["num_games"] < ENDLESS
    for more in ((), ("--once",)):
        done = run_command(role_command("selfplay", out, *more))
        assert done.returncode == 1
        assert done.stderr == (
            f"tengen: run ({out}) has a stop request; remove {out / 'STOP'} first\n"
        )


def test_a_second_interrupt_ends_a_run_that_hangs(tmp_path):
    """The environment hangs in a step, so the role can neither stop nor save."""
    environments = Path(__file__).parents[1] / "environments.py"
    (tmp_path / "my_envs.py").write_text(environments.read_text())
    out = tmp_path / "run"
    command = [sys.executable, "-P", "-m", "tengen", "train", "my_envs:Hanging"]
    command += ["--agent", "ppo", "--out", str(out), "--frames", "2k"]
    command += ["--set", "agent.actor.step_timeout_s=86400"]
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        wait_for((out / "run.json").exists)
        run = RunDirectory.open(out)
        wait_for(lambda: run.lock_holder("learn") and run.models.latest() is not None)
        while child.poll() is None:
            child.send_signal(signal.SIGINT)
            time.sleep(0.5)
        assert child.returncode == 130
        # The role's process notices that its runner is gone.
        wait_for(lambda: run.lock_holder("learn") is None)
    finally:
        child.kill()
        child.communicate()


# Sends SIGINT, and a second SIGINT after the roles have been notified of the first.
LIBRARY = """
import os, signal, sys, threading, time
from pathlib import Path
import tengen
from tengen.roles import StopListener

class Told(StopListener):
    def tell(self, on_stop):
        super().tell(on_stop)
        threading.Thread(target=self.interrupt, daemon=True).start()

    def interrupt(self):
        out = Path(sys.argv[1])
        while not list(out.glob("models/0*")):
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
        while not self._was_told:
            time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)

from tengen.recipes import run
run.StopListener = Told
try:
    tengen.train(
        "my_envs:Hanging", agent="ppo", out=sys.argv[1], frames=2000,
        settings=["agent.actor.step_timeout_s=86400"],
    )
except KeyboardInterrupt:
    print("interrupted", file=sys.stderr)
finally:
    print("cleaned up", file=sys.stderr)
"""


def test_a_second_interrupt_is_raised_in_a_program_that_trains(tmp_path):
    """The program continues, and the process of the hanging role has ended."""
    environments = Path(__file__).parents[1] / "environments.py"
    (tmp_path / "my_envs.py").write_text(environments.read_text())
    out = tmp_path / "run"
    command = [sys.executable, "-c", LIBRARY, str(out)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=900
    )
    assert done.stderr == "interrupted\ncleaned up\n"
    assert done.returncode == 0
    assert RunDirectory.open(out).lock_holder("learn") is None
