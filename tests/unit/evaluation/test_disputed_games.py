"""Games in which an outside engine refuses a legal move: no result, and no end."""

import dataclasses
import json
import sys
from pathlib import Path

import pytest

from tengen import cli, games
from tengen.config import from_dict
from tengen.evaluation import (
    GtpPlayer,
    MatchJournal,
    PlayedGame,
    RandomPlayer,
    Tally,
    play_match,
)
from tengen.games.sgf import read_sgf
from tengen.games.vertices import read_vertex
from tengen.observe import progress_line

SLOW = Path(__file__).parents[2] / "oracle" / "slow_gtp.py"
PASS = 16
NUM_GAMES = 12


def command(*words):
    return " ".join([sys.executable, str(SLOW), *words])


def match(a, b, **settings):
    settings = {"num_games": NUM_GAMES, "opening_plies": 1, "seed": 5, **settings}
    return play_match(games.make("go/4"), a, b, **settings)


def told(game, engine_is_a):
    """Returns the plies that are not the engine's own: the opening and the other's."""
    parity = int(engine_is_a == game.a_moves_first)
    return [
        ply
        for ply in range(len(game.moves))
        if ply < game.num_opening_plies or ply % 2 == parity
    ]


@pytest.mark.parametrize("engine_is_a", [True, False])
def test_a_refused_move_is_one_game_without_a_result(engine_is_a):
    engine, other = GtpPlayer(command("refuse", "C3")), RandomPlayer()
    report = match(engine, other) if engine_is_a else match(other, engine)
    assert [game.index for game in report.games] == list(range(NUM_GAMES))
    counted = [game for game in report.games if game.disputed is None]
    assert 0 < len(counted) < NUM_GAMES
    refused = read_vertex("C3", 4, 4)
    for game in report.games:
        at = [ply for ply in told(game, engine_is_a) if game.moves[ply] == refused]
        if game.disputed is None:
            # No move of the other side that the engine was told; it saw no last one.
            assert at in ([], [len(game.moves) - 1])
            assert game.score_a in (0.0, 1.0)
            continue
        assert game.score_a is None
        assert game.disputed.side == ("a" if engine_is_a else "b")
        assert (game.disputed.move, game.disputed.vertex) == (at[0] + 1, "C3")
        assert game.disputed.words == "illegal move"
    scores = [game.score_a for game in counted]
    assert report.tally == Tally(scores.count(1), scores.count(0.5), scores.count(0))
    assert list(report.disputes) == [g.index for g in report.games if g.disputed]
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert content["games"] == len(counted)
    first = min(report.disputes)
    assert content["disputed"][0] == {
        "game": first,
        **dataclasses.asdict(report.disputes[first]),
    }
    assert len(content["disputed"]) == NUM_GAMES - len(counted)


def test_games_that_are_not_disputed_are_as_without_the_refusal():
    sound = match(GtpPlayer(command()), RandomPlayer())
    report = match(GtpPlayer(command("refuse", "C3")), RandomPlayer())
    for game, whole in zip(report.games, sound.games, strict=True):
        if game.disputed is None:
            assert game == whole
        else:
            assert game.moves == whole.moves[: len(game.moves)]
    assert sound.to_json()["disputed"] == []


def test_threads_change_no_dispute():
    engine = GtpPlayer(command("refuse", "C3"))
    assert match(engine, RandomPlayer(), num_threads=1) == match(
        engine, RandomPlayer(), num_threads=3
    )


def test_a_refused_pass_after_the_end_is_only_not_scored():
    report = match(GtpPlayer(command("refuse", "PASS")), RandomPlayer(), num_games=24)
    counted = [game for game in report.games if game.disputed is None]
    assert all(dispute.vertex == "pass" for dispute in report.disputes.values())
    assert report.tally.num_games == len(counted)
    ended = [game for game in counted if game.moves[-2:] == (PASS, PASS)]
    assert ended
    # The last pass was the random player's: else the engine had refused the first.
    assert report.engines["a"].num_scored == 0


def test_a_journal_keeps_disputed_games_and_they_are_not_replayed(tmp_path):
    engine = GtpPlayer(command("refuse", "C3"))
    whole = match(engine, RandomPlayer())
    first = min(whole.disputes)
    journal = MatchJournal(tmp_path, {"seed": 5})
    journal.keep(whole.games[: first + 1])
    journal.close()
    journal = MatchJournal(tmp_path, {"seed": 5})
    assert journal.played == whole.games[: first + 1]
    kept = []
    report = match(engine, RandomPlayer(), played=journal.played, keep=kept.extend)
    journal.close()
    assert report.games == whole.games
    assert report.tally == whole.tally
    assert sorted(game.index for game in kept) == list(range(first + 1, NUM_GAMES))
    # Nothing is left to play: no engine is started, and the games say the same.
    absent = GtpPlayer("no-such-program")
    again = match(absent, RandomPlayer(), played=whole.games)
    assert again.to_json()["disputed"] == whole.to_json()["disputed"]
    assert again.tally == whole.tally


def test_a_line_of_a_game_says_that_it_is_disputed():
    report = match(GtpPlayer(command("refuse", "C3")), RandomPlayer())
    for game in report.games:
        line = json.loads(json.dumps(game.to_json()))
        assert ("disputed" in line) == (game.index in report.disputes)
        assert from_dict(PlayedGame, line) == game


def test_the_command_line(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setattr(progress_line, "_PATIENCE_S", 0)
    monkeypatch.setenv("TERM", "xterm")
    folder = tmp_path / "games"
    words = ["match", f"gtp:{command('refuse', 'C3')}", "random", "--game", "go/4"]
    words += ["--games", "12", "--seed", "5", "--opening-plies", "1"]
    assert cli.main([*words, "--sgf", str(folder)]) == 0
    text, counter = capsys.readouterr()
    assert counter.endswith("\r\033[K")  # the terminal's line is free again
    report = match(GtpPlayer(command("refuse", "C3")), RandomPlayer())
    num_disputed, first = len(report.disputes), min(report.disputes)
    assert f"in {NUM_GAMES - num_disputed} games" in text
    assert f"{num_disputed} of 12 games are disputed and do not count" in text
    move = report.disputes[first].move
    assert f"first: in game {first} A refuses move {move}, C3: illegal move" in text
    records = [read_sgf(path.read_bytes()) for path in sorted(folder.iterdir())]
    assert len(records) == 12
    for game, record in zip(report.games, records, strict=True):
        assert record.moves == game.moves
        assert (record.result == "Void") == (game.disputed is not None)
        says = f"refuses move {game.disputed.move}, C3" if game.disputed else ""
        assert says in record.comment
        assert bool(record.comment) == bool(says)


def test_every_game_disputed_is_a_failure_in_one_line(tmp_path, capsys):
    words = ["match", "random", f"gtp:{command('refuse')}", "--game", "go/4"]
    words += ["--games", "3", "--json", "--sgf", str(tmp_path / "games")]
    assert cli.main(words) == 1
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "games (3) must not all be disputed, first: in game 0 B refuses move" in (
        captured.err
    )
    assert len(list((tmp_path / "games").iterdir())) == 3
