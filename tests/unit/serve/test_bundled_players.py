"""Playing against the bundled players, without any run."""

import shutil

import pytest

from tengen import bundled
from tengen.bundled import players
from tengen.games import open_game
from tengen.play import load
from tengen.serve import Limits
from tengen.serve.players import Players
from tests.unit.serve.served import serving


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """Returns a server without runs."""
    pytest.importorskip("starlette", reason="the extra serve is not installed")
    pytest.importorskip("uvicorn", reason="the extra serve is not installed")
    folder = tmp_path_factory.mktemp("none")
    limits = Limits(look_s=0.2, max_simulations=64)
    with serving([], folder=folder, limits=limits) as site:
        yield site


def test_they_are_listed_without_a_run(bare):
    assert bare.ask("/api/runs").json == []
    told = bare.ask("/api/players").json
    assert [player["name"] for player in told] == bundled.bundled_names()
    keys = {"id", "name", "net", "games", "picture", "sentence", "strength"}
    assert keys == set(told[0])
    # Each board is that of its game, with some moves of an opening.
    for player in told:
        game, board = player["picture"]["game"], player["picture"]["board"]
        assert len(board) == game["width"] * game["height"]
        assert board.count("X") - board.count("O") in (0, 1)
        assert board.count("X") >= 3


def test_a_damaged_one_hides_no_other(bare, tmp_path, monkeypatch):
    for name in ("tictactoe", "connect4"):
        shutil.copytree(players.FOLDER / name, tmp_path / name)
    (tmp_path / "connect4" / "player.json").write_text("{")
    monkeypatch.setattr(players, "FOLDER", tmp_path)
    damaged, whole = bare.ask("/api/players").json
    assert set(damaged) == {"id", "name", "trouble"}
    assert "player.json" in damaged["trouble"]
    assert (whole["name"], "trouble" in whole) == ("tictactoe", False)
    refused = bare.ask("/api/players/connect4/play")
    assert refused.status == 422
    assert bare.ask("/api/players/tictactoe/play").status == 200


def test_levels_that_the_server_allows(bare):
    told = bare.ask("/api/players/connect4/play").json
    assert told["game"]["name"] == "connect4"
    assert (told["models"], told["newest"]) == ([], None)
    # Levels with 200 and 800 simulations are missing, as the limit here is 64.
    assert [row["level"] for row in told["levels"]] == [1, 2, 3, 4, 5, 6]
    assert told["levels"][0]["name"] == "beginner"
    ratings = [row["rating"] for row in told["levels"]]
    assert ratings == sorted(ratings)


def test_a_run_has_none(site):
    assert site.ask("/api/runs/tictactoe/play").json["levels"] == []


def test_a_whole_game_is_played(bare):
    base = "/api/players/tictactoe/play"
    state, moves = open_game("tictactoe").new_state(), []
    while not state.is_terminal():
        moves.append(state.legal_actions()[-1])
        state.apply(moves[-1])
        asked = {"moves": moves, "level": 2, "plays": True}
        *_, last = bare.ask(f"{base}/search", asked).lines
        if last["result"] is not None and "action" not in last:
            break
        assert last["action"] in state.legal_actions()
        moves.append(last["action"])
        state.apply(moves[-1])
    record = bare.ask(f"{base}/record", {"moves": moves})
    assert record.status == 200
    assert b"tictactoe of tengen" in record.body


def test_a_weak_level_draws_and_a_strong_one_searches(bare):
    path = "/api/players/connect4/play/search"

    def answer(level):
        asked = {"moves": [], "level": level, "plays": True}
        *_, analysis, last = bare.ask(path, asked).lines
        return analysis["simulations"], last["action"]

    weak = [answer(1) for _ in range(12)]
    assert {simulations for simulations, _ in weak} == {1}
    assert len({action for _, action in weak}) > 1
    assert answer(6)[0] == 32


def test_a_model_is_loaded_once_for_all_its_levels():
    loaded = []
    players = Players(3, loads=lambda path: loaded.append(path.name) or load(path))
    for _ in range(2):
        for name in ("tictactoe", "connect4"):
            for level in (None, 1):
                found = players.get_bundled(name, level)
                assert found.game.name == name
                assert (found.level is None) == (level is None)
    assert loaded == ["tictactoe", "connect4"]
    players.close()


def test_a_name_with_a_size(bare):
    asked = {"moves": [24], "level": 1, "plays": True}
    *_, last = bare.ask("/api/players/go~7/play/search", asked).lines
    assert last["kind"] == "answer"


@pytest.mark.parametrize(
    ("player", "asked", "words"),
    [
        ("chess", {"moves": []}, "is not known"),
        ("..~..~x", {"moves": []}, "is not known"),
        ("connect4", {"moves": [], "level": 0}, "must be 1 or more"),
        ("connect4", {"moves": [], "level": 99}, "must be 1 to"),
        ("connect4", {"moves": [], "level": "beginner"}, "must be 1 or more"),
        ("connect4", {"moves": [9], "level": 1}, "is not legal"),
    ],
)
def test_what_cannot_be_is_one_line(bare, player, asked, words):
    reply = bare.ask(f"/api/players/{player}/play/search", asked)
    assert reply.status == 422
    assert words in reply.json["error"]
