"""``tengen analyse``: the losses of games, by the rules alone where these decide."""

import functools
import json

import pytest

from tengen import games
from tengen.cli import main
from tengen.evaluation.played_game import PlayedGame, games_jsonl
from tengen.play import Player
from tengen.report.analyse import MoveReview, phases, review_game
from tests.unit.report.conftest import DRAWN, LOST, WON
from tests.unit.serve.made_runs import add_experience, add_matches, recorded

# X overlooks the third cell of the first row, and O wins in the second.
OVERLOOKED = (0, 3, 1, 4, 8, 5)


@pytest.fixture
def judge(hash_player):
    with Player(hash_player("tictactoe")) as player:
        yield player


def test_a_move_that_gives_a_win_away_loses_all(judge):
    reviews = review_game(judge, OVERLOOKED, index=7, num_simulations=50)
    assert [(each.game, each.ply) for each in reviews] == [(7, i) for i in range(6)]
    assert [each.action for each in reviews] == list(OVERLOOKED)
    assert reviews[4] == MoveReview(7, 4, 8, 2, 1.0, 1.0)
    assert (reviews[5].win_rate, reviews[5].loss) == (1.0, 0.0)


@pytest.mark.parametrize("moves", [WON, DRAWN, LOST])
def test_with_enough_simulations_the_losses_are_those_of_the_rules(judge, moves):
    """A deep search of tic-tac-toe is exact: values are -1, 0 or 1."""
    reviews = review_game(judge, moves, num_simulations=60_000)
    values = [value_to_play(moves[:ply]) for ply in range(len(moves) + 1)]
    for ply, review in enumerate(reviews):
        loss = (values[ply] + values[ply + 1]) / 2
        assert review.win_rate == pytest.approx((1 + values[ply]) / 2, abs=0.02)
        assert review.loss == pytest.approx(loss, abs=0.02)


@functools.cache
def value_to_play(moves):
    """Returns the exact value of a position of tic-tac-toe for the side to move."""
    state = games.make("tictactoe").new_state()
    for move in moves:
        state.apply(move)
    if state.is_terminal():
        return state.returns()[state.to_play]
    return max(-value_to_play((*moves, move)) for move in state.legal_actions())


def test_the_opening_is_not_reviewed(judge):
    reviews = review_game(judge, OVERLOOKED, num_opening_plies=4, num_simulations=8)
    assert [each.ply for each in reviews] == [4, 5]


def test_phases_count_what_is_undecided():
    def review(ply, win_rate, loss):
        return MoveReview(0, ply, 0, 0, win_rate, loss)

    found = phases(
        [
            review(0, 0.5, 0.0),
            review(3, 0.5, 0.4),
            review(3, 0.6, 0.2),
            review(5, 0.97, 0.01),  # decided before and after
            review(5, 0.97, 0.5),
            review(6, 0.04, 0.04),  # decided
        ],
        4,
    )
    assert [(each.first_ply, each.num_moves, each.num_decided) for each in found] == [
        (0, 3, 0),
        (4, 1, 2),
    ]
    assert found[0].mean_loss == pytest.approx(0.2)
    assert found[0].mistakes == pytest.approx(2 / 3)
    assert found[0].blunders == pytest.approx(1 / 3)
    assert (found[1].mean_loss, found[1].blunders) == (0.5, 1.0)
    assert phases([], 4) == []


# The command.


def told(capsys, *words):
    """Runs the command; returns its exit code, JSON report and errors."""
    code = main(["analyse", *map(str, words), "--threads", "1", "--json"])
    out, err = capsys.readouterr()
    return code, json.loads(out) if out else None, err


@pytest.fixture
def run(tmp_path, publish_run):
    """A run of tic-tac-toe with games of self-play and of matches."""
    run = publish_run(tmp_path / "run", "tictactoe")
    run.write_run({**run.read_run(), "config": {"task": "tictactoe"}})
    add_experience(run, "tictactoe")
    add_matches(run, "tictactoe")
    played = PlayedGame(0, True, OVERLOOKED, 2, 0.0)
    (run.games / "final-2.jsonl").write_bytes(games_jsonl([played]))
    return run


def test_the_newest_games_of_self_play_are_reviewed(run, capsys):
    code, report, err = told(capsys, run.path, "--simulations", 4, "--plies", 3)
    assert (code, err) == (0, "")
    assert report["source"] == "self-play, generation 2, in progress"
    assert (report["num_games"], report["num_simulations"]) == (3, 4)
    num_moves = sum(len(recorded("tictactoe", i).plies) for i in range(3))
    counted = sum(each["num_moves"] + each["num_decided"] for each in report["phases"])
    assert counted == num_moves
    assert [each["first_ply"] for each in report["phases"]] == [0, 3, 6]


def test_a_match_is_named_and_the_worst_moves_are_shown(run, capsys):
    words = ["analyse", str(run.path), "--source", "final-2", "--worst", "1"]
    assert main([*words, "--simulations", "20"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == (
        f"closing match 2: 1 of 1 games, judged by {run.path} with 20 simulations"
    )
    # Row 3 is the bottom one: cell 2 is c3, cell 8 is c1.
    assert lines[-1] == "game 0, move 5: c1 lost 100% of 100%, c3 was best"


@pytest.mark.parametrize("task", ["gomoku/5", "go/3/komi=2.5"])
def test_the_games_of_a_match_are_kept_and_reviewed(
    tmp_path, publish_run, capsys, task
):
    run = publish_run(tmp_path / "run", task)
    folder = tmp_path / "games"
    words = ["match", str(run.path), "random", "--games", "3", "--simulations", "2"]
    assert main([*words, "--threads", "1", "--keep", str(folder)]) == 0
    capsys.readouterr()
    words = [folder, "--judge", run.path, "--simulations", 2]
    code, report, err = told(capsys, *words, "--games", 2)
    assert (code, err, report["num_games"]) == (0, "", 2)
    assert sum(each["num_moves"] for each in report["phases"]) > 0
    assert told(capsys, folder)[0] == 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--source", "final-3"], 'source (final-3) has no games; did you mean "final'),
        (["--games", "0"], "games (0)"),
        (["--plies", "0"], "plies (0)"),
        (["--judge", "bundled:gomoku/9"], "gomoku/9"),
    ],
)
def test_bad_words_are_one_line(run, capsys, words, message):
    code, report, err = told(capsys, run.path, *words)
    assert (code, report) == (2, None)
    assert message in err
    assert err.count("\n") == 1


def test_what_is_no_run_is_refused(tmp_path, capsys):
    assert told(capsys, tmp_path / "none")[0] == 2
    assert told(capsys, tmp_path, "--judge", "bundled:gomoku/9")[0] == 2
