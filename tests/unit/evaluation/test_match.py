"""Matches, their journals, and the games that are stored."""

import dataclasses
import json
import os
import signal
import threading

import pytest

from tengen import _core, games
from tengen.config import from_dict
from tengen.errors import RunError, TengenError, UsageError
from tengen.evaluation import (
    MatchJournal,
    MatchStopped,
    MctsPlayer,
    PlayedGame,
    RandomPlayer,
    Tally,
    play_match,
    stopped_by,
    write_games,
)
from tengen.evaluation.searcher import Searcher
from tengen.experience.games.journal import OpenSegment, read_journal
from tengen.games.sgf import read_sgf
from tests.refusals import refused
from tests.unit.conftest import PLAIN

MCTS, RANDOM = MctsPlayer(20), RandomPlayer()


def match(task, a, b, num_games, **settings):
    return play_match(games.make(task), a, b, num_games=num_games, **settings)


def check_scores(task, report, num_games):
    """Replays the moves without the core's match, and compares the results."""
    assert [game.index for game in report.games] == list(range(num_games))
    for game in report.games:
        state = games.make(task).new_state()
        for move in game.moves:
            assert move in state.legal_actions()
            state.apply(move)
        assert state.is_terminal()
        winner = state.returns()[0 if game.a_moves_first else 1]
        assert game.score_a == 0.5 + 0.5 * winner
    scores = [game.score_a for game in report.games]
    counts = scores.count(1.0), scores.count(0.5), scores.count(0.0)
    assert report.tally == Tally(*counts)


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/7"])
def test_every_game_is_whole_and_scored_right(task):
    check_scores(task, match(task, MCTS, RANDOM, 12, seed=3), 12)


def test_colours_alternate_on_the_same_opening():
    report = match("connect4", RANDOM, RANDOM, 11, opening_plies=4)
    assert [game.a_moves_first for game in report.games] == [1, 0] * 5 + [1]
    assert {game.num_opening_plies for game in report.games} == {4}
    openings = [game.moves[:4] for game in report.games]
    assert openings[:10:2] == openings[1::2]
    assert len(set(openings)) > 1
    other = match("connect4", RANDOM, RANDOM, 11, opening_plies=4, seed=1)
    assert other.games != report.games


@pytest.mark.parametrize("num_threads", [1, 2])
def test_players_with_several_threads_in_a_tree(hash_player, num_threads):
    tree = dataclasses.replace(hash_player("tictactoe"), tree_threads=2)
    settings = {"num_simulations": 100, "num_threads": num_threads}
    for a, b in ((tree, MCTS), (hash_player("tictactoe"), tree), (tree, tree)):
        report = match("tictactoe", a, b, 7, **settings)
        check_scores("tictactoe", report, 7)
        for even, odd in zip(report.games[::2], report.games[1::2], strict=False):
            assert even.moves[:2] == odd.moves[:2]


@pytest.mark.parametrize("tree_threads", [1, 2])
def test_a_player_resigns_at_its_third_low_value_in_a_row(hash_player, tree_threads):
    """With a limit of almost 1, every value that is not a proven win is low."""
    player = dataclasses.replace(hash_player("connect4"), tree_threads=tree_threads)
    play = dataclasses.replace(player.play, resign_below=0.9999)
    timid = dataclasses.replace(player, play=play)
    report = match("connect4", timid, player, 12, num_simulations=4)
    num_resigned = 0
    for game in report.games:
        plies = range(game.num_opening_plies, len(game.moves))
        num_own = sum((ply % 2 == 0) == game.a_moves_first for ply in plies)
        num_resigned += num_own == 2 and game.score_a == 0.0
    assert num_resigned >= 9
    whole = match("connect4", player, player, 12, num_simulations=4)
    check_scores("connect4", whole, 12)


@pytest.mark.parametrize("tree_threads", [1, 2])
def test_a_network_for_several_boards_on_a_smaller_one(hash_player, tree_threads):
    mixed = dataclasses.replace(hash_player("go/5"), mixed_sizes=True)
    player = dataclasses.replace(mixed.playing("go/3x4"), tree_threads=tree_threads)
    settings = {"num_simulations": 64}
    report = match("go/3x4", player, RANDOM, 4, num_threads=2, **settings)
    check_scores("go/3x4", report, 4)
    if tree_threads > 1:
        return
    assert report == match("go/3x4", player, RANDOM, 4, **settings)
    searcher = Searcher(games.make("go/5"), mixed.backend, mixed.play.search)
    # The points of go/3x4 in the 5 x 5 frame; its pass, 12, becomes 25.
    outer = [0, 1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13, 25]
    for played in report.games:
        for ply in range(played.num_opening_plies, len(played.moves)):
            if (ply % 2 == 0) == played.a_moves_first:
                request = _core.SearchRequest()
                request.num_simulations = 64
                moves = [outer[move] for move in played.moves[:ply]]
                found = searcher.run(moves, request, "go/3x4")
                assert outer[played.moves[ply]] == found.best_action


def test_games_that_a_network_plays(hash_player):
    mixed = dataclasses.replace(hash_player("go/5"), mixed_sizes=True)
    assert mixed.playing("go/4").frame == "go/5"
    assert mixed.playing("go/4").playing("go/2x5").frame == "go/5"
    # On a board of the network's size the core searches without an outside searcher.
    for name in ("go/5/simple", "go/5/komi=0.5"):
        assert not mixed.playing("go/4").playing(name).is_outside
        assert not hash_player("go/5").playing(name).is_outside
    for name in ("go/6", "gomoku/5"):
        with refused(UsageError, name, "go/5"):
            mixed.playing(name)


def test_threads_and_games_at_once_change_nothing(hash_player):
    settings = {"num_simulations": 16, "seed": 5}
    for a, b in ((MCTS, RANDOM), (hash_player("tictactoe"), MCTS)):
        one = match("tictactoe", a, b, 11, **settings)
        for how in (*({"num_threads": n} for n in (2, 3, 16)), {"num_slots": 3}):
            assert match("tictactoe", a, b, 11, **how, **settings) == one


def test_a_batch_has_no_more_games_than_there_are(hash_player, monkeypatch):
    made, make = [], _core.make_match

    def noted(*words, num_slots, **others):
        made.append(num_slots)
        return make(*words, num_slots=num_slots, **others)

    monkeypatch.setattr(_core, "make_match", noted)
    for num_slots in (1, 3, 256, None):
        match("tictactoe", MCTS, MCTS, 20, num_slots=num_slots)
    assert made == [1, 3, 20, 16]


def test_two_networks_meet_each_with_its_own_backend(hash_player):
    report = match("connect4", hash_player("connect4"), hash_player("connect4"), 6)
    assert report.tally.num_games == 6
    # The same player has both sides, so the two games of a pair are equal.
    for even, odd in zip(report.games[::2], report.games[1::2], strict=True):
        assert even.moves == odd.moves
        assert even.score_a == 1.0 - odd.score_a


class BrokenBackend:
    signature = PLAIN

    def bind(self, inputs, outputs, state=None):
        return self

    def run(self, num_rows):
        raise RuntimeError("the device is gone")


def test_a_failing_backend_ends_the_match(hash_player):
    broken = hash_player("connect4", backend=BrokenBackend())
    with refused(RuntimeError, "the device is gone"):
        match("connect4", broken, MctsPlayer(100_000), 200, num_threads=2)


def decided_after(num_games, seen):
    """Returns an ``until`` that ends a match with its ``num_games``-th game."""

    def until(game):
        assert game.index == len(seen)
        seen.append(game)
        return len(seen) == num_games

    return until


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_a_match_is_decided_in_order_of_index(num_threads):
    """Games have very different lengths, so threads finish them out of order."""
    whole = match("connect4", MctsPlayer(300), RANDOM, 12, seed=5)
    seen, kept = [], []
    how = {"keep": kept.extend, "until": decided_after(12, seen), "seed": 5}
    threads = {"num_threads": num_threads}
    report = match("connect4", MctsPlayer(300), RANDOM, 1_000_000, **how, **threads)
    assert report == whole
    assert tuple(seen) == whole.games
    # Other games were finished too; each is stored once.
    indices = [game.index for game in kept]
    assert set(indices) >= set(range(12))
    assert len(set(indices)) == len(indices)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_games_that_were_played_are_not_played_again(num_threads):
    settings = {"seed": 5, "num_threads": num_threads}
    whole = match("tictactoe", MCTS, RANDOM, 11, **settings)
    for indices in ((), (0, 1, 2), (10,), (1, 4, 9), range(11)):
        kept, told = [], []
        how = {"keep": kept.extend, "watch": told.append, **settings}
        played = [whole.games[index] for index in reversed(indices)]
        assert match("tictactoe", MCTS, RANDOM, 11, played=played, **how) == whole
        assert all(tally.num_games >= len(indices) for tally in told)
        rest = [game for game in whole.games if game.index not in indices]
        assert sorted(kept, key=lambda game: game.index) == rest


def test_games_that_were_played_may_decide_alone(hash_player):
    broken = hash_player("tictactoe", backend=BrokenBackend())
    played = match("tictactoe", MCTS, RANDOM, 8).games
    for num_games in (8, 100):
        how = {"played": played, "until": decided_after(6, [])}
        assert match("tictactoe", broken, broken, num_games, **how).games == played[:6]


def test_threads_share_a_short_match(hash_player):
    """If one thread took all games, the barrier would wait for the others."""
    everyone = threading.Barrier(4)

    class Meeting:
        signature = PLAIN

        def bind(self, *arrays):
            return MeetingRunner(hash_player("connect4").backend.bind(*arrays))

    class MeetingRunner:
        def __init__(self, runner):
            self.runner = runner
            self.has_met = False

        def run(self, num_rows):
            if not self.has_met:
                everyone.wait(900)
                self.has_met = True
            self.runner.run(num_rows)

    meeting = hash_player("connect4", backend=Meeting())
    report = match("connect4", meeting, MCTS, 8, num_simulations=4, num_threads=4)
    assert report.tally.num_games == 8


def stops_at(number):
    """Returns a ``stop`` that is true at call ``number``, and its callers."""
    callers = []

    def stop():
        callers.append(threading.get_ident())
        return len(callers) == number

    return stop, callers


def test_a_match_is_stopped_while_a_move_is_thought_about():
    """The calling thread stops the match; the others may be deep in a search."""
    stop, callers = stops_at(3)
    slow = MctsPlayer(100_000)
    with pytest.raises(MatchStopped):
        match("connect4", slow, RANDOM, 64, watch=stopped_by(stop))
    assert callers == [threading.get_ident()] * 3


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_a_failing_watcher_or_an_interrupt_ends_the_match(error):
    def watch(tally):
        if error is ValueError:
            raise ValueError
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(error):
        match("connect4", MCTS, RANDOM, 1_000_000, watch=watch)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("num_games", 0),
        ("num_games", 10**12),
        ("num_simulations", 0),
        ("num_simulations", 10**12),
        ("seed", -1),
        ("seed", 2**64),
        ("num_threads", 0),
        ("opening_plies", -1),
        ("opening_plies", 9),
        ("num_slots", 0),
    ],
)
def test_numbers_out_of_range(setting, value):
    settings = {"num_games": 2, setting: value}
    with refused(UsageError, f"{setting} ({value})"):
        match("tictactoe", RANDOM, RANDOM, **settings)


def test_the_report_as_json():
    report = match("tictactoe", MCTS, RANDOM, 9)
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    names = "games wins_a draws score_a elo elo_low elo_high"
    assert set(content) == set(names.split())
    assert content["games"] == 9
    assert content["score_a"] == (content["wins_a"] + content["draws"] / 2) / 9
    assert content["elo_low"] <= content["elo"] <= content["elo_high"]


KEY = {"candidate": 3, "seed": 7}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "eval" / "gate-000003"


@pytest.fixture(scope="module")
def played():
    game = games.make("tictactoe")
    return play_match(game, MctsPlayer(4), RandomPlayer(), num_games=6).games


def keep(folder, *parts, key=KEY):
    """Stores games as one process does, and returns the games found at the start."""
    journal = MatchJournal(folder, key)
    for part in parts:
        journal.keep(part)
    journal.close()
    return journal.played


def test_games_come_back_in_order_from_every_process(folder, played):
    assert keep(folder, played[4:], played[:1]) == ()
    assert keep(folder, played[2:3]) == (played[0], *played[4:])
    assert keep(folder) == (played[0], played[2], *played[4:])
    MatchJournal.remove(folder)
    assert keep(folder) == ()
    MatchJournal.remove(folder.parent / "absent")


def test_games_are_durable_once_they_are_kept(folder, played):
    journal = MatchJournal(folder, KEY)
    journal.keep(played[:2])
    assert len(read_journal(folder / "1.journal").frames) == 2
    journal.close()


def test_another_match_begins_anew(folder, played):
    keep(folder, played)
    assert keep(folder, played[:1], key={**KEY, "seed": 8}) == ()
    assert keep(folder, key={**KEY, "seed": 8}) == played[:1]


def test_what_a_kill_cut_short_is_played_again(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    path.write_bytes(path.read_bytes()[:-3])
    journal = MatchJournal(folder, KEY)
    assert journal.played == played[:-1]
    assert journal.gaps == []
    journal.close()


def test_damage_is_told_and_loses_one_game(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    data = bytearray(path.read_bytes())
    frame = data.index(b'"index": 2')
    data[frame] ^= 1
    path.write_bytes(data)
    journal = MatchJournal(folder, KEY)
    assert journal.played == (*played[:2], *played[3:])
    (gap,) = journal.gaps
    assert "1.journal) is damaged at byte" in str(gap)
    journal.close()


def test_a_file_that_is_no_journal_is_refused_in_one_line(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    path.write_bytes(b"x" * 100)
    with refused(RunError, str(path)):
        MatchJournal(folder, KEY)


def test_a_newer_journal_is_refused(folder, played):
    keep(folder, played)
    path = folder / "1.journal"
    data = bytearray(path.read_bytes())
    data[8] += 1
    path.write_bytes(data)
    with refused(UsageError, "schema"):
        MatchJournal(folder, KEY)


@pytest.mark.parametrize(
    "frame", [b"\xff", b"{", b"[" * 100_000, b"7", b"[]", b"{}", b'{"index": "0"}']
)
def test_what_is_no_game_is_one_line(folder, frame):
    folder.mkdir(parents=True)
    segment = OpenSegment(folder / "1.journal", KEY)
    segment.append(frame)
    segment.close()
    with refused(TengenError, "1.journal") as caught:
        MatchJournal(folder, KEY)
    assert "\n" not in str(caught.value)


def play(task):
    game = games.make(task)
    return play_match(game, RandomPlayer(), RandomPlayer(), num_games=3).games


def test_games_of_go_are_sgf(tmp_path):
    played = play("go/4")
    write_games(tmp_path, "go/4", "000003", "000002", played)
    *paths, _ = sorted(tmp_path.iterdir())
    assert [path.name for path in paths] == ["000000.sgf", "000001.sgf", "000002.sgf"]
    records = [read_sgf(path.read_bytes()) for path in paths]
    assert [tuple(record.moves) for record in records] == [g.moves for g in played]
    assert [record.black for record in records] == ["000003", "000002", "000003"]
    assert [record.white for record in records] == ["000002", "000003", "000002"]


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "go/4"])
def test_games_are_lines(tmp_path, task):
    played = play(task)
    write_games(tmp_path, task, "000003", "000002", played)
    lines = (tmp_path / "games.jsonl").read_text().splitlines()
    assert tuple(from_dict(PlayedGame, json.loads(line)) for line in lines) == played
