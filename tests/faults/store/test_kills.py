"""A killed self-play process loses no game that it reported as durable."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import play_games
import pytest

from tengen import _core
from tengen.experience.games.segment import recorded_games

SCRIPT = Path(play_games.__file__)
JOURNAL_POINTS = [
    "header_written",
    "header_synced",
    "renamed",
    "group_gathered",
    "group_half_written",
    "group_written",
    "group_synced",
]
SEAL_POINTS = [
    "seal.gathered",
    "publish.created",
    "publish.half_written",
    "publish.written",
    "publish.synced",
    "publish.renamed",
    "publish.done",
    "seal.published",
    "seal.journal_removed",
]


def fork_and_play(
    directory: Path,
    incarnation: int,
    fault: tuple[str, int] | None,
    delay_s: float | None,
) -> tuple[list[str], int]:
    """Plays in a forked process; returns its complete output lines and its exit code.

    Args:
        directory: The writer's folder.
        incarnation: The writer's incarnation.
        fault: A fault point of the core that kills the process, and the number of
            passes through the point before the kill.
        delay_s: The number of seconds until the process is killed.
    """
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(read_end)
            if fault is not None:
                _core.set_fault(fault[0], _core.FaultAction.KILL, fault[1])
            play_games.play(
                directory, incarnation, lambda line: os.write(write_end, line.encode())
            )
            os._exit(0)
        finally:
            os._exit(1)
    os.close(write_end)
    if delay_s is not None:
        time.sleep(delay_s)
        os.kill(pid, signal.SIGKILL)
    with open(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(pid, 0)
    return text.split("\n")[:-1], os.waitstatus_to_exitcode(status)


def check_reported(directory: Path, lines: list[str]) -> None:
    reported: dict[int, set[int]] = {}
    for line in lines:
        if line != "done":
            generation, index = map(int, line.split())
            reported.setdefault(generation, set()).add(index)
    for generation, games in reported.items():
        assert games <= set(recorded_games(directory, generation).indices)


def finish_and_check(directory: Path, expected: dict[int, bytes]) -> None:
    """Runs to completion and compares the segments with an uninterrupted run's."""
    lines, code = fork_and_play(directory, 1000, None, None)
    assert (code, lines[-1]) == (0, "done")
    check_reported(directory, lines)
    assert not list(directory.glob("*/*.journal"))
    assert not list(directory.glob("*/*.tmp"))
    assert not list(directory.glob("*/.tmp-*"))
    for generation, content in expected.items():
        (sealed,) = directory.glob(f"*/{generation:06d}.npz")
        assert sealed.read_bytes() == content


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> dict[int, bytes]:
    directory = tmp_path_factory.mktemp("uninterrupted") / "w"
    lines, code = fork_and_play(directory, 0, None, None)
    assert (code, lines[-1]) == (0, "done")
    found = {}
    for generation in range(play_games.NUM_GENERATIONS):
        path = directory / "0" / f"{generation:06d}.npz"
        found[generation] = path.read_bytes()
        with np.load(path) as columns:
            assert columns["game_index"].tolist() == list(range(play_games.NUM_GAMES))
            assert json.loads(columns["meta.json"])["num_games"] == play_games.NUM_GAMES
    return found


def test_killed_at_random_instants(
    tmp_path: Path, uninterrupted: dict[int, bytes]
) -> None:
    rng = random.Random(1)
    num_killed = 0
    for run in range(6):
        directory = tmp_path / str(run)
        lines: list[str] = []
        for incarnation in range(5):
            delay_s = rng.uniform(0, 0.03)
            more, code = fork_and_play(directory, incarnation, None, delay_s)
            lines += more
            assert code in (0, -signal.SIGKILL)
            num_killed += code != 0
            check_reported(directory, lines)
        finish_and_check(directory, uninterrupted)
    assert num_killed >= 5  # the other processes ended before the signal


@pytest.mark.parametrize("num_passes", [0, 3])
@pytest.mark.parametrize("point", JOURNAL_POINTS)
def test_killed_at_a_step_of_the_journal(
    tmp_path: Path, uninterrupted: dict[int, bytes], point: str, num_passes: int
) -> None:
    lines, code = fork_and_play(
        tmp_path / "w", 0, (f"journal.{point}", num_passes), None
    )
    assert code == -signal.SIGKILL
    check_reported(tmp_path / "w", lines)
    finish_and_check(tmp_path / "w", uninterrupted)


@pytest.mark.parametrize("point", SEAL_POINTS)
def test_killed_at_a_step_of_sealing(
    tmp_path: Path, uninterrupted: dict[int, bytes], point: str
) -> None:
    """A generation has two journals, so a kill can occur between their removals."""
    directory = tmp_path / "w"
    fork_and_play(directory, 0, ("journal.group_synced", 1), None)
    environment = {
        **os.environ,
        "TENGEN_FAULT": f"{point}:1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    ended = subprocess.run(
        [sys.executable, str(SCRIPT), str(directory), "1"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    check_reported(directory, ended.stdout.split("\n")[:-1])
    finish_and_check(directory, uninterrupted)
