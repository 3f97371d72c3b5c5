import dataclasses
import json
import os
import signal
import threading

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.evaluation import (
    MatchStopped,
    MctsPlayer,
    RandomPlayer,
    Tally,
    play_match,
    stopped_by,
)
from tengen.evaluation.searcher import Searcher
from tests.unit.conftest import PLAIN

MCTS, RANDOM = MctsPlayer(20), RandomPlayer()


def replayed_score(task, played):
    """The result for A by playing the moves again, without the core's match."""
    state = games.make(task).new_state()
    for move in played.moves:
        assert move in state.legal_actions()
        state.apply(move)
    assert state.is_terminal()
    return 0.5 + 0.5 * state.returns()[0 if played.a_moves_first else 1]


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/7"])
def test_every_game_is_whole_and_scored_right(task):
    report = play_match(games.make(task), MCTS, RANDOM, num_games=12, seed=3)
    assert [game.index for game in report.games] == list(range(12))
    scores = [replayed_score(task, game) for game in report.games]
    assert scores == [game.score_a for game in report.games]
    assert report.tally == Tally(
        scores.count(1.0), scores.count(0.5), scores.count(0.0)
    )


def test_colours_alternate_on_the_same_opening():
    report = play_match(
        games.make("connect4"), RANDOM, RANDOM, num_games=10, opening_plies=4
    )
    openings = set()
    for even, odd in zip(report.games[::2], report.games[1::2], strict=True):
        assert even.a_moves_first
        assert not odd.a_moves_first
        assert even.num_opening_plies == odd.num_opening_plies == 4
        assert even.moves[:4] == odd.moves[:4]
        openings.add(even.moves[:4])
    assert len(openings) > 1


@pytest.mark.parametrize("num_threads", [1, 2])
def test_players_with_several_threads_in_a_tree(hash_player, num_threads):
    tree = dataclasses.replace(hash_player("tictactoe"), tree_threads=2)
    for a, b in ((tree, MCTS), (hash_player("tictactoe"), tree), (tree, tree)):
        report = play_match(
            games.make("tictactoe"),
            a,
            b,
            num_games=7,
            num_simulations=100,
            num_threads=num_threads,
        )
        assert [game.index for game in report.games] == list(range(7))
        scores = [replayed_score("tictactoe", game) for game in report.games]
        assert scores == [game.score_a for game in report.games]
        for even, odd in zip(report.games[::2], report.games[1::2], strict=False):
            assert even.moves[:2] == odd.moves[:2]


@pytest.mark.parametrize("tree_threads", [1, 2])
def test_a_network_for_several_boards_on_a_smaller_one(hash_player, tree_threads):
    mixed = dataclasses.replace(hash_player("go/5"), mixed_sizes=True)
    player = dataclasses.replace(mixed.playing("go/3x4"), tree_threads=tree_threads)
    game, settings = games.make("go/3x4"), {"num_games": 4, "num_simulations": 64}
    report = play_match(game, player, RANDOM, num_threads=2, **settings)
    scores = [replayed_score("go/3x4", played) for played in report.games]
    assert scores == [played.score_a for played in report.games]
    if tree_threads > 1:
        return
    assert report == play_match(game, player, RANDOM, num_threads=1, **settings)
    searcher = Searcher(games.make("go/5"), mixed.backend, mixed.play.search)
    # Rows of the small board have four points of five; the pass is its 12 and 25.
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
    # On the whole board the core searches by itself.
    for name in ("go/5/simple", "go/5/komi=0.5"):
        assert not mixed.playing("go/4").playing(name).is_outside
        assert not hash_player("go/5").playing(name).is_outside
    for name in ("go/6", "gomoku/5"):
        with pytest.raises(UsageError, match=rf"{name}.* that fits go/5;"):
            mixed.playing(name)


def test_an_odd_number_gives_a_the_first_move_once_more():
    report = play_match(games.make("tictactoe"), RANDOM, RANDOM, num_games=5)
    assert [game.a_moves_first for game in report.games] == [1, 0, 1, 0, 1]


def test_games_at_once_change_nothing(hash_player, monkeypatch):
    game = games.make("tictactoe")
    settings = {"num_games": 20, "num_simulations": 16, "seed": 5}
    made, make = [], _core.make_match

    def noted(*words, num_slots, **others):
        made.append(num_slots)
        return make(*words, num_slots=num_slots, **others)

    monkeypatch.setattr(_core, "make_match", noted)
    reports = [
        play_match(game, hash_player("tictactoe"), MCTS, num_slots=slots, **settings)
        for slots in (1, 3, 256, None)
    ]
    assert all(report == reports[0] for report in reports)
    # No more than there are games; 16 where nothing is said.
    assert made == [1, 3, 20, 16]
    with pytest.raises(UsageError, match=r"num_slots \(0\)"):
        play_match(game, MCTS, MCTS, num_slots=0, **settings)


@pytest.mark.parametrize("num_threads", [2, 3, 16])
def test_threads_change_nothing(num_threads, hash_player):
    game = games.make("tictactoe")
    for a, b in ((MCTS, RANDOM), (hash_player("tictactoe"), MCTS)):
        one = play_match(game, a, b, num_games=11, num_simulations=16, seed=5)
        many = play_match(
            game,
            a,
            b,
            num_games=11,
            num_simulations=16,
            seed=5,
            num_threads=num_threads,
        )
        assert many == one


def test_a_seed_gives_other_games():
    game = games.make("connect4")
    first, second = (
        play_match(game, RANDOM, RANDOM, num_games=4, seed=seed).games
        for seed in (1, 2)
    )
    assert first != second


def test_two_networks_meet_each_with_its_own_backend(hash_player):
    game = games.make("connect4")
    report = play_match(
        game, hash_player("connect4"), hash_player("connect4"), num_games=6
    )
    assert report.tally.num_games == 6
    # The same player on both sides of one opening: what one colour wins, it wins twice.
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
    with pytest.raises(RuntimeError, match="the device is gone"):
        play_match(
            games.make("connect4"),
            broken,
            MctsPlayer(100_000),
            num_games=200,
            num_threads=2,
        )


def decided_after(num_games, seen):
    """An ``until`` that ends a match with its ``num_games``-th game."""

    def until(game):
        assert game.index == len(seen)
        seen.append(game)
        return len(seen) == num_games

    return until


@pytest.mark.parametrize("num_threads", [1, 2, 5])
def test_a_match_is_decided_in_order_of_index(num_threads):
    """Of games of very different lengths, whatever the threads."""
    game, a, b = games.make("connect4"), MctsPlayer(300), RANDOM
    whole = play_match(game, a, b, num_games=12, seed=5)
    seen, kept = [], []
    report = play_match(
        game,
        a,
        b,
        num_games=1_000_000,
        seed=5,
        num_threads=num_threads,
        keep=kept.extend,
        until=decided_after(12, seen),
    )
    assert report == whole
    assert tuple(seen) == whole.games
    # Others were finished too; each is kept once.
    indices = [game.index for game in kept]
    assert set(indices) >= set(range(12))
    assert len(set(indices)) == len(indices)


@pytest.mark.parametrize("num_threads", [1, 3])
def test_games_that_were_played_are_not_played_again(num_threads):
    settings = {"num_games": 11, "seed": 5, "num_threads": num_threads}
    whole = play_match(games.make("tictactoe"), MCTS, RANDOM, **settings)
    for indices in ((), (0, 1, 2), (10,), (1, 4, 9), range(11)):
        kept, told = [], []
        played = [whole.games[index] for index in reversed(indices)]
        report = play_match(
            games.make("tictactoe"),
            MCTS,
            RANDOM,
            played=played,
            keep=kept.extend,
            watch=told.append,
            **settings,
        )
        assert report == whole
        assert all(tally.num_games >= len(indices) for tally in told)
        rest = [game for game in whole.games if game.index not in indices]
        assert sorted(kept, key=lambda game: game.index) == rest


def test_games_that_were_played_may_decide_alone(hash_player):
    broken = hash_player("tictactoe", backend=BrokenBackend())
    played = play_match(games.make("tictactoe"), MCTS, RANDOM, num_games=8).games
    for num_games in (8, 100):
        seen = []
        report = play_match(
            games.make("tictactoe"),
            broken,
            broken,
            num_games=num_games,
            played=played,
            until=decided_after(6, seen),
        )
        assert report.games == played[:6]


def test_threads_share_a_short_match(hash_player):
    """Were the first to take all games, the others would never ask for an answer."""
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
    game = games.make("connect4")
    report = play_match(
        game, meeting, MCTS, num_games=8, num_simulations=4, num_threads=4
    )
    assert report.tally.num_games == 8


def test_a_watcher_is_told_while_a_move_is_thought_about():
    """From the calling thread, for the playing ones may be deep in a search."""
    told = []

    def watch(tally):
        told.append(threading.get_ident())
        if len(told) == 3:
            raise MatchStopped

    with pytest.raises(MatchStopped):
        play_match(
            games.make("connect4"),
            MctsPlayer(100_000),
            RANDOM,
            num_games=64,
            watch=watch,
        )
    assert told == [threading.get_ident()] * 3


def test_a_match_that_is_stopped_counts_for_nothing():
    asked = []

    def stop():
        asked.append(True)
        return len(asked) == 2

    with pytest.raises(MatchStopped):
        play_match(
            games.make("connect4"),
            MCTS,
            RANDOM,
            num_games=1_000_000,
            watch=stopped_by(stop),
        )
    assert len(asked) == 2


def test_a_failing_watcher_ends_the_match():
    def watch(tally):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        play_match(
            games.make("connect4"), MCTS, RANDOM, num_games=1_000_000, watch=watch
        )


def test_an_interrupt_ends_the_match():
    def watch(tally):
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        play_match(
            games.make("connect4"), MCTS, RANDOM, num_games=1_000_000, watch=watch
        )


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
    ],
)
def test_numbers_out_of_range(setting, value):
    settings = {"num_games": 2, setting: value}
    with pytest.raises(UsageError, match=rf"{setting} \({value}\) must"):
        play_match(games.make("tictactoe"), RANDOM, RANDOM, **settings)


def test_the_report_as_json():
    report = play_match(games.make("tictactoe"), MCTS, RANDOM, num_games=9)
    content = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert set(content) == {
        "games",
        "wins_a",
        "draws",
        "score_a",
        "elo",
        "elo_low",
        "elo_high",
    }
    assert content["games"] == 9
    assert content["score_a"] == (content["wins_a"] + content["draws"] / 2) / 9
    assert content["elo_low"] <= content["elo"] <= content["elo_high"]
