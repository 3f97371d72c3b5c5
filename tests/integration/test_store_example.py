"""The training loop of examples/store_dqn.py, which uses only the store, and kills."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from tests.integration.runs import wait_for

pytest.importorskip("gymnasium")

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "store_dqn.py"


class Processes:
    """The processes of the example, each with the log of all that it printed."""

    def __init__(self, folder, logs, stack):
        self._logs = logs
        self._stack = stack
        self._environment = {**os.environ, "STORE_DQN": str(folder)}

    def start(self, *words):
        log = self._stack.enter_context((self._logs / "-".join(words)).open("a"))
        process = subprocess.Popen(
            [sys.executable, str(EXAMPLE), *words],
            env=self._environment,
            stdout=log,
            stderr=log,
        )
        self._stack.callback(process.wait)
        self._stack.callback(process.kill)
        return process

    def returns(self, name):
        lines = (self._logs / f"actor-{name}").read_text().splitlines()
        return [float(line.split()[1]) for line in lines if line.startswith("return")]


@pytest.mark.slow
@pytest.mark.learning
def test_it_learns_while_each_of_its_processes_is_killed_and_started_again(tmp_path):
    folder = Path(tempfile.mkdtemp(prefix="tengen-", dir="/dev/shm"))
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder)
        running = Processes(folder, tmp_path, stack)
        store = running.start("store")
        wait_for(lambda: (folder / "store").exists())
        actors = [running.start("actor", name) for name in "01"]
        learner = running.start("learner", "100000000")
        wait_for((folder / "weights.pt").exists)
        for process in (store, actors[0], learner):
            process.send_signal(signal.SIGKILL)
            process.wait()
        weights = (folder / "weights.pt").read_bytes()
        before = [len(running.returns(name)) for name in "01"]
        running.start("store")
        running.start("actor", "0")
        assert running.start("learner", "4000").wait(timeout=1800) == 0
        assert (folder / "weights.pt").read_bytes() != weights
        after = [running.returns(name) for name in "01"]
    assert all(len(found) > num for found, num in zip(after, before, strict=True))
    # Random actions reach 22 on average.
    assert np.mean([found[-30:] for found in after]) > 40
