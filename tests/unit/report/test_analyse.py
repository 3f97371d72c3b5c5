"""``tengen analyse``: the losses of games, by the rules alone where these decide."""

import functools
import json

import pytest

from tengen import games
from tengen.cli import main
from tengen.evaluation.episodes.report import mean_interval
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
    how = {"index": 7, "players": ("X", "O"), "num_simulations": 50}
    reviews = review_game(judge, OVERLOOKED, **how)
    assert [(each.game, each.ply) for each in reviews] == [(7, i) for i in range(6)]
    assert [each.action for each in reviews] == list(OVERLOOKED)
    assert [each.player for each in reviews] == ["X", "O"] * 3
    assert reviews[4] == MoveReview("", 7, "X", 4, 8, 2, 1.0, 0.0)
    assert (reviews[4].loss, reviews[4].is_decided) == (1.0, False)
    assert (reviews[5].win_rate, reviews[5].loss) == (1.0, 0.0)
    assert reviews[5].is_decided


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
    def review(ply, before, after, player="A", *, is_best=False):
        return MoveReview("", 0, player, ply, 0, int(not is_best), before, after)

    reviews = [
        review(0, 0.5, 0.3, is_best=True),
        review(3, 0.5, 0.1),
        review(3, 0.5, 0.6),
        review(3, 0.6, 0.4),
        review(5, 0.97, 0.96),  # decided before and after
        review(5, 0.97, 0.47),
        review(6, 0.04, 0.01),  # decided
        review(6, 0.04, 0.6),
        review(7, 0.9, 0.8, "B"),
    ]
    found = phases(reviews, 4)
    assert [
        (each.player, each.first_ply, each.num_moves, each.num_decided)
        for each in found
    ] == [("A", 0, 4, 0), ("A", 4, 2, 2), ("B", 0, 0, 0), ("B", 4, 1, 0)]
    assert found[0].mean_loss == pytest.approx(0.15)
    assert (found[0].mistakes, found[0].blunders) == (0.5, 0.25)
    assert (found[1].mean_loss, found[1].blunders) == (0.25, 0.5)
    assert found[2].mean_loss == 0
    assert found[3].mean_loss == pytest.approx(0.1)
    assert phases([], 4) == []


def test_the_interval_of_a_mean_loss_is_that_of_games():
    """Moves of equal games add nothing; games of equal length are their mean losses."""

    def reviews(source, game, losses):
        return [
            MoveReview(source, game, "A", ply, 0, 1, 0.5, 0.5 - loss)
            for ply, loss in enumerate(losses)
        ]

    one = reviews("a", 0, [0.1, 0.3])
    games = [*one, *reviews("b", 0, [0.0, 0.1]), *reviews("b", 1, [0.2, 0.2])]
    (phase,) = phases(games, 12)
    assert phase.mean_loss == pytest.approx(0.15)
    # A loss is not negative.
    _, high = mean_interval([0.2, 0.05, 0.2])
    assert phase.mean_loss_interval == pytest.approx((0.0, high))
    # Copies of each move in its game are no new games.
    assert phases([*games, *games], 12)[0].mean_loss_interval == pytest.approx(
        phase.mean_loss_interval
    )
    # Equal ratios of games of different length have no variance.
    equal = [*reviews("a", 0, [0.1, 0.3]), *reviews("a", 1, [0.2])]
    assert phases(equal, 12)[0].mean_loss_interval == pytest.approx((0.2, 0.2))
    assert phases(one, 12)[0].mean_loss_interval is None


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
    assert report["source"] == "self-play, generation 2"
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
    who = "the model"
    assert lines[-1] == f"game 0, move 5, {who}: c1 lost 100% of 100%, c3 was best"


def test_a_generation_is_named_by_its_number(run, capsys):
    code, report, _ = told(capsys, run.path, "--source", 1, "--simulations", 2)
    assert (code, report["source"]) == (0, "self-play, generation 1")


def test_games_of_several_parts_of_a_generation_keep_their_names(run, capsys):
    part = run.experience / "selfplay-0" / "1" / "000002.journal"
    other = part.parents[1] / "2" / part.name
    other.parent.mkdir()
    other.write_bytes(part.read_bytes())
    words = [run.path, "--simulations", 2, "--plies", 20, "--worst", 99]
    code, report, _ = told(capsys, *words)
    assert (code, report["num_games"]) == (0, 6)
    names = {(each["source"], each["game"]) for each in report["worst"]}
    assert len(names) > 3
    assert {source for source, _ in names} == {
        "selfplay-0.1.000002",
        "selfplay-0.2.000002",
    }
    assert report["phases"][0]["mean_loss_interval"] is not None
    assert main(["analyse", *map(str, words)]) == 0
    assert "of selfplay-0.2.000002, move " in capsys.readouterr().out


def test_games_are_drawn_from_all(run, capsys):
    """With one of two games, some seeds choose the first and some the second."""
    words = [run.path, "--source", "final-1", "--games", 1, "--simulations", 2]
    chosen = set()
    for seed in range(8):
        code, report, _ = told(capsys, *words, "--worst", 9, "--seed", seed)
        assert (code, report["num_games"]) == (0, 1)
        chosen |= {each["game"] for each in report["worst"]}
    assert chosen == {0, 1}


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
    code, report, err = told(capsys, *words)
    assert (code, err, report["num_games"]) == (0, "", 3)
    players = {each["player"] for each in report["phases"]}
    assert players == {str(run.path), "random"}
    lines = (folder / "games.jsonl").read_text().splitlines()
    match = {"task": task, "a": str(run.path), "b": "random"}
    assert all(json.loads(line).items() >= match.items() for line in lines)
    num_moves = sum(len(json.loads(line)["moves"]) - 2 for line in lines)
    counted = sum(each["num_moves"] + each["num_decided"] for each in report["phases"])
    assert counted == num_moves  # without the two plies of the opening
    # A judge of another game, and no judge.
    code, _, err = told(capsys, folder, "--judge", "bundled:connect4")
    assert (code, err.count("\n"), task in err) == (2, 1, True)
    code, _, err = told(capsys, folder)
    assert (code, err.count("\n"), "--judge" in err) == (2, 1, True)


def test_a_truncated_line_is_left_out_and_an_illegal_move_refused(run, capsys):
    path = run.games / "final-2.jsonl"
    whole = path.read_bytes()
    words = [run.path, "--source", "final-2", "--simulations", 2]
    for data in (whole + whole[:-9], whole[:-1]):  # the last without its newline
        path.write_bytes(data)
        assert told(capsys, *words)[1]["num_games"] == 1
    for moves in ("[4, 4]", "[99999999999999999999999]", "[-1]"):
        path.write_bytes(whole + whole.replace(b"[0, 3, 1, 4, 8, 5]", moves.encode()))
        code, report, err = told(capsys, *words)
        assert (code, report, err.count("\n")) == (2, None, 1)
        assert f"game 0 of {run.path}: move (" in err


def test_names_from_files_cannot_change_the_terminal(tmp_path, publish_run, capsys):
    run = publish_run(tmp_path / "run", "tictactoe")
    folder = tmp_path / "games"
    folder.mkdir()
    line = {"task": "tictactoe", "a": "\x1b[2J\nA", "b": "B" * 300, "index": 0}
    line |= {"a_moves_first": True, "moves": OVERLOOKED, "num_opening_plies": 0}
    (folder / "games.jsonl").write_text(json.dumps({**line, "score_a": 0.0}) + "\n")
    words = ["analyse", str(folder), "--judge", str(run.path), "--simulations", "20"]
    assert main(words) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines()[1:])) < 160


@pytest.mark.parametrize("task", [5, None, "own_games:ConnectFour"])
def test_a_run_of_an_unknown_task_is_refused(run, capsys, task):
    run.write_run({**run.read_run(), "config": {"task": task}})
    code, _, err = told(capsys, run.path, "--judge", "bundled:connect4")
    assert (code, err.count("\n")) == (2, 1)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--source", "final-3"], 'source (final-3) has no games; did you mean "final'),
        (["--games", "0"], "games (0)"),
        (["--plies", "0"], "plies (0)"),
        (["--judge", "bundled:gomoku/9"], "gomoku/9"),
        (["--source", "7"], "source (7) has no games"),
        (["--source", "1" * 5000], "has no games"),
    ],
)
def test_bad_words_are_one_line(run, capsys, words, message):
    code, report, err = told(capsys, run.path, *words)
    assert (code, report) == (2, None)
    assert message in err
    assert err.count("\n") == 1


def test_what_is_no_run_is_refused(tmp_path, capsys):
    for path in (tmp_path / "none", tmp_path):
        code, _, err = told(capsys, path, "--judge", "bundled:gomoku/9")
        assert (code, err.count("\n")) == (2, 1)
        assert f"path ({path})" in err
