"""Runs of the real command with several self-play processes."""

import os
import signal

import pytest

from tengen.run import RunDirectory
from tests.faults.role_processes import (
    check_games,
    check_learner,
    games_in_journals,
    games_in_segments,
)
from tests.integration.runs import (
    SMALL,
    events,
    run_command,
    sealed,
    start_command,
    train_command,
    wait_for,
)

TWO = (*SMALL, "launch.roles.selfplay.count=2")
FAR = 10**8


@pytest.mark.slow
def test_games_of_two_are_each_counted_once(tmp_path):
    out = tmp_path / "run"
    done = run_command(train_command(out, 100, "--launch", "local", settings=TWO))
    assert (done.returncode, done.stderr) == (0, "")
    run = RunDirectory(out)
    # Five generations of 24 games contain the 100 games, so a sixth must not start.
    assert sorted(sealed(out)) == [1, 2, 3, 4, 5]
    assert check_games(run, {}) == 120
    assert check_learner(run) == 5
    writers = [p.parent.parent.name for p in out.glob("experience/*/*/[0-9]*.npz")]
    # Depending on the machine, one process may play all of these few games.
    assert set(writers) <= {"selfplay-0", "selfplay-1"}
    turns = [turn for turn in events(out, "turn") if turn["role"] == "selfplay"]
    assert sum(turn["num_games"] for turn in turns) == 120
    assert events(out, "progress")[-1]["num_games"] == 120


@pytest.mark.soak
def test_one_goes_on_with_what_two_began(tmp_path):
    """One self-play role finishes the generations of both processes, without losses."""
    out = tmp_path / "run"
    run = RunDirectory(out)
    endless = (*TWO, "agent.actor.games_per_generation=1000000")
    child = start_command(
        train_command(out, FAR, "--launch", "local", settings=endless)
    )

    def has_games(writer):
        journals = (run.experience / f"selfplay-{writer}").glob("*/*.journal")
        return any(path.stat().st_size > 2048 for path in journals)

    try:
        wait_for(lambda: has_games(0) and has_games(1))
    finally:
        os.kill(child.pid, signal.SIGTERM)
        _, errors = child.communicate(timeout=900)
    assert (child.returncode, errors) == (130, "")
    durable = {game: content for _, game, content in games_in_journals(run)}
    assert {generation for generation, _ in durable} == {1, 2}
    length = max(index for _, index in durable) + 25
    whole = (*SMALL, f"agent.actor.games_per_generation={length}")
    more = train_command(out, length + 1, "--launch", "inline", settings=whole)
    done = run_command(more)
    assert done.returncode == 0, done.stderr
    assert set(sealed(out)) >= {1, 2}
    assert list(run.experience.glob("*/*/*.journal")) == []
    found = {game: content for _, game, content in games_in_segments(run)}
    assert {game: found.get(game) for game in durable} == durable
    for generation in (1, 2):
        indices = sorted(index for number, index in found if number == generation)
        assert indices == list(range(length))
