"""A game that breaks the protocol during play causes one clear error, never a hang."""

import re
import sys

import numpy as np
import pytest
from own_games import ConnectFour
from own_games import PlainTicTacToe as TicTacToe

from tengen import _core, cli
from tengen.actors import SelfplayConfig, play_generation
from tengen.errors import UsageError
from tengen.evaluation import MctsPlayer, RandomPlayer, play_match
from tengen.games.check import check_own_game
from tengen.games.python_game import PythonGame
from tengen.games.source import OwnGameSource
from tests.refusals import refused
from tests.unit.conftest import PLAIN


def late(method, wrong):
    """Returns tic-tac-toe whose ``method`` returns wrong results after three plies."""

    def broken(self, state, *args):
        right = getattr(TicTacToe, method)(self, state, *args)
        if sum(cell != 0 for cell in state) < 3:
            return right
        return wrong(right)

    return type("Late", (TicTacToe,), {method: broken})()


def raises(_):
    raise KeyError("oh\nno")


CASES = [
    ("to_play", lambda _: 2, "Late.to_play (2) must be 0 or 1"),
    ("to_play", lambda _: 0.5, "Late.to_play (0.5) must be 0 or 1"),
    ("legal_actions", lambda legal: legal[::-1], "must be increasing"),
    ("legal_actions", lambda legal: [*legal, 9], "must be 0 to 8"),
    ("legal_actions", lambda legal: [-1, *legal], "must be 0 to 8"),
    ("legal_actions", lambda _: [], "Late.legal_actions ([]) must not be empty"),
    ("legal_actions", lambda _: [0.5], "Late.legal_actions ([0.5]) must be integers"),
    ("legal_actions", lambda _: None, "Late.legal_actions (None) must be integers"),
    ("is_terminal", lambda _: False, "Late.legal_actions ([]) must not be empty"),
    ("returns", lambda _: (1, 1), "Late.returns ((1, 1)) must be (1, -1)"),
    ("returns", lambda _: 1, "Late.returns (1) must be two numbers"),
    ("observation", lambda p: p[:2], "Late.observation (shape (2, 3, 3)) must be"),
    ("observation", lambda p: p * 1.0j, "Late.observation (dtype complex64) must be"),
    ("observation", lambda p: p / np.float32(0), "must be finite"),
    ("observation", np.zeros_like, "Late.observation (plane 0 is all 0) must be 1 on"),
    ("observation", lambda p: p.tolist(), "Late.observation (a list) must be"),
    *(
        (method, raises, f"Late.{method} (ply")
        for method in (
            "to_play",
            "legal_actions",
            "apply",
            "is_terminal",
            "returns",
            "observation",
        )
    ),
]


class Zeros:
    """A backend that leaves all outputs at 0."""

    signature = PLAIN

    def bind(self, inputs, outputs, state=None):
        return self

    def run(self, num_rows):
        return None


class Nowhere:
    """A segment for games that nobody reads."""

    def __init__(self, path):
        self.journal = _core.Journal(str(path), "{}")
        self.sink = _core.JournalSink(self.journal)


def checked(message, refused):
    text = str(refused.value)
    assert message in text
    assert "; " in text
    assert "\n" not in text


@pytest.mark.parametrize(
    ("method", "wrong", "message"),
    CASES,
    ids=[f"{method}-{i}" for i, (method, _, _) in enumerate(CASES)],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_all_that_plays_names_the_method(method, wrong, message, tmp_path):
    game = PythonGame(late(method, wrong), "broken:Late")
    with pytest.raises(UsageError) as refused:
        check_own_game(late(method, wrong), num_games=20)
    checked(message, refused)
    queue = _core.GameQueue(seed=1, generation=1, model=0, num_games=50)
    sink = Nowhere(tmp_path / "games").sink
    config = SelfplayConfig(full_simulations=16, num_slots=4)
    with pytest.raises(UsageError) as refused:
        play_generation(game, config, Zeros(), queue, sink, num_threads=2)
    checked(message, refused)
    if method != "to_play":
        players = (MctsPlayer(30), RandomPlayer())
        with pytest.raises(UsageError) as refused:
            play_match(game, *players, num_games=20, num_threads=2)
        checked(message, refused)


def test_chance_in_apply_breaks_the_protocol():
    class Dice(TicTacToe):
        """In every seventh move the stone lands on the first free cell instead."""

        num_thrown = 0

        def apply(self, state, action):
            Dice.num_thrown += 1
            if Dice.num_thrown % 7 == 0:
                action = self.legal_actions(state)[0]
            return super().apply(state, action)

    with pytest.raises(UsageError) as refused:
        check_own_game(Dice(), num_games=20)
    checked("must always lead to the same position", refused)
    checked("Dice.apply (action ", refused)


def test_chance_that_shows_later_breaks_the_protocol():
    class Board(tuple):
        winner = None

    class Hidden(TicTacToe):
        """The first move picks a random winner; nothing shows it before the end."""

        num_symmetries = 1
        num_drawn = 0

        def apply(self, state, action):
            board = Board(super().apply(state, action))
            board.winner = getattr(state, "winner", None)
            if board.winner is None:
                Hidden.num_drawn += 1
                board.winner = (1, -1) if Hidden.num_drawn % 3 else (-1, 1)
            return board

        def returns(self, state):
            return state.winner

    with pytest.raises(UsageError) as refused:
        check_own_game(Hidden(), num_games=20)
    checked("Hidden.apply (action ", refused)


def test_chance_in_the_initial_state_breaks_the_protocol():
    class Shuffled(TicTacToe):
        num_begun = 0

        def initial_state(self):
            Shuffled.num_begun += 1
            state = super().initial_state()
            return state if Shuffled.num_begun % 5 else self.apply(state, 4)

    with pytest.raises(UsageError) as refused:
        check_own_game(Shuffled(), num_games=20)
    checked(
        "Shuffled.initial_state (called twice) must always lead to the same", refused
    )


def test_a_game_without_end_is_named():
    class Endless(TicTacToe):
        max_plies = 9

        def is_terminal(self, state):
            return False

        def legal_actions(self, state):
            return [0]

        def apply(self, state, action):
            return state

    source = OwnGameSource(PythonGame(Endless(), "broken:Endless"))
    with refused(UsageError, "Endless.is_terminal (False)"):
        _core.mcts_choose(source, [], 5)
    with refused(UsageError, "Endless.is_terminal (False)"):
        _core.mcts_choose(source, [0] * 9, 5)


def test_a_game_that_changes_its_answers_is_named():
    class Moody(TicTacToe):
        def __init__(self):
            self.asked = 0

        def observation(self, state):
            self.asked += 1
            planes = super().observation(state)
            return planes[1:] if self.asked == 10 else planes

    source = OwnGameSource(PythonGame(Moody(), "broken:Moody"))
    with refused(UsageError, "Moody (ply "):
        _core.mcts_choose(source, [], 30)


def test_an_illegal_move_of_the_caller_is_refused():
    source = OwnGameSource(PythonGame(TicTacToe(), "own_games:TicTacToe"))
    with refused(_core.CoreError, "move (9)"):
        _core.mcts_choose(source, [9], 3)
    with refused(_core.CoreError, "legal"):
        _core.mcts_choose(source, [4, 4], 3)


def leaves(*_):
    sys.exit(7)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_game_cannot_leave_the_process(tmp_path):
    game = PythonGame(late("apply", leaves), "broken:Late")
    line = "Late.apply (ply 3) must not raise; it raised SystemExit: 7"
    with refused(UsageError, line):
        check_own_game(game.own)
    with refused(UsageError, line):
        _core.mcts_choose(OwnGameSource(game), [0, 1, 2], 5)
    with refused(UsageError, line):
        play_match(game, MctsPlayer(30), RandomPlayer(), num_games=2, num_threads=1)
    state = game.new_state()
    for action in (0, 1, 2):
        state.apply(action)
    with refused(UsageError, line):
        state.apply(3)


@pytest.mark.parametrize("name", ["num_actions", "num_symmetries", "apply"])
def test_an_attribute_cannot_leave_the_process(name):
    broken = type("Broken", (TicTacToe,), {name: property(leaves)})()
    line = f"Broken.{name} (attribute) must not raise; it raised SystemExit: 7"
    with refused(UsageError, line):
        check_own_game(broken)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("import sys; sys.exit('text')", "importing leaving raised SystemExit: text"),
        ("class Game:\n def __init__(self): raise SystemExit", "Game.. raised System"),
    ],
)
def test_a_module_cannot_leave_the_process(text, line, tmp_path, monkeypatch, capsys):
    (tmp_path / "leaving.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "leaving", raising=False)
    assert cli.main(["recipes", "leaving:Game"]) == 2
    assert re.search(line, capsys.readouterr().err)


@pytest.mark.parametrize(
    "found",
    [
        lambda legal: legal,
        lambda legal: (legal, 2),
        lambda legal: ([], 0),
        lambda legal: (legal[::-1], 0),
        lambda legal: ([*legal, 9], 0),
        lambda legal: (legal[:1], 1),
        lambda legal: (legal, -1),
        lambda legal: [legal, 0],
        lambda legal: (np.array(legal), 0),
        lambda legal: (np.array(3), 0),
        lambda legal: ([float(legal[0])], 0),
        lambda legal: ([True], 0),
        lambda legal: (legal[1:], 0),
    ],
)
def test_wrong_decisive_actions_are_refused(found):
    class Wrong(TicTacToe):
        def decisive_actions(self, state):
            return found(self.legal_actions(state))

    with refused(UsageError, "Wrong.decisive_actions"):
        check_own_game(Wrong())


def test_a_forced_win_that_is_none_is_refused():
    class Hopeful(ConnectFour):
        def decisive_actions(self, state):
            is_first = state == self.initial_state()
            return ([3], 1) if is_first else super().decisive_actions(state)

    with refused(UsageError, "Hopeful.decisive_actions", "forced win"):
        check_own_game(Hopeful())
    check_own_game(ConnectFour())
