"""Scores and pass-alive points of /planes=minigo, by the benchmark's rules."""

import random

import numpy as np
import pytest
from slow_games import EMPTY, STONES
from slow_go import SlowGo
from slow_minigo_score import kept, minigo_area, minigo_score

from tengen import _core, games

SUFFIX = "/nosuicide/planes=minigo"


def text_of(owners):
    return "".join({1: STONES[0], -1: STONES[1], 0: EMPTY}[x] for x in owners.flat)


def check_position(name, slow):
    """Checks a position; returns whether its dead stones change the score."""
    text, width = slow.text(), slow.width
    found = _core.GoPosition(name, slow.moves)
    assert text_of(found.pass_alive()) == kept(text, width), text
    assert text_of(found.area()) == minigo_area(text, width), text
    score = minigo_score(text, width, 7.5)
    assert found.score() == score
    is_whole = EMPTY not in kept(text, width)
    assert found.is_settled() == (is_whole and not slow.is_terminal())
    return score != slow.score()


def slow_game(name, moves):
    slow = SlowGo(name)
    for move in moves:
        slow.apply(move)
    return slow


def diagram(name, text):
    """Returns moves that create a board; the side with fewer stones passes."""
    cells = text.replace(" ", "")
    black, white = ([p for p, c in enumerate(cells) if c == s] for s in STONES)
    moves = []
    for turn in range(max(len(black), len(white))):
        for stones in (black, white):
            moves.append(stones[turn] if turn < len(stones) else len(cells))
    return moves


@pytest.mark.parametrize(
    ("board", "text", "score"),
    [
        # The four stones on the left are dead inside a group with three eyes, on a
        # board that is not settled: Black has 35 points and White 14.
        (
            "7",
            "O...XO. XXXXXO. O...XO. XXXXXO. O...XO. XXXXXO. O...XO.",
            35 - 14 - 7.5,
        ),
        # One stone and one empty point, in the middle of a region beside two eyes.
        ("5x7", "XXXXXX. X....XX X.O..X. X....XX XXXXXXX", 35 - 7.5),
        # A stone that is not alive does not invalidate the eye that it borders.
        ("3x5", ".X.OX XXXX. .....", 13 - 1 - 7.5),
    ],
)
def test_dead_stones_are_no_points(board, text, score):
    name = f"go/{board}{SUFFIX}"
    slow = slow_game(name, diagram(name, text))
    differs = check_position(name, slow)
    found = _core.GoPosition(name, slow.moves)
    assert found.score() == score
    plain = _core.GoPosition(name.removesuffix("/planes=minigo"), slow.moves)
    assert plain.score() == slow.score()
    assert differs == (plain.score() != score)


def test_the_winner_is_the_benchmarks():
    """With dead stones removed, Black wins; by area alone, White would win."""
    name = f"go/7{SUFFIX}"
    text = "O..OXO. XXXXXO. O..OXO. XXXXXO. O..OXO. XXXXXO. O..OXO."
    moves = diagram(name, text)
    for game, winner in ((name, 0), ("go/7/nosuicide", 1)):
        state = games.make(game).new_state()
        for move in [*moves, 49, 49]:
            if not state.is_terminal():
                state.apply(move)
        assert state.is_terminal()
        assert state.returns()[winner] == 1.0


def own_eyes(slow):
    """Returns the empty points whose neighbours are all stones of the side to move."""
    text, width = slow.text(), slow.width
    own = STONES[slow.to_play]
    found = set()
    for point, cell in enumerate(text):
        row, column = divmod(point, width)
        beside = [
            text[y * width + x]
            for y, x in (
                (row - 1, column),
                (row + 1, column),
                (row, column - 1),
                (row, column + 1),
            )
            if 0 <= y < slow.height and 0 <= x < width
        ]
        if cell == EMPTY and all(other == own for other in beside):
            found.add(point)
    return found


@pytest.mark.parametrize(("size", "num_games"), [(5, 12), (7, 6), (9, 3)])
def test_random_games(size, num_games):
    """Checks positions during and at the end of games in which nobody fills an eye."""
    name = f"go/{size}{SUFFIX}"
    rng = random.Random(size)
    num_dead = num_kept = 0
    for _ in range(num_games):
        slow, state = SlowGo(name), games.make(name).new_state()
        # One side often passes, so that the other side lives around its stones.
        idle = rng.random()
        while not state.is_terminal():
            eyes = own_eyes(slow)
            choices = [a for a in state.legal_actions()[:-1] if a not in eyes]
            rests = slow.to_play == 1 and rng.random() < idle / 2
            may_rest = not (slow.moves and slow.moves[-1] == size * size)
            move = size * size
            if choices and not (rests and may_rest):
                move = rng.choice(choices)
            slow.apply(move)
            state.apply(move)
            if len(slow.moves) % size == 0 or state.is_terminal():
                num_dead += check_position(name, slow)
                num_kept += kept(slow.text(), size) != EMPTY * size * size
        score = minigo_score(slow.text(), size, 7.5)
        assert state.returns()[0] == np.sign(score)
    assert num_kept > num_games
    assert num_dead > 0
