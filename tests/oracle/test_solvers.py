"""The exact solvers against brute force and known facts."""

from __future__ import annotations

import random

import connect4_solver
import pytest
import tictactoe_solver
from slow_games import SlowGame, make_slow

from tengen import games
from tests.refusals import refused

needs_compiler = pytest.mark.skipif(
    not connect4_solver.is_available(), reason="g++ is not installed"
)


def play(name: str, moves: list[int]) -> SlowGame:
    game = make_slow(name)
    for move in moves:
        game.apply(move)
    return game


def brute_force(moves: list[int]) -> tuple[int, dict[int, int]]:
    """Returns Connect Four's score to play and each move's, by the slow rules alone."""
    game = play("connect4", moves)
    if game.winner() is not None:
        return -(22 - (game.ply + 1) // 2), {}
    if game.is_terminal():
        return 0, {}
    scores = {c: -brute_force([*moves, c])[0] for c in game.legal_actions()}
    return max(scores.values()), scores


def minimax(state: games.State, known: dict[tuple[int, int], int]) -> int:
    """Returns the score by the core's rules with memoization, which is faster."""
    key = state.key()
    if key not in known:
        if not state.is_terminal():
            known[key] = max(minimax_of_moves(state, known).values())
        elif state.returns() == (0, 0):
            known[key] = 0
        else:
            known[key] = -(22 - (state.ply + 1) // 2)
    return known[key]


def minimax_of_moves(
    state: games.State, known: dict[tuple[int, int], int]
) -> dict[int, int]:
    scores = {}
    for column in state.legal_actions():
        child = state.clone()
        child.apply(column)
        scores[column] = -minimax(child, known)
    return scores


def random_moves(rng: random.Random, num_plies: int) -> list[int]:
    while True:
        game, moves = make_slow("connect4"), []
        while len(moves) < num_plies and (legal := game.legal_actions()):
            moves.append(rng.choice(legal))
            game.apply(moves[-1])
        if not game.is_terminal():
            return moves


def sign(value: int) -> int:
    return (value > 0) - (value < 0)


def scores_by_minimax(moves: list[int]) -> dict[int, int]:
    state = games.make("connect4").new_state()
    for move in moves:
        state.apply(move)
    return minimax_of_moves(state, {})


@needs_compiler
@pytest.mark.parametrize(
    ("num_plies", "num_positions", "scores_of"),
    [
        *((n, count, "brute force") for n, count in ((37, 20), (35, 8), (34, 2))),
        *(
            (n, count, "minimax")
            for n, count in ((26, 4), (28, 12), (30, 30), (32, 60))
        ),
    ],
)
def test_connect4_equals_slow_solvers(num_plies, num_positions, scores_of):
    rng = random.Random(num_plies)
    for _ in range(num_positions):
        moves = random_moves(rng, num_plies)
        if scores_of == "minimax":
            scores = scores_by_minimax(moves)
        else:
            _, scores = brute_force(moves)
        value = sign(max(scores.values()))
        assert connect4_solver.scores(moves) == scores
        assert connect4_solver.solve(moves) == value
        best = [c for c, score in scores.items() if sign(score) == value]
        assert connect4_solver.optimal_moves(moves) == best


@needs_compiler
@pytest.mark.parametrize("num_plies", [14, 18, 22, 26])
def test_connect4_values_agree_with_each_other(num_plies):
    """Checks values against the values of moves, mirrored positions and scores."""
    rng = random.Random(num_plies)
    for _ in range(8):
        moves = random_moves(rng, num_plies)
        value = connect4_solver.solve(moves)
        scores = connect4_solver.scores(moves)
        assert value == sign(max(scores.values()))
        best = connect4_solver.optimal_moves(moves)
        assert best == [c for c in scores if sign(scores[c]) == value]
        mirrored = [6 - column for column in moves]
        assert connect4_solver.scores(mirrored) == {
            c: scores[6 - c] for c in range(7) if 6 - c in scores
        }
        for column in scores:
            after = [*moves, column]
            if play("connect4", after).is_terminal():
                continue
            assert -max(connect4_solver.scores(after).values()) == scores[column]
            assert (-connect4_solver.solve(after) == value) == (column in best)


@needs_compiler
def test_connect4_takes_and_stops_fours():
    threatened = [3, 0, 3, 0, 3]  # three in the middle column
    assert connect4_solver.scores([*threatened, 6])[3] == 18  # the fastest win
    assert connect4_solver.solve([*threatened, 6]) == 1
    both_ends = [2, 2, 3, 3, 4]  # three in the bottom row, open on both sides
    assert connect4_solver.solve(both_ends) == -1
    # A side that loses after every move has only optimal moves.
    assert connect4_solver.optimal_moves(both_ends) == list(range(7))
    assert set(connect4_solver.scores(both_ends).values()) == {-18}


@needs_compiler
@pytest.mark.parametrize(
    "moves", [[7], [0] * 7, [0, 1, 0, 1, 0, 1, 0], [0, 1, 0, 1, 0, 1, 0, 2]]
)
def test_connect4_refuses_what_cannot_be_played(moves):
    for ask in (
        connect4_solver.solve,
        connect4_solver.optimal_moves,
        connect4_solver.scores,
    ):
        with refused(ValueError, "moves"):
            ask(moves)


@needs_compiler
def test_connect4_random_positions():
    positions = list(connect4_solver.random_positions(20, 14, 30, seed=3))
    assert positions == list(connect4_solver.random_positions(20, 14, 30, seed=3))
    assert positions != list(connect4_solver.random_positions(20, 14, 30, seed=4))
    for moves in positions:
        assert 14 <= len(moves) <= 30
        legal = play("connect4", moves).legal_actions()
        best = connect4_solver.optimal_moves(moves)
        assert set(best) < set(legal)
        assert best


def test_tictactoe_is_drawn():
    assert tictactoe_solver.solve([]) == 0
    assert tictactoe_solver.optimal_moves([]) == list(range(9))
    # Against a corner only the centre draws; against the centre only a corner.
    assert tictactoe_solver.optimal_moves([0]) == [4]
    assert tictactoe_solver.optimal_moves([4]) == [0, 2, 6, 8]


def test_tictactoe_wins_and_blocks():
    assert tictactoe_solver.optimal_moves([0, 3, 1, 4]) == [2]
    assert tictactoe_solver.optimal_moves([0, 4, 1]) == [2]
    assert tictactoe_solver.solve([0, 1]) == 1
    assert tictactoe_solver.solve([0, 3, 1, 4, 2]) == -1
    assert tictactoe_solver.optimal_moves([0, 3, 1, 4, 2]) == []


def test_tictactoe_agrees_with_the_slow_rules():
    rng = random.Random(0)
    for _ in range(200):
        game, moves = make_slow("tictactoe"), []
        while legal := game.legal_actions():
            best = tictactoe_solver.optimal_moves(moves)
            assert best
            assert set(best) <= set(legal)
            value = tictactoe_solver.solve(moves)
            for cell in legal:
                after = -tictactoe_solver.solve([*moves, cell])
                assert (after == value) == (cell in best)
                assert after <= value
            moves.append(rng.choice(legal))
            game.apply(moves[-1])
        result = game.returns()[game.to_play]
        assert tictactoe_solver.solve(moves) == result
        assert tictactoe_solver.optimal_moves(moves) == []
