import json

import pytest

from tengen import games
from tengen.config import from_dict
from tengen.evaluation import PlayedGame, RandomPlayer, play_match, write_games
from tengen.games.sgf import read_sgf


def play(task):
    game = games.make(task)
    return play_match(game, RandomPlayer(), RandomPlayer(), num_games=3).games


def test_games_of_go_are_sgf(tmp_path):
    played = play("go/4")
    write_games(tmp_path, "go/4", "000003", "000002", played)
    paths = sorted(tmp_path.iterdir())
    assert [path.name for path in paths] == ["000000.sgf", "000001.sgf", "000002.sgf"]
    records = [read_sgf(path.read_bytes()) for path in paths]
    assert [tuple(record.moves) for record in records] == [g.moves for g in played]
    assert [record.black for record in records] == ["000003", "000002", "000003"]
    assert [record.white for record in records] == ["000002", "000003", "000002"]


@pytest.mark.parametrize("task", ["tictactoe", "connect4"])
def test_other_games_are_lines(tmp_path, task):
    played = play(task)
    write_games(tmp_path, task, "000003", "000002", played)
    (path,) = tmp_path.iterdir()
    assert path.name == "games.jsonl"
    lines = path.read_text().splitlines()
    assert tuple(from_dict(PlayedGame, json.loads(line)) for line in lines) == played
