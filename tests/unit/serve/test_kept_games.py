"""Stored games through their routes, and as they were recorded."""

import pytest

from tengen.errors import RunError
from tengen.games.sgf import read_sgf
from tengen.run import RunDirectory
from tengen.serve.kept import read_source, sources
from tests.refusals import refused
from tests.unit.serve.made_runs import random_moves


def test_all_kinds_are_listed_the_newest_first(site):
    told = site.ask("/api/runs/tictactoe/games").json
    assert [one["id"] for one in told] == [
        "final-1",
        "gate-000004",
        "selfplay-0.1.000002",
        "selfplay-0.1.000001",
    ]
    assert told[2]["title"] == "self-play, generation 2, in progress"
    assert site.ask("/api/runs/CartPole-v1~seed1/games").json == []


def test_parts_of_a_generation_have_their_numbers(tmp_path):
    """Parts are sorted by number, not as text: 10 comes after 9."""
    run = RunDirectory.create_or_resume(tmp_path)
    names = "9/000002.npz 9/000002.journal 10/000002.npz 11/000002.journal 9/000001.npz"
    for name in names.split():
        path = run.experience / "selfplay-0" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")
    assert [(one.id, one.title) for one in sources(run)] == [
        ("selfplay-0.11.000002", "self-play, generation 2, part 3, in progress"),
        ("selfplay-0.10.000002", "self-play, generation 2, part 2"),
        ("selfplay-0.9.000002", "self-play, generation 2, part 1"),
        ("selfplay-0.9.000001", "self-play, generation 1"),
    ]


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/7", "go/5"])
@pytest.mark.parametrize("generation", [1, 2])
def test_a_game_of_self_play_has_what_its_searches_found(site, task, generation):
    base = f"/api/runs/{task.replace('/', '~')}/games/selfplay-0.1.00000{generation}"
    listed = site.ask(base).json
    assert listed["num_games"] == 3
    game = site.ask(f"{base}/2").json
    moves, state = random_moves(task, 2)
    assert game["moves"] == moves
    assert game["result"] == state.returns()[0]
    assert game["title"] == "model 3"
    assert len(game["positions"]) == len(moves) + 1
    assert game["positions"][-1]["result"] == state.returns()[0]
    assert game["plies"][0] is None  # the opening
    assert game["plies"][1]["policy"] == [[moves[1], 1.0]]
    assert game["plies"][1]["value"] == -0.5
    assert game["plies"][2]["policy"] == []
    assert game["plies"][1]["simulations"] == 32


@pytest.mark.parametrize("task", ["tictactoe", "go/5"])
def test_a_game_of_a_match_has_its_players(site, task):
    base = f"/api/runs/{task.replace('/', '~')}/games"
    first, second = site.ask(f"{base}/final-1").json["games"]
    assert first["title"] == "the model against its opponent"
    assert second["title"] == "its opponent against the model"
    for index, one in enumerate((first, second)):
        moves, state = random_moves(task, 50 + index)
        assert one["result"] == state.returns()[0]
        game = site.ask(f"{base}/final-1/{index}").json
        assert game["moves"] == moves
        assert game["plies"] == []
        again = site.ask(f"{base}/gate-000004/{index}").json
        assert again["moves"] == moves
        assert again["result"] == state.returns()[0]


def test_a_kept_game_is_saved(site):
    path = "/api/runs/go~5/games/selfplay-0.1.000001/1/record"
    reply = site.ask(path)
    assert 'filename="game-1.sgf"' in reply.headers["content-disposition"]
    assert read_sgf(reply.body).moves == tuple(random_moves("go/5", 1)[0])


@pytest.mark.parametrize(
    "path",
    [
        "games/selfplay-0.1.000009",
        "games/selfplay-0.1.000001/77",
        "games/..",
        "games/run.json",
        "games/gate-000005/0",
    ],
)
def test_other_games_are_refused(site, path):
    reply = site.ask(f"/api/runs/tictactoe/{path}")
    assert reply.status == 422
    assert "choose" in reply.json["error"]


def test_a_damaged_segment_is_one_line(site, shelf, tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    folder = run.experience / "selfplay-0" / "1"
    folder.mkdir(parents=True)
    (folder / "000001.npz").write_bytes(b"no zip")
    (source,) = sources(run)
    with refused(RunError, str(source.path)):
        read_source(source)
