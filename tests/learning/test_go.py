"""Go from nothing: a short run beats what it began as, and foretells scores and owners.

The games that it foretells are between trained agents and were never learned from.
Seen to fail: with the value target's sign flipped, with the score's, with owners turned
over, and without the policy's loss (0.43 against the playouts).
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import tengen
from tengen import _core
from tengen.evaluation import open_player, play_match
from tests.integration.runs import run_command

GAME = "go/5"
SETTINGS = (
    "net.num_channels=16",
    "agent.actor.games_per_generation=64",
    "agent.actor.full_simulations=16",
    "store.min_rows=500",
    "store.limiter.samples_per_row=8",
    "agent.rating.time_share=0",
    "agent.rating.final_games=0",
    # Else a trial of speed chooses it, and what else the machine does decides which
    # games are learned from. Neither precision learns better, but so short a run misses
    # the bound on owners with 5 of 12 seeds (1 to 6, fp32 and bf16), and with seed 0 in
    # bf16: with seed 0 in fp32, as here, its errors are 0.64 of the first model's. So
    # this run is a check of one course of learning, and no measure of how sure it is.
    "inference.precision=fp32",
)


def forecast_errors(run: str, games: list[list[int]]) -> tuple[float, float]:
    """Returns root mean square errors of scores and of owners, half a game ahead."""
    score_errors, owner_errors = [], []
    with tengen.load(run) as player:
        for moves in games:
            end = _core.GoPosition(GAME, moves)
            seen = moves[: len(moves) // 2]
            forecast = player.forecast(seen)
            assert forecast is not None
            sign = 1 if len(seen) % 2 == 0 else -1
            score_errors.append(forecast.score_to_play - sign * end.score())
            owner_errors.append(forecast.ownership_to_play - sign * end.area())
    scores, owners = np.array(score_errors), np.array(owner_errors)
    return float(np.sqrt((scores**2).mean())), float(np.sqrt((owners**2).mean()))


@pytest.mark.soak
@pytest.mark.learning
def test_beats_its_first_self_and_foretells(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [sys.executable, "-m", "tengen", "train", GAME, "--out", str(out)]
    command += ["--games", "512", "--threads", "1"]
    for setting in SETTINGS:
        command += ["--set", setting]
    done = run_command(command)
    assert done.returncode == 0, done.stderr

    game = tengen.games.make(GAME)
    trained, first = open_player(str(out)), open_player(f"{out}@0")
    match = play_match(game, trained, first, num_games=40, num_simulations=16)
    own = play_match(game, trained, trained, num_games=40, num_simulations=16)
    assert match.tally.score > 0.9
    playouts = open_player("mcts:30")
    bare = play_match(game, trained, playouts, num_games=40, num_simulations=1)
    assert bare.tally.score > 0.75
    games = [list(one.moves) for one in own.games]
    score_error, owner_error = forecast_errors(str(out), games)
    first_score_error, first_owner_error = forecast_errors(f"{out}@0", games)
    assert score_error < 0.75 * first_score_error
    assert owner_error < 0.8 * first_owner_error
