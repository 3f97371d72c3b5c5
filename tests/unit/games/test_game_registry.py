"""Games by name."""

import sys

import pytest

from tengen import games
from tengen.errors import UsageError
from tests.refusals import refused


def test_every_name_makes_its_game():
    assert len(games.names()) == 50
    for name in games.names():
        assert games.make(name).name == name


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("conect4", 'did you mean "connect4"?'),
        ("TicTacToe", 'did you mean "tictactoe"?'),
        ("gomuku/9", 'did you mean "gomoku/9"?'),
        ("chess", "check the spelling"),
        ("", "check the spelling"),
        ("go", "must be go/9 or go/9x13"),
        ("gomoku/4", "must be gomoku/5 to gomoku/19"),
        ("gomoku/20", "must be gomoku/5 to gomoku/19"),
        ("gomoku/9/renju", "add /exact"),
        ("gomoku/09", "must be gomoku/5 to gomoku/19"),
        (":Game", "must be module:Class"),
        ("module:", "must be module:Class"),
        ("no_such_module:Game", "ModuleNotFoundError"),
        ("tengen.games.planes:Game", "must name a class of tengen.games.planes"),
        ("tengen.games.planes:stone_planes", "must be made without arguments"),
        ("math:pi", "must name a class of math; define it there"),
        ("no_such_module:Game", "No module named 'no_such_module'; correct it, or"),
    ],
)
def test_unknown_names_are_refused(name, advice):
    with pytest.raises(UsageError) as refused:
        games.make(name)
    message = str(refused.value)
    assert message.startswith(f"task ({name}) must ")
    assert advice in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("task", "is_game"),
    [
        ("tictactoe", True),
        ("gomoku/99", True),
        ("openspiel/hex(board_size=5)", True),
        ("CartPole-v1", False),
        ("minatar/Breakout", False),
        ("tests.unit.games.own_games:TicTacToe", True),
        ("tests.unit.games.test_game_registry:make_game", True),
        ("tests.unit.games.test_game_registry:make_environment", False),
        ("tests.unit.games.test_game_registry:Duck", False),
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
    """Has an environment's methods, and would need a base class."""

    def __init__(self):
        raise AssertionError("a class is not made to see what it is")

    def reset(self): ...

    def step(self, action): ...
