import io
import json
import types

import numpy as np
import pytest

from tengen import cli, games
from tengen.games.python_game import PythonGame
from tengen.play import Analysis
from tengen.play.command import Session, value_bar


class FirstLegal:
    """Plays the first legal action, sure that it wins."""

    name = "first"

    def __init__(self, task):
        self.game = games.make(task)
        self.asked = []

    def analyse(self, moves, simulations=64, seed=0, threads=1):
        self.asked.append((list(moves), simulations))
        state = self.game.new_state()
        for move in moves:
            state.apply(move)
        rows = tuple(
            types.SimpleNamespace(
                action=action,
                visits=10 - place if place < 3 else 0,
                prior=0.5,
                value_to_play=0.8,
                policy=0.1,
            )
            for place, action in enumerate(state.legal_actions())
        )
        return Analysis(0.8, rows[0].action, simulations, False, rows)


@pytest.fixture
def sit():
    """Sits down at a board; returns (session, lines shown)."""

    def make(task="tictactoe", first=True, simulations=7):
        shown = []
        session = Session(
            FirstLegal(task),
            shown.append,
            simulations=simulations,
            person_is_first=first,
        )
        session.start()
        return session, shown

    return make


def test_a_move_is_answered(sit):
    session, shown = sit()
    session.feed("b2")
    assert session.moves == [4, 0]
    assert any("first plays a3" in text for text in shown)
    assert "(X)" not in shown[-1]
    assert "(O)" in shown[-1]


def test_the_opponent_may_begin(sit):
    session, shown = sit(first=False)
    assert session.moves == [0]
    assert "you are O" in shown[0]
    session.feed("2 2")
    assert session.moves == [0, 4, 1]


class TwoMovesEach:
    """Six cells, taken two at a time by each player in turn; a draw."""

    num_actions = max_plies = 6

    def initial_state(self):
        return ()

    def to_play(self, state):
        return len(state) // 2 % 2

    def legal_actions(self, state):
        return [cell for cell in range(6) if cell not in state]

    def apply(self, state, action):
        return (*state, action)

    def is_terminal(self, state):
        return len(state) == 6

    def returns(self, state):
        return 0, 0

    def observation(self, state):
        return np.ones((1, 1, 1), np.float32)

    def to_string(self, state):
        return f"taken {state}"


def test_who_is_to_move_moves_again(sit, monkeypatch):
    game = PythonGame(TwoMovesEach(), "two moves each")
    monkeypatch.setattr(games, "make", lambda task: game)
    session, shown = sit("two moves each")
    session.feed("1")
    assert session.moves == [1]
    assert "taken (1,)" in shown[-1]  # the board, for the person's second move
    session.feed("2")
    assert session.moves == [1, 2, 0, 3]
    assert "taken (1, 2, 0)" in shown[-3]
    session.feed("4")
    session.feed("5")
    assert "taken (1, 2, 0, 3, 4, 5)" in shown[-2]
    assert shown[-1] == "a draw"


def test_columns_are_typed_as_numbers(sit):
    session, _ = sit("connect4")
    session.feed("3")
    assert session.moves == [3, 0]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("zz", '"zz" is neither a move nor a command'),
        ("d4", '"d4" is neither a move'),
        ("a3", "a3 cannot be played here"),
        ("x" * 50, "xxx..."),
        ("9" * 5000, "999..."),
        ("-1", "is neither a move"),
        ("b 1e9", "is neither a move"),
        ("b\u0662", "is neither a move"),
        ("\0", "is neither a move"),
    ],
)
def test_wrong_input_gets_one_line(sit, line, message):
    session, shown = sit()
    session.feed("b2")  # the opponent answers a3
    before = len(shown)
    session.feed(line)
    assert len(shown) == before + 1
    assert message in shown[-1]
    assert "\n" not in shown[-1]
    assert session.moves == [4, 0]


def test_an_empty_line_is_nothing(sit):
    session, shown = sit()
    before = len(shown)
    session.feed("  ")
    assert len(shown) == before


@pytest.mark.parametrize("line", ["9" * 5000, "7", "-1", "1.5", "\u0663", "3 3", "1_0"])
def test_what_is_no_column_is_no_move(sit, line):
    session, shown = sit("connect4")
    session.feed(line)
    assert "is neither a move nor a command" in shown[-1]
    assert session.moves == []


def test_a_game_to_its_end(sit):
    session, shown = sit()
    for line in ("b2", "c3", "c1"):  # O takes a3, b3, and then a2
        session.feed(line)
    session.feed("c2")
    assert shown[-1] == "you win"
    assert session.report() == {
        "game": "tictactoe",
        "moves": [4, 0, 2, 1, 8, 3, 5],
        "person": "first",
        "finished": True,
        "score": 1.0,
    }
    for line in ("a1", "hint", "analyse", "swap"):
        session.feed(line)
        assert "the game is over" in shown[-1]
    assert session.prompt == "new, undo or quit: "
    session.feed("undo")
    assert session.moves == [4, 0, 2, 1, 8, 3]
    assert session.prompt == "X: "


def test_losing_is_said(sit):
    session, shown = sit()
    for line in ("a1", "b1", "b2"):  # O takes a3, b3 and c3
        session.feed(line)
    assert shown[-1] == "you lose"
    assert session.report()["score"] == 0.0


def test_undo_takes_back_a_move_and_its_answer(sit):
    session, shown = sit()
    session.feed("undo")
    assert "no move of yours" in shown[-1]
    session.feed("b2")
    session.feed("c3")
    session.feed("u")
    assert session.moves == [4, 0]
    session.feed("undo")
    assert session.moves == []
    second, _ = sit(first=False)
    second.feed("b2")
    second.feed("undo")
    assert second.moves == [0]


def test_swap_changes_sides(sit):
    session, shown = sit()
    session.feed("b2")
    session.feed("swap")
    assert "you are O now" in "".join(shown)
    assert session.moves == [4, 0, 1]
    assert session.report()["person"] == "second"
    session.feed("undo")  # its own first move as O was the opponent's choice
    assert session.moves == [4]


def test_hint_and_analyse_ask_and_do_not_move(sit):
    session, shown = sit(simulations=33)
    session.feed("hint")
    assert shown[-1].startswith("try a3   you [")
    session.feed("analyse")
    assert session.moves == []
    assert session._opponent.asked[-2:] == [([], 33), ([], 33)]
    lines = shown[-7:]
    assert "90%" in lines[0]
    assert lines[1].split() == ["move", "visits", "prior", "after", "it", "you", "win"]
    assert lines[2].split()[:3] == ["a3", "10", "50.0%"]
    assert "not tried" in lines[-1]


def test_new_begins_again(sit):
    session, _ = sit(first=False)
    session.feed("b2")
    session.feed("new")
    assert session.moves == [0]


def test_help_names_every_command(sit):
    session, shown = sit()
    session.feed("help")
    text = "\n".join(shown)
    for word in ("hint", "analyse", "undo", "swap", "new", "board", "help", "quit"):
        assert f"  {word} " in text
    assert '"b2" (or "2 2")' in text


def test_quit(sit):
    session, _ = sit()
    session.feed("QUIT")
    assert session.is_over


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1.0, "[####################] 100%"),
        (0.0, "[##########----------] 50%"),
        (-1.0, "[--------------------] 0%"),
        (0.5, "[###############-----] 75%"),
        (7.0, "[####################] 100%"),
    ],
)
def test_value_bar(value, text):
    assert value_bar(value) == text


@pytest.fixture
def piped(monkeypatch, make_player, capsys):
    """Runs ``tengen play`` with lines on stdin."""
    monkeypatch.setattr(
        "tengen.play.command.load_player",
        lambda word, *_, is_fresh, level: make_player(
            "connect4", keeps_tree=not is_fresh
        ),
    )

    def run(text, *words):
        stdin = io.StringIO(text) if isinstance(text, str) else text
        monkeypatch.setattr("sys.stdin", stdin)
        code = cli.main(["play", "RUN", "--simulations", "8", *words])
        return code, capsys.readouterr()

    return run


def test_piped_lines_play_a_game(piped):
    code, captured = piped("3\nhint\nnonsense\nquit\n", "--second", "--json")
    report = json.loads(captured.out.splitlines()[-1])
    assert code == 0
    assert report["person"] == "second"
    assert report["moves"][1] == 3
    assert len(report["moves"]) == 3
    assert "neither a move nor a command" in captured.out
    assert captured.out.isascii()
    assert "\033" not in captured.out


def test_the_end_of_input_leaves(piped):
    code, captured = piped("3\n")
    assert code == 0
    assert "hash plays" in captured.out


def test_bytes_that_are_no_text_are_refused_like_other_nonsense(piped):
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n3\n\xe9"), encoding="utf-8")
    code, captured = piped(stdin, "--json")
    assert code == 0
    assert '"\\xff\\xfe" is neither a move nor a command' in captured.out
    assert json.loads(captured.out.splitlines()[-1])["moves"][0] == 3


def test_no_input_at_all_leaves(piped):
    code, captured = piped(None)
    assert code == 0
    assert "you are X" in captured.out


def test_bad_options(piped):
    assert piped("", "--first", "--second")[0] == 2
    code, captured = piped("", "--simulations", "0")
    assert code == 2
    assert "simulations (0) must be 1 to" in captured.err
