"""Books of balanced openings: how they are found, and where they are used."""

import json

import pytest

from tengen import games
from tengen.cli import main
from tengen.errors import RunError, UsageError
from tengen.evaluation import play_match
from tengen.evaluation.players import RandomPlayer
from tengen.games import read_book
from tengen.play.book import _key, _policy, find_openings
from tengen.recipes.run import train_task
from tengen.roles import read_config
from tengen.roles.inputs import run_book
from tengen.run import RunDirectory
from tests.refusals import refused

GAME = games.make("connect4")


def images(moves):
    state = GAME.new_state()
    for action in moves:
        state.apply(action)
    return {state.observation(s).tobytes() for s in range(GAME.num_symmetries)}


def find(player, **changes):
    asked = {"num_openings": 8, "num_plies": 3, "num_simulations": 40, "within": 0.2}
    return find_openings(player, **{**asked, **changes})


def test_openings_are_balanced_and_no_two_are_the_same_position(make_player):
    player = make_player("connect4")
    found = find(player)
    assert len(found) == 8
    for one in found:
        assert len(one.moves) == 3
        assert abs(one.value_to_play) <= 0.2
        judged = make_player("connect4").analyse(one.moves, 40)
        assert judged.value_to_play == one.value_to_play
    keys = [min(images(one.moves)) for one in found]
    assert len(set(keys)) == len(keys)
    assert find(make_player("connect4")) == found
    assert find(make_player("connect4"), seed=1) != found
    # Unbalanced openings exist and were left out.
    wider = find(make_player("connect4"), within=1.0, num_openings=30)
    assert any(abs(one.value_to_play) > 0.2 for one in wider)


def test_openings_that_are_not_there_are_told(make_player):
    with refused(RunError, "openings (20)"):
        find(make_player("connect4"), num_plies=1, num_openings=20)
    # Every line of this length has ended.
    with refused(RunError, "openings (2)"):
        find(make_player("tictactoe"), num_plies=9, num_openings=2)


@pytest.mark.parametrize("task", ["gomoku/9", "go/9", "connect4"])
def test_two_orders_of_moves_are_one_position(task):
    game = games.make(task)
    first, same = (
        ((0, 3, 2), (2, 3, 0)) if task == "connect4" else ((0, 60, 20), (20, 60, 0))
    )
    assert _key(game, first) == _key(game, same)
    assert _key(game, first) != _key(game, (first[0], first[2], first[1]))


def test_a_low_temperature_takes_the_best_moves(make_player):
    player = make_player("connect4")
    _, shares = _policy(player, (), 40, 0.001, 1)
    assert shares.max() == pytest.approx(1.0, abs=0.5)
    assert shares.sum() == pytest.approx(1.0)


@pytest.fixture(scope="module")
def book_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("book") / "book.json"
    openings = [{"moves": [action, 4 - action % 2]} for action in range(7)]
    content = {"schema": 1, "task": "connect4", "openings": openings}
    path.write_text(json.dumps(content))
    return path


def test_a_match_plays_each_opening_by_both_sides(book_file):
    book = read_book(book_file, GAME)
    random = RandomPlayer()

    def openings(num_games, seed, opening_plies=0):
        report = play_match(
            GAME,
            random,
            random,
            num_games=num_games,
            seed=seed,
            num_threads=2,
            opening_plies=opening_plies,
            book=book,
        )
        return [game.moves[: game.num_opening_plies] for game in report.games]

    played = openings(14, 0)
    assert played[::2] == played[1::2]
    assert sorted(played[::2]) == sorted(book.openings)
    assert openings(28, 0)[14:] == played
    # Random plies follow the opening.
    longer = openings(14, 0, opening_plies=2)
    assert [moves[:2] for moves in longer] == played
    assert {len(moves) for moves in longer} == {4}
    assert {tuple(openings(14, seed)) for seed in range(4)} != {tuple(played)}


@pytest.fixture(scope="module")
def model(publish_run, tmp_path_factory):
    path = tmp_path_factory.mktemp("runs") / "ttt"
    return str(publish_run(path, "tictactoe", exports=False).path)


def test_the_commands_make_a_book_and_play_it(model, tmp_path, capsys):
    absent = tmp_path / "absent" / "book"
    assert main(["book", "nowhere", str(absent)]) == 2
    assert str(absent) in capsys.readouterr().err
    out = tmp_path / "book.json"
    words = ["--openings", "3", "--plies", "2", "--within", "1", "--simulations", "20"]
    assert main(["book", model, str(out), *words]) == 0
    book = read_book(out, games.make("tictactoe"))
    line = capsys.readouterr().out
    assert line == f"{out}: book {book.digest}, 3 openings of 2 plies\n"
    assert main(["match", model, "random", "--games", "2", "--book", str(out)]) == 0
    said = capsys.readouterr().out.splitlines()[-1]
    assert said == f"openings: book {book.digest}, 3 openings"
    for plies, text in (("0", "the empty board"), ("1", "1 random ply")):
        words = ["--games", "2", "--opening-plies", plies, "--json"]
        assert main(["match", model, "random", *words]) == 0
        report = json.loads(capsys.readouterr().out.splitlines()[-1])
        assert report["openings"] == text


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--plies", "9"], "plies (9)"),
        (["--openings", "0"], "openings (0)"),
        (["--within", "nan"], "within (nan)"),
        (["--temperature", "0"], "temperature (0.0)"),
        (["--simulations", "0"], "simulations (0)"),
    ],
)
def test_bad_words_are_refused_before_anything_is_written(
    model, tmp_path, capsys, words, error
):
    out = tmp_path / "book.json"
    assert main(["book", model, str(out), *words]) == 2
    assert error in capsys.readouterr().err
    assert not out.exists()


def train(out, *settings):
    train_task("connect4", out=out, games=0, devices="cpu", settings=settings)


def test_a_run_keeps_a_copy_of_its_book(book_file, tmp_path):
    own = tmp_path / "book.json"
    own.write_bytes(book_file.read_bytes())
    out = tmp_path / "run"
    train(out, f"agent.book={own}", "agent.actor.book_share=0.5")
    own.unlink()
    run = RunDirectory(out)
    book = read_book(book_file, GAME)
    assert read_config(run).agent.book == book.digest
    assert run_book(read_config(run), run) == book
    # The next call finds the book by its digest.
    train(out, "agent.rating.book=true")
    assert run_book(read_config(run), run) == book
    (out / "books" / f"{book.digest}.json").write_text("{}")
    with refused(RunError, book.digest):
        run_book(read_config(run), run)


@pytest.mark.parametrize(
    ("settings", "error"),
    [
        (["agent.actor.book_share=0.5"], "agent.actor.book_share (0.5) needs an open"),
        (["agent.rating.book=true"], "agent.rating.book (True) needs an opening book;"),
        (["agent.gate.kind=sprt", "agent.gate.book=true"], "agent.gate.book (True)"),
        (["agent.book=/absent"], "agent.book (/absent) is not used;"),
        (["agent.book=/absent", "agent.actor.book_share=1"], "cannot be read"),
    ],
)
def test_a_book_that_does_not_fit_makes_no_run(tmp_path, settings, error):
    with refused(UsageError, error):
        train(tmp_path / "run", *settings)
    assert not (tmp_path / "run").exists()
