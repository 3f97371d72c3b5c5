"""Games of a real run are resigned only after checks, and equally after a resume."""

import json

import numpy as np
import pytest

from tengen.experience import SegmentReader
from tengen.games import make
from tests.integration.runs import SMALL, run_command, sealed, train_command

GAMES_PER_GENERATION = 768
SETTINGS = (
    *SMALL,
    f"agent.actor.games_per_generation={GAMES_PER_GENERATION}",
    # Disables learning: a small trained network may predict one winner everywhere.
    "store.min_rows=1000000",
    "agent.stages=[]",
    "net.num_blocks=2",
    "net.num_channels=8",
    # With an untrained network, PUCT's values of the two sides agree more often than
    # Gumbel's, which assume the moves that each side prefers.
    "agent.actor.search.policy=puct",
    "agent.actor.full_simulations=4",
    "agent.actor.num_slots=32",
    # Resigns whenever five searches agree, even if they are wrong.
    "agent.actor.resign_above=0",
    "agent.actor.resign_max_false_share=1",
    "agent.actor.resign_playout_share=0.2",
)


def play(out, num_generations, *settings):
    """Plays ``num_generations`` more generations of connect4."""
    games = num_generations * GAMES_PER_GENERATION
    command = train_command(out, games, settings=(*SETTINGS, *settings))
    done = run_command(["connect4" if w == "tictactoe" else w for w in command])
    # A call that learns nothing exits with 1.
    assert done.returncode == 1, done.stderr
    assert "this call learned nothing: " in done.stdout


def unfinished(segment):
    """Returns the number of games in a segment that stop before a terminal state."""
    count = 0
    with SegmentReader(segment) as reader:
        columns = reader.game_columns()
    openings = np.split(columns["opening"], np.cumsum(columns["num_opening_plies"]))
    plies = np.split(columns["action"], np.cumsum(columns["num_plies"]))
    for opening, moves in zip(openings[:-1], plies[:-1], strict=True):
        state = make("connect4").new_state()
        for move in (*opening, *moves):
            state.apply(int(move))
        count += not state.is_terminal()
    return count


def reports(out):
    """Returns the reports of the self-play turns, in order."""
    lines = [
        json.loads(line)
        for path in sorted(out.glob("events/*"))
        for line in path.read_text().splitlines()
    ]
    return [line for line in lines if line.get("role") == "selfplay"]


@pytest.mark.soak
def test_games_are_resigned_once_it_is_seen_to_be_safe(tmp_path):
    out = tmp_path / "run"
    play(out, 2)
    counts = {
        int(path.stem): unfinished(path)
        for path in out.glob("experience/*/*/[0-9]*.npz")
    }
    turns = reports(out)
    assert [turn["may_resign"] for turn in turns] == [False, True]
    assert turns[0]["num_resignations_checked"] == 0
    assert turns[1]["num_resignations_checked"] >= 100
    assert counts[1] == 0
    assert counts[2] > 50

    # The second call must check the resignations in the first call's games.
    again = tmp_path / "again"
    play(again, 1)
    play(again, 1)
    assert sealed(again) == sealed(out)


@pytest.mark.slow
def test_nobody_resigns_where_it_was_wrong(tmp_path):
    play(tmp_path, 2, "agent.actor.resign_max_false_share=0.01")
    turns = reports(tmp_path)
    assert turns[1]["num_resignations_false"] > 1
    assert [turn["may_resign"] for turn in turns] == [False, False]
    assert all(unfinished(p) == 0 for p in tmp_path.glob("experience/*/*/[0-9]*.npz"))
