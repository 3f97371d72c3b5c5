"""Rows derived by the core, against a slow replay with the Python games."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from store_games import Columns, num_rows, random_game, segment_columns

import tengen.games
from tengen import _core
from tests.refusals import refused


def turned_actions(game: Any, variant: str, symmetry: int) -> dict[int, int]:
    """What each action of a board in the upper left corner becomes."""
    board = tengen.games.make(variant) if variant else game

    def in_planes(action: int) -> int:
        if board.num_actions == game.num_actions or action == board.num_actions - 1:
            return action + game.num_actions - board.num_actions
        return action // board.width * game.width + action % board.width

    return {
        in_planes(action): in_planes(board.transform_action(action, symmetry))
        for action in range(board.num_actions)
    }


def slow_row(name: str, record: _core.GameRecord, ply: int, symmetry: int) -> Columns:
    game = tengen.games.make(name)
    state = game.new_state(record.variant)
    for action in record.opening:
        state.apply(action)
    for earlier in record.plies[:ply]:
        state.apply(earlier.action)
    this = record.plies[ply]
    turn = turned_actions(game, record.variant, symmetry)
    legal = np.zeros(game.num_actions, np.uint8)
    for action in state.legal_actions():
        legal[turn[action]] = 1
    policy = np.zeros(game.num_actions, np.float32)
    if this.policy:
        total = sum(mass for _, mass in this.policy)
        for action, mass in this.policy:
            policy[turn[action]] = np.float32(mass) / np.float32(total)
    else:
        policy[legal == 1] = np.float32(1) / np.float32(legal.sum())
    winner = {1: 0, 2: 1, 3: None}[record.outcome]
    outcome = [winner == state.to_play, winner is None, winner == 1 - state.to_play]
    return {
        "planes": state.observation(symmetry),
        "legal": legal,
        "policy": policy,
        "policy_weight": np.float32(this.policy_weight),
        "outcome": np.array(outcome, np.float32),
        "search_value": np.float32(this.root_value),
        "value_weight": np.float32(this.value_weight),
    }


@pytest.mark.parametrize(
    ("name", "variants"),
    [
        ("tictactoe", [""]),
        ("connect4", [""]),
        ("gomoku/9", [""]),
        ("go/6", ["", "go/4/simple/komi=-2.5", "go/6/komi=0.5", "go/5"]),
    ],
)
def test_every_row_equals_the_slow_replay(name: str, variants: list[str]) -> None:
    game = tengen.games.make(name)
    rows = _core.GameRows(name)
    expected = []
    for generation in range(2):
        records = [
            random_game(
                name, index, generation, variant=variants[index % len(variants)]
            )
            for index in range(4)
        ]
        assert rows.add_segment(**segment_columns(records)) == sum(
            map(num_rows, records)
        )
        for record in records:
            for ply, one in enumerate(record.plies):
                if one.policy_weight > 0 or one.value_weight > 0:
                    expected.append((record, ply))
    assert rows.num_rows == len(expected)
    numbers = np.random.default_rng(1).permutation(len(expected))
    symmetries = (np.arange(len(numbers)) % game.num_symmetries).astype(np.uint8)
    out = rows.derive(numbers, symmetries, False)
    for i, (number, symmetry) in enumerate(zip(numbers, symmetries, strict=True)):
        record, ply = expected[number]
        for column, wanted in slow_row(name, record, ply, int(symmetry)).items():
            np.testing.assert_array_equal(out[column][i], wanted, err_msg=column)
    np.testing.assert_allclose(out["policy"].sum(1), 1, rtol=1e-6)
    assert not (out["policy"] > 0)[out["legal"] == 0].any()


def test_a_worked_row_of_tictactoe() -> None:
    ply = _core.PlyRecord()
    ply.action, ply.root_value, ply.policy_weight = 1, 0.5, 1.0
    ply.value_weight, ply.policy = 1.0, [(1, 3), (8, 1)]
    rest = []
    for action in (4, 2):
        cheap = _core.PlyRecord()
        cheap.action = action
        rest.append(cheap)
    record = _core.GameRecord()
    record.outcome = 1  # 0 1 2 by the first player: the top row
    record.opening, record.plies = [0, 3], [ply, *rest]
    rows = _core.GameRows("tictactoe")
    assert rows.add_segment(**segment_columns([record])) == 1
    out = rows.derive(np.array([0]), np.array([0], np.uint8), False)
    assert out["legal"][0].tolist() == [0, 1, 1, 0, 1, 1, 1, 1, 1]
    assert out["policy"][0].tolist() == [0, 0.75, 0, 0, 0, 0, 0, 0, 0.25]
    assert out["outcome"][0].tolist() == [1, 0, 0]
    assert out["search_value"].tolist() == [0.5]


def test_rows_keep_their_numbers_when_old_segments_are_dropped() -> None:
    rows = _core.GameRows("connect4")
    rows.skip_rows(1000)
    first = [random_game("connect4", index) for index in range(3)]
    second = [random_game("connect4", index, 1) for index in range(3)]
    num_first = rows.add_segment(**segment_columns(first))
    num_second = rows.add_segment(**segment_columns(second))
    assert rows.first_row == 1000
    assert rows.num_rows == 1000 + num_first + num_second
    numbers = np.arange(1000 + num_first, rows.num_rows)
    symmetries = np.zeros(len(numbers), np.uint8)
    before = rows.derive(numbers, symmetries, False)
    rows.drop_before(1000 + num_first - 1)
    assert rows.first_row == 1000  # still needed
    rows.drop_before(1000 + num_first)
    assert rows.first_row == 1000 + num_first
    after = rows.derive(numbers, symmetries, False)
    for name in before:
        np.testing.assert_array_equal(before[name], after[name])
    with refused(_core.CoreError, "row (1000)"):
        rows.derive(np.array([1000]), np.zeros(1, np.uint8), False)
    with refused(_core.CoreError, "skip"):
        rows.skip_rows(1)


def test_rows_and_symmetries_out_of_range_are_refused() -> None:
    rows = _core.GameRows("tictactoe")
    rows.add_segment(**segment_columns([random_game("tictactoe", 1)]))
    for number in (-1, rows.num_rows):
        with refused(_core.CoreError, f"row ({number})"):
            rows.derive(np.array([number]), np.zeros(1, np.uint8), False)
    with refused(_core.CoreError, "symmetry"):
        rows.derive(np.array([0]), np.array([8], np.uint8), False)
    with refused(_core.CoreError, "symmetries"):
        rows.derive(np.array([0, 0]), np.zeros(1, np.uint8), False)
    with refused(_core.CoreError, "task"):
        _core.GameRows("chess")


def test_games_that_break_the_rules_are_refused() -> None:
    rows = _core.GameRows("connect4")
    good = segment_columns([random_game("connect4", index) for index in range(3)])
    with refused(_core.CoreError, "opening"):
        rows.add_segment(**{**good, "opening": good["opening"][:-1]})
    with refused(_core.CoreError, "policy_mass"):
        rows.add_segment(**{**good, "policy_mass": good["policy_mass"][:-1]})
    action = good["action"].copy()
    action[3] = 7
    with refused(_core.CoreError, "action (7)"):
        rows.add_segment(**{**good, "action": action})
    outcome = good["outcome"].copy()
    outcome[1] = outcome[1] % 3 + 1
    with refused(_core.CoreError, "game 1"):
        rows.add_segment(**{**good, "outcome": outcome})
    entries = good["policy_action"].copy()
    entries[-1] = 60000
    with refused(_core.CoreError, "action (60000)"):
        rows.add_segment(**{**good, "policy_action": entries})
    assert rows.num_rows == 0


def test_draws_are_a_pure_function_and_fill_their_range() -> None:
    def draw(seed: int, step: int) -> tuple[list[int], list[int]]:
        rows, symmetries = _core.draw_rows(
            seed=seed,
            step=step,
            num_rows=500,
            first_row=10**12,
            size=7,
            num_symmetries=8,
        )
        return rows.tolist(), symmetries.tolist()

    assert draw(1, 5) == draw(1, 5)
    assert draw(1, 5) != draw(1, 6)
    assert draw(1, 5) != draw(2, 5)
    rows, symmetries = draw(1, 5)
    assert set(rows) == set(range(10**12, 10**12 + 7))
    assert set(symmetries) == set(range(8))


def test_a_pass_is_a_pure_function_and_fills_its_range_once() -> None:
    def draw(seed: int, number: int, offset: int, num: int) -> tuple[Any, Any]:
        return _core.draw_rows_of_pass(
            seed=seed,
            number=number,
            offset=offset,
            num_rows=num,
            first_row=10**12,
            size=700,
            num_symmetries=8,
        )

    whole, symmetries = draw(1, 5, 0, 700)
    # Golden: a run that goes on elsewhere draws the same.
    first = [8, 496, 400, 409, 442, 392]
    assert (whole[:6] - 10**12).tolist() == first
    assert symmetries[:6].tolist() == [4, 3, 5, 6, 7, 6]
    assert sorted(whole.tolist()) == list(range(10**12, 10**12 + 700))
    assert set(symmetries.tolist()) == set(range(8))
    # A part is the same whatever was drawn before it; so it may be drawn twice.
    part, _ = draw(1, 5, 300, 250)
    assert part.tolist() == whole[300:550].tolist()
    for other in (draw(1, 6, 0, 700), draw(2, 5, 0, 700)):
        assert other[0].tolist() != whole.tolist()
        assert other[1].tolist() != symmetries.tolist()
    assert draw(1, 5, 350, 350)[1].tolist() != symmetries[:350].tolist()
    for offset, num in ((0, 701), (1, 700), (701, 0)):
        with refused(_core.CoreError, "700"):
            draw(1, 5, offset, num)


def test_draws_are_even() -> None:
    """Chi-square of 63 degrees of freedom: below 120 but for 1 in 50000 seeds."""
    counts = np.zeros((8, 8))
    for step in range(100):
        rows, symmetries = _core.draw_rows(
            seed=3, step=step, num_rows=256, first_row=0, size=8, num_symmetries=8
        )
        np.add.at(counts, (rows, symmetries), 1)
    expected = 256 * 100 / 64
    assert ((counts - expected) ** 2 / expected).sum() < 120
