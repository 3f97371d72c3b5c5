"""Runs on the ranks of a real ``mpirun``, which are killed."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tengen.observe import read_hosts
from tengen.run import RunDirectory
from tests.faults.role_processes import (
    SETTINGS,
    check_games,
    check_learner,
    check_models,
    games_in_journals,
)
from tests.integration.runs import events, run_command, train_command, wait_for

QUIET = ("agent.rating.time_share=0", "agent.rating.final_games=0")
FAR = 10**8


def needs_mpi() -> None:
    pytest.importorskip("mpi4py", reason="needs the extra mpi")
    if shutil.which("mpirun") is None:
        pytest.skip("mpirun is missing: apt-get install openmpi-bin")


def command(out: Path, num_ranks: int, games: int, *extra: str) -> list[str]:
    made = train_command(
        out, games, "--launch", "mpi", *extra, settings=(*SETTINGS, *QUIET)
    )
    mpirun = ["mpirun", "--oversubscribe", "-n", str(num_ranks)]
    if os.geteuid() == 0:
        mpirun.insert(1, "--allow-run-as-root")
    # Like the command tengen, -P keeps the working directory out of sys.path.
    return [*mpirun, made[0], "-P", *made[1:]]


def processes(out: Path, *, roles: bool) -> dict[int, int]:
    """Returns the MPI ranks of the rank or role processes of a run, by process ID."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().split(b"\0")
            variables = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue  # the process has just ended
        is_role = b"tengen.launch.child" in words
        is_ours = str(out).encode() in words and words[0] != b"mpirun"
        name = b"OMPI_COMM_WORLD_RANK="
        ranks = [word for word in variables if word.startswith(name)]
        if is_ours and is_role == roles and ranks:
            found[int(folder.name)] = int(ranks[0].removeprefix(name))
    return found


@pytest.mark.slow
def test_a_rank_that_is_killed_ends_the_call_and_the_next_goes_on(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    needs_mpi()
    out = tmp_path / "run"
    run = RunDirectory(out)
    child = start(command(out, 3, FAR))
    wait_for(lambda: [*run.experience.glob("selfplay-1/*/*.journal")])
    by_rank = {rank: process for process, rank in processes(out, roles=False).items()}
    assert sorted(by_rank) == [0, 1, 2]
    assert set(processes(out, roles=True).values()) == {0, 1, 2}
    os.kill(by_rank[2], signal.SIGKILL)
    _, errors = child.communicate(timeout=900)
    assert child.returncode not in (0, 2)
    assert "rank 2" in errors  # from mpirun
    durable = {game: content for _, game, content in games_in_journals(run)}
    wait_for(lambda: not processes(out, roles=True))
    hosts = read_hosts(run)
    assert hosts is not None
    assert [one.roles for one in hosts.places if one.place == "rank 2"] == [
        ("selfplay",)
    ]
    (lost,) = hosts.lost
    assert lost.startswith("rank (2 on ")
    assert "selfplay-1) is dead or does not answer; see that host" in lost
    # Resumes with fewer ranks, and then without MPI.
    done = run_command(command(out, 2, 24))
    assert done.returncode == 0, done.stderr
    assert "rank 1 on " in done.stdout
    assert check_games(run, durable) >= len(durable) + 24
    done = run_command(
        train_command(out, 24, "--launch", "inline", settings=(*SETTINGS, *QUIET)),
        timeout_s=900,
    )
    assert done.returncode == 0, done.stderr
    num_games = check_games(run, durable)
    assert num_games % 24 == 0
    assert check_learner(run) == num_games // 24
    check_models(run)


@pytest.mark.soak
def test_a_role_that_is_killed_begins_again_and_a_stop_saves_all(
    tmp_path: Path, start: Callable[[list[str]], subprocess.Popen[str]]
) -> None:
    needs_mpi()
    out = tmp_path / "run"
    run = RunDirectory(out)
    child = start(command(out, 2, FAR))
    wait_for(lambda: [*run.experience.glob("selfplay-0/*/*.npz")])
    roles = processes(out, roles=True)
    (killed,) = [process for process, rank in roles.items() if rank == 1]
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: events(out, "death"))
    (death,) = events(out, "death")
    assert (death["role"], death["how"]) == ("selfplay", "signal 9")
    before = len(events(out, "turn"))
    wait_for(lambda: len(events(out, "turn")) > before + 2)
    run.request_stop()
    _, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (0, "")
    assert events(out, "end")[-1]["reason"] == "stopped"
    assert processes(out, roles=True) == {}
    assert check_learner(run) > 0


@pytest.mark.slow
def test_ranks_that_do_not_fit_are_one_line(tmp_path: Path) -> None:
    needs_mpi()
    out = tmp_path / "run"
    asked = "--set=launch.roles.selfplay.count=5"
    done = run_command(command(out, 3, 24, asked))
    assert done.returncode == 2
    said = [line for line in done.stderr.splitlines() if line.startswith("tengen:")]
    assert len(said) == 1
    assert "use mpirun -n 6, or --set launch.roles.selfplay.count=2" in said[0]
    assert not out.exists()


@pytest.mark.soak
def test_environments_are_trained_by_ranks(tmp_path: Path) -> None:
    needs_mpi()
    pytest.importorskip("gymnasium")
    out = tmp_path / "run"
    words = command(out, 3, 0)
    words = [*words[: words.index("train") + 1], "CartPole-v1", "--launch", "mpi"]
    words += ["--agent", "ppo", "--out", str(out), "--set=inference.backend=torch"]
    done = run_command([*words, "--frames", "8k"])
    assert done.returncode == 0, done.stderr
    turns = [turn for turn in events(out, "turn") if turn["role"] == "actor"]
    assert {turn["actor"] for turn in turns} == {0, 1}
    counts = [path.read_bytes()[:8] for path in out.glob("actors/*")]
    frames = sum(int.from_bytes(count, "little") for count in counts)
    assert frames >= 8000
    assert len(RunDirectory(out).models.numbers()) > 1
