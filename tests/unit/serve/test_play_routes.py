"""Playing through the server's routes alone, over a real socket."""

import http.client
import json

import pytest

from tengen import games
from tengen.errors import UsageError
from tengen.games.sgf import read_sgf
from tengen.play import AgentPlayer
from tengen.serve import Limits
from tengen.serve.players import Players
from tests.refusals import refused
from tests.unit.serve.made_runs import random_moves
from tests.unit.serve.served import serving


def path_of(task, what=""):
    return f"/api/runs/{task.replace('/', '~')}/play{what and '/' + what}"


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/7", "go/5"])
def test_a_whole_game_is_played(site, task):
    told = site.ask(path_of(task)).json
    assert told["game"]["name"] == task
    assert told["models"] == [0, 3]
    assert told["newest"] == 3
    moves = []
    position = site.ask(path_of(task, "position"), {"moves": moves}).json
    state = games.make(task).new_state()
    while position["result"] is None:
        assert position["to_play"] == 0
        assert position["legal"] == state.legal_actions()
        # In Go, passing ends the game soon, when the opponent passes as well.
        moves.append(position["legal"][-1])
        state.apply(moves[-1])
        asked = {"moves": moves, "simulations": 4, "plays": True}
        lines = site.ask(path_of(task, "search"), asked).lines
        assert lines[0]["kind"] == "position"
        assert lines[0]["model"] == 3
        if lines[0]["result"] is not None:
            position = lines[0]
            break
        assert lines[-2]["kind"] == "analysis"
        assert lines[-2]["best"] == lines[-1]["action"]
        moves.append(lines[-1]["action"])
        state.apply(moves[-1])
        position = lines[-1]
    assert state.is_terminal()
    assert position["result"] == state.returns()[0]


def test_a_search_says_what_it_thinks(site):
    asked = {"moves": [4, 0], "simulations": 60, "model": 0}
    *analyses, answer = site.ask(path_of("tictactoe", "search"), asked).lines[1:]
    found = analyses[-1]
    assert found["simulations"] == 60 or found["certain"]
    assert sum(row["visits"] for row in found["actions"]) > 0
    assert -1 <= found["value"] <= 1
    assert found["actions"][0]["variation"][0] == found["best"]
    assert set(answer) == {"kind", "action"}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"moves": [9]}, "is not legal"),
        ({"moves": [4, 4]}, "is not legal"),
        ({"moves": [-1]}, "must be action numbers"),
        ({"moves": [True]}, "must be action numbers"),
        ({"moves": "4"}, "at most 9 actions"),
        ({"moves": list(range(9)) * 2}, "at most 9 actions"),
        ({"moves": [], "model": 1}, "must be one of 0 to 3"),
        ({"moves": [], "model": "3"}, "must be a number"),
        ({"moves": [], "simulations": 65}, "must be 1 to 64"),
        ({"moves": [], "simulations": 0}, "must be 1 to 64"),
        ([], "must be a JSON object"),
    ],
)
def test_what_cannot_be_is_one_line(site, body, words):
    reply = site.ask(path_of("tictactoe", "search"), body)
    assert reply.status == 422
    assert words in reply.json["error"]
    assert "; " in reply.json["error"]


def test_a_game_that_is_over_is_not_searched(site):
    over = {"moves": [0, 3, 1, 4, 2], "simulations": 4, "plays": True}
    (line,) = site.ask(path_of("tictactoe", "search"), over).lines
    assert line["result"] == 1.0


def test_an_environment_is_nothing_to_play_against(site):
    reply = site.ask("/api/runs/CartPole-v1~seed1/play")
    assert reply.status == 422
    assert "no model yet" in reply.json["error"]


def test_more_searches_than_may_wait_are_told_to_come_again(shelf, site):
    with serving([], Limits(max_waiting=0), folder=shelf.folder) as small:
        (_, line) = small.ask(path_of("tictactoe", "search"), {"moves": []}).lines
        assert line["kind"] == "error"
        assert "try again" in line["error"]


def test_a_search_that_nobody_waits_for_ends(shelf, site):
    limits = Limits(max_simulations=2**24, max_waiting=1)
    asked = {"moves": [], "simulations": 2**24}
    with serving([], limits, folder=shelf.folder) as busy:
        connection = http.client.HTTPConnection("127.0.0.1", busy.port, timeout=900)
        headers = {"Content-Type": "application/json"}
        path = path_of("gomoku/7", "search")
        connection.request("POST", path, json.dumps(asked), headers)
        reply = connection.getresponse()
        for kind in ("position", "analysis"):
            assert json.loads(reply.readline())["kind"] == kind
        reply.close()
        connection.close()
        lines = busy.ask(path, {"moves": [], "simulations": 4}).lines
        assert lines[-1]["kind"] == "answer"


def test_the_end_of_a_game_is_forecast(site, publish_run, tmp_path):
    run = publish_run(tmp_path / "go", "go/5", auxiliary=True, exports=False)
    run.write_run({"config": {"task": "go/5"}})
    with serving([run.path]) as own:
        name = own.ask("/api/runs").json[0]["id"]
        asked = {"moves": [12], "simulations": 2, "forecasts": True}
        lines = own.ask(f"/api/runs/{name}/play/search", asked).lines
    assert [line["kind"] for line in lines[:2]] == ["position", "forecast"]
    assert len(lines[1]["ownership"]) == 25
    assert all(-1 <= value <= 1 for value in lines[1]["ownership"])
    plain = site.ask(path_of("go/5", "search"), asked).lines
    assert plain[1]["kind"] == "analysis"


def test_a_game_of_go_is_saved_as_sgf(site):
    moves, _ = random_moves("go/5", 3)
    reply = site.ask(path_of("go/5", "record"), {"moves": moves, "person": 1})
    assert 'filename="game.sgf"' in reply.headers["content-disposition"]
    record = read_sgf(reply.body)
    assert record.moves == tuple(moves)
    assert record.white == "you"


def test_a_game_of_gomoku_is_saved_as_sgf(site):
    body = {"moves": [24, 0], "person": 0}
    text = site.ask(path_of("gomoku/7", "record"), body).body.decode()
    assert text.startswith("(;GM[4]FF[4]CA[UTF-8]AP[tengen]SZ[7]PB[you]")
    assert text.endswith(";B[dd];W[aa])\n")


def test_other_games_are_saved_as_text(site):
    body = {"moves": [3, 3], "person": 0}
    reply = site.ask(path_of("connect4", "record"), body)
    assert 'filename="game.txt"' in reply.headers["content-disposition"]
    assert "2. 3" in reply.body.decode()


class TestPlayers:
    def test_few_models_are_kept_and_the_oldest_goes(self, shelf):
        loaded = []

        def load(path, task=None):
            loaded.append((path.parent.parent.name, path.name, task))
            return real(path, task=task)

        from tengen.play import load as real

        players = Players(2, loads=load)
        run, other = shelf.runs["tictactoe"], shelf.runs["connect4"]
        for number in (0, 3, 0):
            assert players.get(run, number)[0] == number
        players.get(other, None)  # replaces model 3
        players.get(run, 0)
        players.get(run, 3)
        names = [(folder, name) for folder, name, _ in loaded]
        assert names == [
            ("tictactoe", "000000"),
            ("tictactoe", "000003"),
            ("connect4", "000003"),
            ("tictactoe", "000003"),
        ]
        players.close()

    def test_who_acts_is_closed_and_refused(self, shelf):
        closed = []

        class Agent(AgentPlayer):
            def __init__(self):
                pass

            def close(self):
                closed.append(self)

        players = Players(1, loads=lambda path, task=None: Agent())
        run = shelf.runs["tictactoe"]
        with refused(UsageError, f"run ({run.path})"):
            players.get(run, None)
        assert len(closed) == 1
