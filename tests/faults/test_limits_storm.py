"""Full disks and limits of memory, threads and descriptors change no stored byte."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

STORM = Path(__file__).with_name("limits_storm.py")
# Parts of the server's error messages; a client's own errors would prove nothing.
SAID = {
    "memory": "memory (of the process)",
    "threads": "thread (of ",
    "descriptors": "ulimit -n",
    "host": "",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    # tmp_path is too long for a socket's path.
    path = Path(tempfile.mkdtemp(prefix="tengen-storm-"))
    yield path
    shutil.rmtree(path)


def namespace() -> list[str]:
    """Returns a command prefix that gives a command its own mount namespace."""
    if sys.platform != "linux" or shutil.which("unshare") is None:
        pytest.skip("file systems of a process's own need Linux's unshare")
    mount = ["mount", "-t", "tmpfs", "tmpfs", "/mnt"]
    for words in (["unshare", "-m"], ["unshare", "-rm"]):
        if subprocess.run([*words, *mount], capture_output=True).returncode == 0:
            return words
    pytest.skip("this machine lets this user mount no file systems")


def run_storm(folder: Path, words: list[str], *kinds: str) -> dict[str, Any]:
    run = subprocess.Popen(
        [*words, *kinds],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=folder,
        start_new_session=True,
    )
    try:
        out, errors = run.communicate(timeout=1800)
    finally:
        # Also kills the store's process if the clients have failed.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(run.pid, signal.SIGKILL)
    assert run.returncode == 0, out + errors
    told: dict[str, Any] = json.loads(out.splitlines()[-1])
    return told


def storm(folder: Path, num_faults: int, seed: int) -> list[str]:
    return [
        sys.executable,
        str(STORM),
        "storm",
        str(folder),
        f"{num_faults}",
        f"{seed}",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="limits of a process that runs")
@pytest.mark.parametrize("kind", ["memory", "threads", "descriptors", "host"])
def test_a_limit_ends_the_request_that_meets_it_alone(folder: Path, kind: str) -> None:
    # Seed 2 uses no disk, so batches can be large enough to exceed the memory limit.
    seed = 2 if kind == "memory" else 0
    told = run_storm(folder, storm(folder, 2, seed), kind)
    # The thread limit does not apply to root.
    is_met = kind != "host" and (kind != "threads" or told["threads_limited"])
    assert any(SAID[kind] in line for line in told["refused"][kind]) == is_met


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_each_fault_ends_one_request_and_changes_nobody_elses_bytes(
    folder: Path, seed: int
) -> None:
    told = run_storm(folder, [*namespace(), *storm(folder, 6, seed)])
    assert sum(told["faults"].values()) == 6
    # All errors must be caused by the fault.
    of_disk = told["refused"]["disk"]
    assert bool(of_disk) == ("disk" in told["faults"])
    reasons = ("will not outlive its host", "has no space for")
    assert [line for line in of_disk if not any(r in line for r in reasons)] == []
    # Without memory, the store can also fail to start a thread.
    assert any(
        SAID[kind] in line
        for line in told["refused"]["memory"]
        for kind in ("memory", "threads")
    )


@pytest.mark.parametrize(
    ("seed", "num_faults"),
    [
        pytest.param(3, 20, marks=pytest.mark.slow),
        *(pytest.param(seed, 60, marks=pytest.mark.soak) for seed in (3, 4, 5, 6)),
    ],
)
def test_many_faults_lose_nothing(folder: Path, seed: int, num_faults: int) -> None:
    told = run_storm(folder, [*namespace(), *storm(folder, num_faults, seed)])
    assert sum(told["faults"].values()) == num_faults
