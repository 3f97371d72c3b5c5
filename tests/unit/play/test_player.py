import threading

import pytest

import tengen
from tengen import _core, games
from tengen.errors import TengenWarning, UsageError
from tengen.play import Analysis
from tests.refusals import refused
from tests.unit.conftest import PLAIN, HashBackend


@pytest.mark.parametrize("task", ["tictactoe", "connect4", "gomoku/9"])
def test_analysis_is_whole(make_player, task):
    game = games.make(task)
    state = game.new_state()
    with make_player(task) as player:
        analysis = player.analyse([], simulations=100)
    assert isinstance(analysis, Analysis)
    rows = analysis.actions
    assert sorted(row.action for row in rows) == state.legal_actions()
    assert rows[0].action == analysis.best_action
    assert sum(row.visits for row in rows) == analysis.num_simulations == 100
    assert sum(row.policy for row in rows) == pytest.approx(1.0, abs=1e-5)
    assert sum(row.prior for row in rows) == pytest.approx(1.0, abs=1e-5)
    assert all(-1.0 <= row.value_to_play <= 1.0 for row in rows)
    assert -1.0 <= analysis.value_to_play <= 1.0
    visits = [row.visits for row in rows[1:]]
    assert visits == sorted(visits, reverse=True)


def test_the_same_question_has_the_same_answer(make_player):
    first, second = make_player("connect4"), make_player("connect4")
    asked = ([3, 3, 2], 80, 5)
    answer = first.analyse(*asked)
    first.analyse([0, 1], 30)  # earlier queries do not matter
    assert first.analyse(*asked) == answer == second.analyse(*asked)
    assert first.choose(*asked) == answer.best_action


@pytest.mark.parametrize("threads", [1, 3])
def test_what_moves_leave_of_a_tree_counts(make_player, four_cores, threads):
    player = make_player("gomoku/9", keeps_tree=True)
    first = player.analyse([], 400, threads=threads)
    with player.begin([], 400, threads=threads) as search:
        assert search.num_simulations == first.num_simulations >= 400
        search.grow(100)
        found = search.analysis(2)
    assert found.num_simulations >= 500
    line = found.actions[0].variation
    # Two moves later, the tree has more than requested; one move back, nothing is left.
    later = player.analyse(line, 1, threads=threads)
    assert later.num_simulations > 1
    assert sum(row.visits for row in later.actions) == later.num_simulations
    assert player.analyse(line[:1], 400, threads=threads).num_simulations >= 400
    other = player.analyse([40, 41, 42], 20, threads=threads)
    assert other.num_simulations == 20


def test_without_kept_trees_a_question_is_asked_anew(make_player):
    player = make_player("gomoku/9")
    line = [player.choose([], 400)]
    assert player.analyse(line, 3).num_simulations == 3


@pytest.mark.parametrize("keeps_tree", [False, True])
def test_a_whole_game_has_legal_moves(make_player, keeps_tree):
    player = make_player("connect4", keeps_tree=keeps_tree)
    state, moves = player.game.new_state(), []
    while not state.is_terminal():
        analysis = player.analyse(moves, simulations=60)
        assert analysis.num_simulations >= 60 or analysis.is_proven
        state.apply(analysis.best_action)
        moves.append(analysis.best_action)
    assert sum(state.returns()) == 0.0


def test_a_win_at_hand_is_taken_and_proven(make_player):
    # X has two in a row on top and is to move: x x . / o o . / . . .
    player = make_player("tictactoe")
    analysis = player.analyse([0, 3, 1, 4], simulations=64)
    assert analysis.best_action == 2
    assert analysis.value_to_play == 1.0
    assert analysis.is_proven
    assert player.choose([0, 3, 1, 4], simulations=64) == 2


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        ([0, 0], "move (0)"),
        ([9], "move (9)"),
        ([0, 3, 1, 4, 2], "moves (5 of them)"),
    ],
)
def test_bad_moves_are_refused_and_do_no_harm(make_player, moves, message):
    player = make_player("tictactoe")
    with refused(_core.CoreError, message):
        player.choose(moves)
    assert player.choose([]) == make_player("tictactoe").choose([])


def test_bad_numbers_are_refused(make_player):
    player = make_player("tictactoe")
    with refused(UsageError, "simulations (0)"):
        player.choose([], simulations=0)
    with refused(UsageError, "seed (-1)"):
        player.choose([], seed=-1)
    with refused(UsageError, "threads (0)"):
        player.choose([], threads=0)


@pytest.fixture
def four_cores(give_cores):
    give_cores(4)


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_share_one_search(make_player, four_cores, threads):
    player = make_player("connect4")
    for simulations in (300, 40, 300):
        analysis = player.analyse([3, 3], simulations, threads=threads)
        assert sum(row.visits for row in analysis.actions) == simulations
        assert analysis.num_simulations == simulations
    assert player.analyse([3, 3], 100) == make_player("connect4").analyse([3, 3], 100)
    # X has two in a row on top and is to move: x x . / o o . / . . .
    player = make_player("tictactoe")
    assert player.choose([0, 3, 1, 4], simulations=200, threads=threads) == 2


def test_threads_beyond_the_cores_are_said_and_not_used(make_player, four_cores):
    player = make_player("tictactoe")
    with pytest.warns(TengenWarning) as told:
        assert player.analyse([], 50, threads=9).num_simulations == 50
    assert "threads (9)" in str(told[0].message)


def test_a_closed_player_says_so(make_player):
    with make_player("tictactoe") as player:
        player.choose([])
    player.close()
    with refused(UsageError, "player (hash)"):
        player.choose([])


class FailsOnce:
    """Fails in the middle of the first search."""

    def __init__(self, backend):
        self.backend = backend
        self.num_runs = 0

    signature = PLAIN

    def bind(self, inputs, outputs, state=None):
        runner = self.backend.bind(inputs, outputs)
        outer = self

        class Runner:
            def run(self, num_rows):
                outer.num_runs += 1
                if outer.num_runs == 5:
                    raise KeyboardInterrupt
                runner.run(num_rows)

        return Runner()


def test_an_interrupted_search_does_not_spoil_the_next(make_player):
    whole = make_player("connect4")
    player = make_player("connect4", FailsOnce(HashBackend()))
    with pytest.raises(KeyboardInterrupt):
        player.choose([3])
    assert player.analyse([3]) == whole.analyse([3])


def test_threads_wait_for_each_other(make_player):
    player = make_player("connect4")
    expected = [player.choose([column]) for column in range(7)]
    found = [[None] * 7 for _ in range(4)]

    def ask(answers):
        for column in range(7):
            answers[column] = player.choose([column])

    threads = [threading.Thread(target=ask, args=(answers,)) for answers in found]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 4


@pytest.mark.parametrize("word", ["random", "mcts:10"])
def test_load_refuses_what_is_no_model(word):
    with refused(UsageError, f"model ({word})"):
        tengen.load(word)


def test_load_refuses_what_is_not_there(tmp_path):
    with refused(UsageError, "model ("):
        tengen.load(tmp_path / "none")
