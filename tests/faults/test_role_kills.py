"""Kills of standalone role processes at random instants lose nothing.

A run has two self-play processes and one of each other role. Each game that was durable
before a kill must stay in the run, once and unchanged.
"""

from __future__ import annotations

import random
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen.observe.status import read_status
from tengen.run import RunDirectory
from tests.faults.role_processes import (
    ROLES,
    SHUFFLED_ROLES,
    RoleProcesses,
    check_games,
    check_learner,
    check_leftovers,
    check_models,
    games_in_journals,
    make_run,
)
from tests.integration.runs import run_command, wait_for

REVERSED = ("selfplay", "gate", "selfplay", "export", "learn")


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., RoleProcesses]]:
    """Starts the roles of a run, and kills their processes after the test."""
    started = []

    def make(run: RunDirectory, *roles: str) -> RoleProcesses:
        started.append(RoleProcesses(run, *([roles] if roles else [])))
        return started[-1]

    yield make
    for processes in started:
        processes.close()


def check(processes: RoleProcesses) -> dict[str, int]:
    run = processes.run
    counts = {
        "kills": sum(processes.num_kills),
        "games": check_games(run, processes.durable),
        "durable_at_a_kill": len(processes.durable),
        "segments_learned_from": check_learner(run),
        "models": check_models(run),
    }
    check_leftovers(run, num_writers=processes.roles.count("selfplay"))
    return counts


def grows(run: RunDirectory) -> Callable[[], bool]:
    """Returns a function that tells if the run has a new model since this call."""
    before = run.models.latest() or 0

    def has_grown() -> bool:
        return (run.models.latest() or 0) > before

    return has_grown


@pytest.mark.parametrize(
    "roles",
    [
        pytest.param(REVERSED, marks=pytest.mark.slow),
        pytest.param((*REVERSED, "shuffle"), marks=pytest.mark.soak),
    ],
    ids=["drawn", "shuffled"],
)
def test_roles_start_in_any_order_and_are_killed_ended_and_started_again(
    tmp_path: Path, start: Callable[..., RoleProcesses], roles: tuple[str, ...]
) -> None:
    drawn_by = "shuffle" if "shuffle" in roles else "learn"
    run = make_run(tmp_path / "run", f"store.drawn_by={drawn_by}")
    processes = start(run, *roles)
    wait_for(grows(run))
    status = read_status(run)
    assert sorted(role["role"] for role in status["roles"]) == sorted(roles)
    assert None not in [role["process"] for role in status["roles"]]
    writers = [role["writer"] for role in status["roles"][:2]]
    assert writers == ["selfplay-0", "selfplay-1"]
    # A role with a lock rejects a second process.
    done = run_command([sys.executable, "-m", "tengen", "export", str(run.path)])
    assert done.returncode == 2
    assert done.stderr.startswith(f"tengen: folder ({run.path}) is in use by proc")
    assert done.stderr.count("\n") == 1

    num_kills = dict.fromkeys(roles, 1)
    processes.kill_at_random(random.Random(1), num_kills, most_s=1.0)
    # On a busy machine, no game may have been durable yet, so kills self-play again.
    while not processes.durable:
        wait_for(lambda: any(games_in_journals(run)))
        processes.kill(roles.index("selfplay"))
    wait_for(grows(run))
    processes.kill(roles.index("learn"))  # again, after its recovery
    wait_for(grows(run))
    assert processes.end((signal.SIGINT, signal.SIGTERM) * 3) == [130] * len(roles)
    assert "selfplay: waits, no model is published yet; run" in processes.said(0)
    counts = check(processes)
    assert counts["kills"] > len(roles)
    assert counts["durable_at_a_kill"] > 0

    before = run.models.latest() or 0
    again = start(run, *roles[::-1])
    again.durable |= processes.durable
    wait_for(grows(run))
    assert again.end() == [0] * len(roles)
    assert check(again)["models"] > before


@pytest.mark.soak
@pytest.mark.parametrize("roles", [ROLES, SHUFFLED_ROLES], ids=["drawn", "shuffled"])
def test_a_hundred_kills_of_every_role(
    tmp_path: Path, start: Callable[..., RoleProcesses], roles: tuple[str, ...]
) -> None:
    drawn_by = "shuffle" if "shuffle" in roles else "learn"
    run = make_run(tmp_path / "run", f"store.drawn_by={drawn_by}")
    start_s = time.monotonic()
    processes = start(run, *roles)
    wait_for(grows(run))
    num_kills = dict.fromkeys(processes.roles, 100)
    processes.kill_at_random(random.Random(7), num_kills, most_s=2.5)
    wait_for(grows(run))
    assert processes.end() == [0] * len(roles)
    counts = check(processes)
    print(counts, processes.num_kills, f"{time.monotonic() - start_s:.0f} s")
    assert counts["kills"] == 100 * len(roles)
