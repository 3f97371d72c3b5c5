"""Targets of auxiliary heads against slow replays of the games."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from store_games import num_rows, random_game, segment_columns

import tengen.games
from tengen import _core
from tengen.experience import (
    ExperienceWriter,
    GameWindow,
    SamplesPerInsertConfig,
    WindowConfig,
)

HORIZONS = (0.176, 0.056, 0.016)
GO = "go/6"
VARIANTS = ["", "go/4/komi=-2.5", "go/6/komi=0.5", "go/5/plies=12"]


def slow_targets(name: str, record: _core.GameRecord, ply: int) -> dict[str, Any]:
    """The targets of one ply, seen as it was played."""
    game = tengen.games.make(name)
    state = game.new_state(record.variant)
    players = []
    for action in (*record.opening, *(one.action for one in record.plies)):
        players.append(state.to_play)
        state.apply(action)
    players = players[len(record.opening) :]
    me = players[ply]
    result = {1: 1.0, 2: -1.0, 3: 0.0}[record.outcome] * (1 if me == 0 else -1)
    board = tengen.games.make(record.variant or name)
    horizons = []
    for slowness in HORIZONS:
        now = 1 / (1 + slowness * board.height * board.width)
        weight, value = 1.0, 0.0
        for one, player in zip(record.plies[ply:], players[ply:], strict=True):
            value += weight * now * one.root_value * (1 if player == me else -1)
            weight *= 1 - now
        horizons.append(value + weight * result)
    reply = np.zeros(game.num_actions)
    has_reply = ply + 1 < len(record.plies)
    if has_reply:
        answer = record.plies[ply + 1]
        for action, mass in answer.policy or [(answer.action, 1)]:
            reply[action] = mass
        reply /= reply.sum()
    this = record.plies[ply]
    return {
        "reply": reply,
        "reply_weight": this.policy_weight if has_reply else 0.0,
        "horizons": horizons,
    }


def slow_end(record: _core.GameRecord, ply: int) -> dict[str, Any]:
    """Score and owners at the end of a game of Go, seen by who moves."""
    actions = [*record.opening, *(one.action for one in record.plies)]
    name = record.variant or GO
    small, large = tengen.games.make(name), tengen.games.make(GO)

    def on_board(action: int) -> int:
        if action == large.num_actions - 1:
            return small.num_actions - 1
        return action // large.width * small.width + action % large.width

    end = _core.GoPosition(name, [on_board(action) for action in actions])
    me = (len(record.opening) + ply) % 2
    sign = 1 if me == 0 else -1
    owners = np.zeros((large.height, large.width))
    owners[: small.height, : small.width] = sign * end.area()
    return {
        "score": sign * end.score(),
        "ownership": owners,
        "final_weight": record.plies[ply].value_weight,
    }


def slow_lead(record: _core.GameRecord, ply: int) -> dict[str, Any]:
    """What self-play estimated, in points of who moves; not every ply has it."""
    this = record.plies[ply]
    if this.lead == -32768:
        return {"lead": 0.0, "lead_weight": 0.0}
    return {"lead": this.lead / 8, "lead_weight": this.value_weight}


@pytest.mark.parametrize(
    ("name", "variants"),
    [("tictactoe", [""]), ("connect4", [""]), (GO, VARIANTS)],
)
def test_targets_are_those_of_a_slow_replay(name: str, variants: list[str]) -> None:
    rows = _core.GameRows(name)
    records = [
        random_game(name, index, variant=variants[index % len(variants)])
        for index in range(8)
    ]
    rows.add_segment(**segment_columns(records))
    expected = [
        (record, ply)
        for record in records
        for ply, one in enumerate(record.plies)
        if one.policy_weight > 0 or one.value_weight > 0
    ]
    out = rows.derive(np.arange(len(expected)), np.zeros(len(expected), np.uint8), True)
    for i, (record, ply) in enumerate(expected):
        wanted = slow_targets(name, record, ply)
        if name == GO:
            wanted |= slow_end(record, ply) | slow_lead(record, ply)
        for column, value in wanted.items():
            np.testing.assert_allclose(
                out[column][i], value, rtol=2e-6, atol=1e-6, err_msg=column
            )


def test_a_symmetry_turns_targets_as_it_turns_the_planes() -> None:
    game = tengen.games.make(GO)
    rows = _core.GameRows(GO)
    records = [random_game(GO, index) for index in range(2)]
    rows.add_segment(**segment_columns(records))
    size = sum(map(num_rows, records))
    plain = rows.derive(np.arange(size), np.zeros(size, np.uint8), True)
    assert (plain["ownership"] != 0).any()
    for symmetry in range(1, 8):
        turned = rows.derive(np.arange(size), np.full(size, symmetry, np.uint8), True)
        image = [game.transform_action(a, symmetry) for a in range(game.num_actions)]
        np.testing.assert_array_equal(turned["reply"][:, image], plain["reply"])
        cells = turned["ownership"].reshape(size, -1)[:, image[:-1]]
        np.testing.assert_array_equal(cells, plain["ownership"].reshape(size, -1))
        for name in ("score", "lead", "lead_weight"):
            np.testing.assert_array_equal(turned[name], plain[name])


def test_a_game_that_stopped_early_has_no_score() -> None:
    record = random_game(GO, 1)
    resigned = random_game(GO, 1)
    resigned.plies = resigned.plies[: len(resigned.plies) // 2]
    for game in (record, resigned):
        rows = _core.GameRows(GO)
        size = rows.add_segment(**segment_columns([game]))
        out = rows.derive(np.arange(size), np.zeros(size, np.uint8), True)
        assert (out["final_weight"] > 0).any() == (game is record)
        assert out["ownership"].any() == (game is record)
        assert (out["lead_weight"] > 0).any()


def test_leads_cost_no_memory_where_there_are_none() -> None:
    sizes = []
    for lead in (_core.NO_LEAD, 5):
        record = random_game(GO, 1)
        plies = record.plies
        for ply in plies:
            ply.lead = _core.NO_LEAD
        plies[0].lead = lead
        record.plies = plies
        rows = _core.GameRows(GO)
        rows.add_segment(**segment_columns([record]))
        sizes.append(rows.num_bytes)
    assert sizes[1] - sizes[0] == 2 * len(record.plies)


def test_a_game_that_repetition_ended_has_no_score() -> None:
    # Simple ko on one row of boards: a sending two and returning one that comes back.
    name = "go/2/simple"
    record = None
    for index in range(400):
        found = random_game(name, index)
        actions = [*found.opening, *(one.action for one in found.plies)]
        end = _core.GoPosition(name, actions)
        if found.outcome == 3 and end.score() != 0 and num_rows(found):
            record = found
            break
    assert record is not None
    rows = _core.GameRows(name)
    size = rows.add_segment(**segment_columns([record]))
    out = rows.derive(np.arange(size), np.zeros(size, np.uint8), True)
    assert not out["final_weight"].any()


@pytest.mark.parametrize("name", ["tictactoe", GO])
def test_a_window_hands_them_out_where_they_are_wanted(
    tmp_path: Path, name: str
) -> None:
    limiter = SamplesPerInsertConfig(samples_per_row=1000.0)
    config = WindowConfig(min_rows=1, limiter=limiter)
    names = []
    with ExperienceWriter(tmp_path / "w", 1) as writer:
        games = writer.open_games(1, name)
        games.sink.put(random_game(name, 1, 1))
        games.close()
        writer.seal(1)
    for auxiliary in (False, True):
        window = GameWindow(name, tmp_path, config, seed=1, auxiliary=auxiliary)
        window.refresh()
        names.append(set(window.sample(4).columns))
    more = {"reply", "reply_weight", "horizons"}
    if name == GO:
        more |= {"ownership", "score", "final_weight", "lead", "lead_weight"}
    assert names[1] - names[0] == more
