"""Games in progress survive a kill of their process, and end with the same moves."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tengen.experience.games.writer import unfinished_games
from tests.integration.runs import (
    SMALL,
    events,
    run_command,
    sealed,
    start_command,
    train_command,
    wait_for,
)

# All games are concurrent and slow, so a kill interrupts all of them. Cheap searches
# reuse the trees of earlier searches, which are missing after a restart.
SLOW = (
    *SMALL,
    "agent.actor.games_per_generation=6",
    "agent.actor.num_slots=6",
    "agent.actor.search.policy=puct",
    "agent.actor.full_simulations=3000",
    "agent.actor.cheap_simulations=1000",
    "agent.actor.full_probability=0.5",
    "agent.actor.policy_surprise_share=0.5",
    "agent.actor.snapshot_s=0.2",
)


def command_of(out: Path) -> list[str]:
    command = train_command(out, 6, settings=SLOW)
    return ["connect4" if word == "tictactoe" else word for word in command]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("reference") / "run"
    done = run_command(command_of(out))
    assert done.returncode == 0, done.stderr
    return out


@pytest.mark.soak
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_games_in_flight_are_gone_on_with(
    tmp_path: Path, reference: Path, number: int
) -> None:
    out = tmp_path / "run"
    writer = out / "experience" / "selfplay-0"
    for num_copies in (1, 2):
        child = start_command(command_of(out))

        def is_kept(num_copies: int = num_copies) -> bool:
            """Returns whether this process, which has its own folder, saved a game."""
            files = list(writer.glob("*/*.unfinished"))
            return len(files) == num_copies and bool(unfinished_games(writer, 1))

        wait_for(is_kept)
        os.killpg(child.pid, number)
        child.communicate(timeout=900)
        assert child.returncode == (130 if number == signal.SIGTERM else -number)
    num_kept = len(unfinished_games(writer, 1))
    assert num_kept > 0
    done = run_command(command_of(out))
    assert done.returncode == 0, done.stderr
    turns = [e for e in events(out, "turn") if e["role"] == "selfplay"]
    last = [turn for turn in turns if turn["generation"] == 1][-1]
    assert last["num_gone_on_with"] >= num_kept - last["num_recovered"]
    assert last["num_gone_on_with"] + last["num_recovered"] > 0
    assert sealed(out)[1] == sealed(reference)[1]
    assert not list(writer.glob("*/*.unfinished"))
