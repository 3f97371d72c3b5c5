"""Resignation waits for proof, and ends where the proof does."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tengen import _core, games
from tengen.actors import SelfplayConfig
from tengen.experience import ExperienceWriter
from tengen.roles.selfplay.earlier_games import ResignationCheck, check_resignation
from tengen.run import RunDirectory

CONFIG = SelfplayConfig(resign_above=0.9)


def decided_game(index: int, wins_as_foreseen: bool) -> _core.GameRecord:
    """A game of which every search says that its first player wins."""
    rng = random.Random(f"{index} {wins_as_foreseen}")
    while True:
        state, moves = games.make("connect4").new_state(), []
        while not state.is_terminal():
            moves.append(rng.choice(state.legal_actions()))
            state.apply(moves[-1])
        if len(moves) > 8 and (state.returns()[0] == 1.0) == wins_as_foreseen:
            break
    record = _core.GameRecord()
    record.generation, record.game_index, record.model = 0, index, 1
    record.outcome = {1.0: 1, -1.0: 2, 0.0: 3}[state.returns()[0]]
    record.opening = moves[:2]
    plies = []
    for ply, move in enumerate(moves[2:]):
        made = _core.PlyRecord()
        made.action, made.root_value = move, 0.96875 if ply % 2 == 0 else -0.96875
        plies.append(made)
    record.plies = plies
    return record


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory(tmp_path / "run")
    return made


def write(run: RunDirectory, generation: int, num_games: int, num_false: int) -> None:
    path = run.experience / "selfplay-0"
    with ExperienceWriter(path, generation) as writer:
        segment = writer.open_games(generation, "connect4")
        for index in range(num_games):
            record = decided_game(index, index >= num_false)
            record.generation = generation
            segment.sink.put(record)
        segment.close()
        writer.seal(generation)


def check(run: RunDirectory, generation: int) -> ResignationCheck:
    return check_resignation(run, games.make("connect4"), CONFIG, generation)


def test_without_games_nobody_resigns(run: RunDirectory) -> None:
    seen = check(run, 1)
    assert seen == ResignationCheck(num_checked=0, num_false=0)
    assert not seen.allows(1.0)


def test_counts_the_newest_generations_until_it_has_enough(run: RunDirectory) -> None:
    write(run, 1, 50, 50)
    write(run, 2, 70, 2)
    write(run, 3, 60, 1)
    write(run, 4, 40, 40)
    seen = check(run, 4)
    assert seen == ResignationCheck(num_checked=130, num_false=3)
    assert seen.allows(0.05)
    assert not seen.allows(0.02)
    # The generation itself, and later ones, do not count; older ones where they must.
    assert check(run, 3) == ResignationCheck(num_checked=120, num_false=52)
    assert not check(run, 3).allows(0.05)
    assert check(run, 2) == ResignationCheck(num_checked=50, num_false=50)


def test_too_few_games_are_no_proof(run: RunDirectory) -> None:
    write(run, 1, 99, 0)
    assert not check(run, 2).allows(1.0)
    write(run, 2, 1, 0)
    assert check(run, 3).allows(0.0)
