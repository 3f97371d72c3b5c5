import threading

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.evaluation.searcher import Searcher, batch_rows
from tengen.search import SearchConfig
from tests.refusals import refused
from tests.unit.conftest import PLAIN


@pytest.fixture
def searcher(hash_player):
    """Returns a function that creates a searcher with the hash network."""

    def make(task, *shape, backend=None, search=None):
        player = hash_player(task, backend=backend)
        config = search or SearchConfig()
        return Searcher(games.make(task), player.backend, config, *shape)

    return make


def request_of(num_simulations):
    request = _core.SearchRequest()
    request.num_simulations = num_simulations
    return request


@pytest.mark.parametrize(
    ("simulations", "threads", "rows"),
    [(1, 2, 1), (64, 2, 1), (200, 2, 3), (800, 2, 8), (10**6, 2, 8), (800, 16, 1)],
)
def test_a_share_of_the_simulations_is_in_flight(simulations, threads, rows):
    assert batch_rows(simulations, threads) == rows


@pytest.mark.parametrize(("threads", "rows"), [(1, 1), (1, 5), (2, 1), (3, 4), (8, 2)])
def test_every_simulation_is_made_once(searcher, threads, rows):
    search = searcher("connect4", threads, rows)
    for moves in ([], [3, 3, 2]):
        result = search.run(moves, request_of(150))
        assert result.num_simulations == 150
        assert sum(a.visits for a in result.actions) == 150
        assert sum(a.policy for a in result.actions) == pytest.approx(1.0, abs=1e-5)


def test_one_thread_with_batches_repeats_itself(searcher):
    first, second = (searcher("gomoku/7", 1, 4).run([], request_of(300)) for _ in "ab")
    assert [a.visits for a in first.actions] == [a.visits for a in second.actions]


def test_a_win_at_hand_is_proven_by_many_threads(searcher):
    # X has two in the top row and is to move: x x . / o o . / . . .
    result = searcher("tictactoe", 6, 3).run([0, 3, 1, 4], request_of(300))
    assert result.best_action == 2
    assert result.root_value_to_play == 1.0


def test_fewer_moves_than_threads_end(searcher):
    search = searcher("tictactoe", 8, 8)
    moves = [4, 0, 2, 6, 3, 5, 1]
    while moves:  # two empty cells at first, then one more per iteration
        result = search.run(moves, request_of(1000))
        assert 0 < result.num_simulations <= 1000
        moves.pop()


class Breaks:
    """A backend that raises in one of its runners, after some batches."""

    name, version, precision, batch_shape = "breaks", "1", "fp32", "dynamic"

    def __init__(self, backend, error):
        self.backend = backend
        self.error = error
        self.num_bound = 0

    signature = PLAIN

    def bind(self, inputs, outputs, state=None):
        self.num_bound += 1
        is_bad = self.num_bound == 2
        runner = self.backend.bind(inputs, outputs)
        outer = self

        class Runner:
            num_runs = 0

            def run(self, num_rows):
                self.num_runs += 1
                if is_bad and self.num_runs > 3 and outer.error:
                    raise outer.error
                runner.run(num_rows)

        return Runner()


# Error classes, not instances: an instance would hold its traceback, and the trees.
@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_an_error_of_one_thread_ends_all(searcher, hash_player, error):
    broken = Breaks(hash_player("gomoku/9").backend, error)
    search = searcher("gomoku/9", 3, 2, backend=broken)
    with pytest.raises(error):
        search.run([], request_of(1 << 24))
    assert not [t for t in threading.enumerate() if t.name.startswith("tree")]
    broken.error = None
    assert search.run([], request_of(50)).num_simulations == 50


def test_what_wants_one_thread_is_refused(searcher):
    gumbel = SearchConfig(policy="gumbel")
    with refused(UsageError, "threads (2)"):
        searcher("tictactoe", 2, 1, search=gumbel)


def test_minigo_is_refused(searcher):
    minigo = SearchConfig(policy="minigo")
    for num_threads in (1, 2):
        with refused(UsageError, "search.policy (minigo)"):
            searcher("tictactoe", num_threads, 1, search=minigo)
