"""What holds for every search, native and reference alike."""

import pytest

from tengen import _core
from tengen.search import SearchConfig
from tests.oracle.search import Proof, ReferenceSearch
from tests.refusals import refused

POLICIES = ("puct", "gumbel")


def moves_of(board, name):
    """Moves, in some order, to a text board of X (first) and O, rows from the top."""
    rows = [line.split() for line in board.strip().splitlines()]
    width = len(rows[0])
    cells = {"X": [], "O": []}
    for row, line in enumerate(rows):
        for column, stone in enumerate(line):
            if stone in cells:
                cells[stone].append(row * width + column)
    if name == "connect4":
        return stacked(rows)
    moves = []
    for turn in range(len(cells["X"]) + len(cells["O"])):
        moves.append(cells["XO"[turn % 2]][turn // 2])
    return moves


def stacked(rows):
    """An order in which the stones of a Connect Four board can fall."""
    columns = [[row[c] for row in reversed(rows) if row[c] != "."] for c in range(7)]
    num_stones = sum(map(len, columns))

    def search(heights, turn):
        if turn == num_stones:
            return []
        for column, height in enumerate(heights):
            stones = columns[column]
            if height < len(stones) and stones[height] == "XO"[turn % 2]:
                taller = (*heights[:column], height + 1, *heights[column + 1 :])
                rest = search(taller, turn + 1)
                if rest is not None:
                    return [column, *rest]
        return None

    return search((0,) * 7, 0)


CONNECT4_WIN = """
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
. O O O . . .
. X X X . . .
"""
CONNECT4_BLOCK = """
. . . . . . .
. . . . . . .
. . . . . . .
X . . . . . .
X . . . . O .
X . . . . O .
"""
CONNECT4_DOUBLE = """
. . . . . . .
. . . . . . .
. . . . . . .
. . . . . . .
. . . O . . .
. . X X . . O
"""
TICTACTOE_WIN = """
X X .
O O .
. . .
"""
TICTACTOE_BLOCK = """
X X .
. O .
. . .
"""
TICTACTOE_FORK = """
X . .
. O .
O . X
"""
GOMOKU_WIN = """
. . . . . . .
. O O . . . .
. . . . . . .
. . X X X X .
. . . . . . .
. O . . . O .
. . . . . . .
"""
GOMOKU_BLOCK = """
. . . . . . .
. O . . . . .
. . . . . . .
O X X X X . .
. . . . . . .
. O . . . . .
. . . . . . .
"""


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    ("name", "board", "winning", "num_simulations"),
    [
        ("tictactoe", TICTACTOE_WIN, {2}, 20),
        ("connect4", CONNECT4_WIN, {0, 4}, 30),
        # Three in a row open at both ends.
        ("connect4", CONNECT4_DOUBLE, {1, 4}, 3000),
        ("tictactoe", TICTACTOE_FORK, {2}, 600),
        ("gomoku/7", GOMOKU_WIN, {22, 27}, 200),
    ],
)
def test_a_forced_win_is_proven_and_played(
    twin, name, board, winning, num_simulations, policy
):
    considered = {"gumbel_considered": 64} if policy == "gumbel" else {}
    search = twin(
        name,
        moves_of(board, name),
        SearchConfig(policy=policy, **considered),
        num_simulations=num_simulations,
    )
    result, _ = search.native()
    assert result.best_action in winning
    if policy == "puct" or num_simulations <= 200:
        assert result.proof == Proof.WIN
        assert result.root_value_to_play == 1.0
        assert {a.action for a in result.actions if a.policy > 0} <= winning
        assert result.num_simulations < num_simulations


@pytest.mark.parametrize(
    ("name", "board", "block", "num_simulations"),
    [
        ("tictactoe", TICTACTOE_BLOCK, 2, 3000),
        ("connect4", CONNECT4_BLOCK, 0, 3000),
        ("gomoku/7", GOMOKU_BLOCK, 26, 40000),
    ],
)
def test_block_or_lose(twin, name, board, block, num_simulations):
    search = twin(name, moves_of(board, name), num_simulations=num_simulations)
    assert search.state().to_play == 1
    result, _ = search.native()
    assert result.best_action == block
    # Moves that were seen to lose are no training target.
    lost = [a for a in result.actions if a.proof == Proof.LOSS]
    assert lost
    assert all(a.policy == 0.0 for a in lost)


@pytest.mark.parametrize(
    ("name", "board", "block"),
    [("tictactoe", TICTACTOE_BLOCK, 2), ("connect4", CONNECT4_BLOCK, 0)],
)
def test_gumbel_blocks(twin, name, board, block):
    position = twin(name, moves_of(board, name)).state()
    search = ReferenceSearch(
        SearchConfig(policy="gumbel"), lambda state: ([0.0] * 9, 0.0)
    )
    result = search.search(position, num_simulations=600)
    assert result.best_action == block
    assert max(result.policy, key=result.policy.get) == block


@pytest.mark.parametrize("moves", [[4, 0, 8], [0, 4, 8], [0, 4, 1]])
def test_tictactoe_is_proven_a_draw(twin, moves):
    # The evaluator knows nothing of the game: the search alone settles it. (From the
    # start it takes millions of simulations: they go on visiting drawn moves.)
    config = SearchConfig(cpuct=4.0)
    result, _ = twin("tictactoe", moves, config, num_simulations=20000).native()
    assert result.proof == Proof.DRAW
    assert result.root_value_to_play == 0.0
    assert result.num_simulations < 20000
    drawn = {a.action for a in result.actions if a.proof == Proof.DRAW}
    assert result.best_action in drawn
    assert {a.action for a in result.actions if a.policy > 0} == drawn


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("num_simulations", [0, 1, 2, 16, 64])
def test_sums(twin, moves_to, num_simulations, policy):
    for name in ("tictactoe", "connect4", "gomoku/9"):
        for seed in range(5):
            search = twin(
                name,
                moves_to(name, 3, seed),
                SearchConfig(policy=policy),
                num_simulations=num_simulations,
                explore=True,
                seed=seed,
            )
            result, nodes = search.native()
            assert sum(a.visits for a in result.actions) == result.num_simulations
            assert sum(a.policy for a in result.actions) == pytest.approx(1, abs=1e-5)
            assert sum(a.prior for a in result.actions) == pytest.approx(1, abs=1e-5)
            assert result.proof or result.num_simulations == num_simulations
            assert nodes[0]["visits"] == 1 + result.num_simulations
            legal = search.state().legal_actions()
            assert [a.action for a in result.actions] == legal


@pytest.mark.parametrize("policy", POLICIES)
def test_one_legal_move(twin, policy):
    # X . O / O X X / X O O with one cell left.
    moves = [0, 2, 4, 3, 5, 7, 6, 8]
    search = twin(
        "tictactoe",
        moves,
        SearchConfig(policy=policy),
        num_simulations=10,
        explore=True,
    )
    result = search.check()
    assert result.best_action == 1
    assert [a.policy for a in result.actions] == [1.0]
    assert result.proof == Proof.DRAW
    assert result.num_simulations == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_draws_depend_on_the_stream_and_on_nothing_else(twin, policy):
    def priors(**key):
        search = twin(
            "gomoku/9",
            key.pop("moves", ()),
            SearchConfig(policy=policy),
            num_simulations=16,
            explore=True,
            **key,
        )
        return [(a.prior, a.visits) for a in search.native()[0].actions]

    base = priors(seed=1, generation=2, game=3)
    assert base == priors(seed=1, generation=2, game=3)
    assert base != priors(seed=2, generation=2, game=3)
    assert base != priors(seed=1, generation=3, game=3)
    assert base != priors(seed=1, generation=2, game=4)
    many = {tuple(priors(game=game)) for game in range(20)}
    assert len(many) == 20


def test_noise_is_off_unless_exploring(twin):
    noisy = SearchConfig(noise_weight=1.0, root_temperature=3.0)
    quiet = SearchConfig(noise_weight=0.0)
    first = twin("connect4", config=noisy, seed=1).native()
    assert first[1] == twin("connect4", config=quiet, seed=2).native()[1]


def test_noise_draws_differ_by_ply(twin):
    # The same draw at every root would be no exploration. With weight 1 the prior is
    # the noise itself; all six positions have seven moves.
    config = SearchConfig(noise_weight=1.0)
    priors = set()
    for ply in range(6):
        search = twin("connect4", [3] * ply, config, explore=True, num_simulations=4)
        if len(search.state().legal_actions()) == 7:
            priors.add(tuple(a.prior for a in search.native()[0].actions))
    assert len(priors) == 6


@pytest.mark.parametrize("policy", POLICIES)
def test_finished_positions_and_bad_budgets_are_refused(twin, policy):
    config = SearchConfig(policy=policy)
    with refused(_core.CoreError, "finished"):
        twin("tictactoe", [0, 3, 1, 4, 2], config).native()
    with refused(_core.CoreError, "num_simulations (-1)"):
        twin("tictactoe", [], config, num_simulations=-1).native()


def test_gumbel_finds_more_than_its_prior(twin):
    # Over many positions, even 4 simulations raise the value of the policy: against
    # uniformly random evaluations the chosen move has a high q.
    gains = []
    for seed in range(40):
        search = twin(
            "gomoku/9",
            [seed, 80 - seed],
            SearchConfig(policy="gumbel"),
            num_simulations=4,
            explore=True,
            game=seed,
        )
        result, _ = search.native()
        visited = [a for a in result.actions if a.visits]
        chosen = next(a for a in visited if a.action == result.best_action)
        mean = sum(a.value_to_play for a in visited) / len(visited)
        gains.append(chosen.value_to_play - mean)
    assert sum(gains) / len(gains) > 0.3


def test_the_reference_plays_own_games():
    """Nim: take one stone or two; whoever takes the last one wins."""

    class Nim:
        num_actions = 2
        max_plies = 10

        def __init__(self, stones=7, ply=0):
            self.stones, self.ply = stones, ply

        to_play = property(lambda self: self.ply % 2)

        def clone(self):
            return Nim(self.stones, self.ply)

        def legal_actions(self):
            return [a for a in range(2) if a < self.stones]

        def apply(self, action):
            self.stones -= action + 1
            self.ply += 1

        def is_terminal(self):
            return self.stones == 0

        def returns(self):
            winner = 1 - self.to_play
            return (1.0, -1.0) if winner == 0 else (-1.0, 1.0)

    for policy in POLICIES:
        for stones in range(1, 12):
            search = ReferenceSearch(
                SearchConfig(policy=policy), lambda state: ([0.0, 0.0], 0.0)
            )
            result = search.search(Nim(stones), num_simulations=500)
            assert result.proof == (Proof.LOSS if stones % 3 == 0 else Proof.WIN)
            if stones % 3:
                assert result.best_action == stones % 3 - 1
