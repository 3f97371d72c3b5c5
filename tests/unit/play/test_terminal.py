"""``tengen play`` on a terminal: typed lines, the output, and the resulting moves.

A line of a dialogue is the typed text, part of the output that follows, and the moves
of the game afterwards. ``nothing`` means no output, and ``!`` precedes a complete
output line. The first line says what the dialogue shows, with the game in brackets if
it is not tic-tac-toe, or ``second`` if the opponent starts.
"""

import io
import json
import re
import types

import numpy as np
import pytest

from tengen import cli, games
from tengen.games.python_game import PythonGame
from tengen.play import Analysis
from tengen.play.command import Session, value_bar

DIALOGUES = r"""
a move is answered
b2                 | first plays a3 | 4 0

the opponent may begin [second]
2 2                | first plays b3 | 0 4 1

columns are typed as numbers [connect4]
3                  | first plays 0 | 3 0

wrong input gets one line
b2                 | first plays a3 | 4 0
zz                 | ! "zz" is neither a move nor a command | 4 0
d4                 | ! "d4" is neither a move | 4 0
a3                 | ! a3 cannot be played here | 4 0
{50 times x}       | ! xxx... | 4 0
{5000 times 9}     | ! 999... | 4 0
-1                 | ! is neither a move | 4 0
b 1e9              | ! is neither a move | 4 0
b\u0662                 | ! is neither a move | 4 0
\0                 | ! is neither a move | 4 0
                   | nothing | 4 0

what is no column is no move [connect4]
{5000 times 9}     | ! is neither a move nor a command |
7                  | ! is neither a move nor a command |
-1                 | ! is neither a move nor a command |
1.5                | ! is neither a move nor a command |
\u0663                  | ! is neither a move nor a command |
3 3                | ! is neither a move nor a command |
1_0                | ! is neither a move nor a command |

a game that is won is over, and its last move may be taken back
b2                 | first plays a3 | 4 0
c3                 | first plays b3 | 4 0 2 1
c1                 | first plays a2 | 4 0 2 1 8 3
c2                 | you win | 4 0 2 1 8 3 5
a1                 | the game is over | 4 0 2 1 8 3 5
hint               | the game is over | 4 0 2 1 8 3 5
analyse            | the game is over | 4 0 2 1 8 3 5
swap               | the game is over | 4 0 2 1 8 3 5
undo               | a b c | 4 0 2 1 8 3

losing is said
a1                 | first plays a3 | 6 0
b1                 | first plays b3 | 6 0 7 1
b2                 | you lose | 6 0 7 1 4 2

undo takes back a move and its answer
undo               | no move to take back |
b2                 | first plays a3 | 4 0
c3                 | first plays b3 | 4 0 2 1
u                  | a b c | 4 0
undo               | a b c |

undo keeps the opponent's first move [second]
b2                 | first plays b3 | 0 4 1
undo               | a b c | 0

swap changes sides, and the first move was then the opponent's
b2                 | first plays a3 | 4 0
swap               | you are O now | 4 0 1
undo               | a b c | 4

new begins again [second]
b2                 | first plays b3 | 0 4 1
new                | first plays a3 | 0
"""


class FirstLegal:
    """Plays the first legal action, with a value of certain victory."""

    name = "first"

    def __init__(self, game):
        self.game = game
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


def sit(opponent=None, first=True, simulations=7):
    """Starts a session; returns the session and the list of its output."""
    opponent, shown = opponent or FirstLegal(games.make("tictactoe")), []
    session = Session(
        opponent, shown.append, simulations=simulations, person_is_first=first
    )
    session.start()
    return session, shown


def times(match):
    count, letter = match[1].split(" times ")
    return int(count) * letter


@pytest.mark.parametrize(
    "dialogue",
    DIALOGUES.strip().split("\n\n"),
    ids=lambda dialogue: dialogue.partition("\n")[0],
)
def test_a_dialogue(dialogue):
    title, *lines = dialogue.split("\n")
    given = re.findall(r"\[(.*)\]$", title)
    task = "connect4" if given == ["connect4"] else "tictactoe"
    session, shown = sit(FirstLegal(games.make(task)), given != ["second"])
    for line in lines:
        typed, wanted, moves = (part.strip() for part in line.split("|"))
        typed = re.sub(r"\{(.*)\}", times, typed)
        typed = typed.encode().decode("unicode_escape")
        before = len(shown)
        session.feed(typed)
        told = shown[before:]
        if wanted == "nothing":
            assert told == []
        elif wanted.startswith("! "):
            assert len(told) == 1
            assert "\n" not in told[0]
        assert wanted == "nothing" or wanted.removeprefix("! ") in "".join(told)
        assert session.moves == [int(move) for move in moves.split()]


def test_the_last_stone_is_marked():
    session, shown = sit()
    session.feed("b2")
    assert "(X)" not in shown[-1]
    assert "(O)" in shown[-1]
    _, shown = sit(first=False)
    assert "you are O" in shown[0]


class TwoMovesEach:
    """Six cells; the players alternately take two at a time; always a draw."""

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


def test_who_is_to_move_moves_again():
    session, shown = sit(FirstLegal(PythonGame(TwoMovesEach(), "two moves each")))
    session.feed("1")
    assert session.moves == [1]
    assert "taken (1,)" in shown[-1]  # the board before the person's second move
    session.feed("2")
    assert session.moves == [1, 2, 0, 3]
    assert "taken (1, 2, 0)" in shown[-3]
    session.feed("4")
    session.feed("5")
    assert "taken (1, 2, 0, 3, 4, 5)" in shown[-2]
    assert shown[-1] == "a draw"


def test_the_report_and_the_prompt_of_a_game_that_is_over():
    session, _ = sit()
    for line in ("b2", "c3", "c1", "c2"):
        session.feed(line)
    assert session.report() == {
        "game": "tictactoe",
        "moves": [4, 0, 2, 1, 8, 3, 5],
        "person": "first",
        "finished": True,
        "score": 1.0,
    }
    assert session.prompt == "new, undo or quit: "
    session.feed("undo")
    assert session.prompt == "X: "
    session.feed("swap")
    assert session.report()["person"] == "second"


def test_hint_and_analyse_ask_and_do_not_move():
    opponent = FirstLegal(games.make("tictactoe"))
    session, shown = sit(opponent, simulations=33)
    session.feed("hint")
    assert shown[-1].startswith("try a3   you [")
    session.feed("analyse")
    assert session.moves == []
    assert opponent.asked[-2:] == [([], 33), ([], 33)]
    lines = shown[-7:]
    assert "90%" in lines[0]
    assert lines[1].split() == ["move", "visits", "prior", "win", "rate", "after", "it"]
    assert lines[2].split()[:3] == ["a3", "10", "50.0%"]
    assert "not tried" in lines[-1]


def test_help_names_every_command_and_quit_leaves():
    session, shown = sit()
    session.feed("help")
    text = "\n".join(shown)
    for word in ("hint", "analyse", "undo", "swap", "new", "board", "help", "quit"):
        assert f"  {word} " in text
    assert '"b2" (or "2 2")' in text
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
def piped(type_in, capsys):
    """Runs ``tengen play`` with the given stdin."""

    def run(text, *words):
        type_in(text)
        code = cli.main(["play", "connect4", "--simulations", "8", *words])
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


def test_bytes_that_are_no_text_are_refused_like_other_nonsense(piped):
    stdin = io.TextIOWrapper(io.BytesIO(b"\xff\xfe\n3\n\xe9"), encoding="utf-8")
    code, captured = piped(stdin, "--json")
    assert code == 0
    assert '"\\xff\\xfe" is neither a move nor a command' in captured.out
    assert json.loads(captured.out.splitlines()[-1])["moves"][0] == 3


@pytest.mark.parametrize("stdin", ["3\n", None])
def test_the_end_of_input_leaves(piped, stdin):
    code, captured = piped(stdin)
    assert code == 0
    assert "connect4 plays" in captured.out or "you are X" in captured.out


def test_bad_options(piped):
    assert piped("", "--first", "--second")[0] == 2
    code, captured = piped("", "--simulations", "0")
    assert code == 2
    assert "simulations (0)" in captured.err
