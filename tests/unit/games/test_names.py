"""Games by name, and the error messages for invalid names."""

import sys

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tests.refusals import refused


def test_every_name_makes_its_game():
    assert len(games.names()) == 50
    for name in games.names():
        assert games.make(name).name == name


@pytest.mark.parametrize(
    "name",
    [
        "go/2",
        "go/19x2",
        "go/9/situational/nosuicide/komi=-6.5/handicap=9/plies=1444",
        "go/13/simple/komi=0",
        "go/7/nosuicide/planes=minigo",
        "go/2x19/planes=minigo",
        "go/9/situational/nosuicide/komi=-6.5/handicap=9/plies=1444/planes=minigo",
        "go/9x13/simple/planes=katago",
    ],
)
def test_names_come_back(name):
    assert games.make(name).name == name
    assert _core.parse_go_name(name).name == name


# Invalid names, and the hint in the error message: the nearest name, or the spelling.
REFUSED = """
conect4                       | did you mean "connect4"?
TicTacToe                     | did you mean "tictactoe"?
gomuku/9                      | did you mean "gomoku/9"?
chess                         | spelling
                              | spelling
gomoku/4                      | gomoku/5 to gomoku/19
gomoku/20                     | gomoku/5 to gomoku/19
gomoku/09                     | gomoku/5 to gomoku/19
gomoku/9/renju                | /exact
go                            | go/9 or go/9x13
go/                           | go/9 or go/9x13
go/1                          | go/9 or go/9x13
go/20                         | go/9 or go/9x13
go/09                         | go/9 or go/9x13
go/9x                         | go/9 or go/9x13
go/9/renju                    | go/9 or go/9x13
go/9/nosuicide/simple         | in this order
go/9/komi=6.25                | in this order
go/9/komi=x                   | in this order
go/9/komi=400                 | up to 361
go/5/handicap=2               | no handicap
go/9/handicap=1               | 2 to 9
go/8/handicap=5               | 2 to 4
go/9/plies=0                  | 1 to 1444
go/9x9                        | written go/9;
go/9/komi=7.5                 | written go/9;
go/9/komi=-0                  | written go/9/komi=0;
go/9/plies=162                | written go/9;
go/9/planes=                  | /planes=minigo or /planes=katago
go/9/planes=tengen            | /planes=minigo or /planes=katago
go/9/planes=minigo/nosuicide  | /planes=minigo or /planes=katago
go/9/planes=minigo/plies=60   | /planes=minigo or /planes=katago
go/9/planes=minigo/planes=minigo | /planes=minigo or /planes=katago
go/9/planes=minigo2           | /planes=minigo or /planes=katago
:Game                         | module:Class
module:                       | module:Class
no_such_module:Game           | ModuleNotFoundError: No module named 'no_such_module'
tengen.games.planes:Game      | a class of tengen.games.planes
tengen.games.planes:stone_planes | without arguments
math:pi                       | a class of math
"""


@pytest.mark.parametrize("row", REFUSED.strip("\n").splitlines())
def test_unknown_names_are_refused(row):
    name, said = (part.strip() for part in row.split("| "))
    with refused(UsageError, f"task ({name}) must ", said) as caught:
        games.make(name)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("task", "is_game"),
    [
        ("tictactoe", True),
        ("gomoku/99", True),
        ("openspiel/hex(board_size=5)", True),
        ("CartPole-v1", False),
        ("minatar/Breakout", False),
        ("tests.unit.games.own_games:TicTacToe", True),
        ("tests.unit.games.test_names:make_game", True),
        ("tests.unit.games.test_names:make_environment", False),
        ("tests.unit.games.test_names:Duck", False),
        ("tests.environments:Catch", False),
        ("tests.environments:MaskedCartPole", False),
    ],
)
def test_games_are_told_from_environments(task, is_game):
    if "environment" in task:
        pytest.importorskip("gymnasium")
    games.allow(task)
    assert games.is_game(task) is is_game


def test_a_program_that_nobody_typed_is_neither():
    with refused(UsageError, "task (antigravity:Game)"):
        games.is_game("antigravity:Game")
    assert "antigravity" not in sys.modules


def make_game():
    from tests.unit.games.own_games import TicTacToe

    return TicTacToe()


def make_environment():
    from gymnasium.wrappers import TimeLimit

    from tests.environments import Catch

    return TimeLimit(Catch(), 5)


class Duck:
    """Has the methods of an environment, but not the required base class."""

    def __init__(self):
        raise AssertionError("a class is not made to see what it is")

    def reset(self): ...

    def step(self, action): ...
