"""Positions as managers send them: in any order, and with stones removed."""

from hypothesis import given
from hypothesis import strategies as st

from tengen import games
from tengen.play.gomocup.stones import OTHER, OWN, GomocupError, Stones
from tests.refusals import refused


def played(task, moves):
    """Returns the position after ``moves``."""
    state = games.make(task).new_state()
    for move in moves:
        state.apply(move)
    return state


@given(data=st.data())
def test_any_order_of_the_stones_is_the_position(data):
    task = data.draw(st.sampled_from(["gomoku/5", "gomoku/6/exact"]))
    game = games.make(task)
    state, moves = game.new_state(), []
    for _ in range(data.draw(st.integers(0, game.num_actions))):
        move = data.draw(st.sampled_from(list(map(int, state.legal_actions()))))
        after = state.clone()
        after.apply(move)
        if after.is_terminal():
            break
        state, moves = after, [*moves, move]
    mover = len(moves) % 2
    stones = [(OWN if ply % 2 == mover else OTHER, m) for ply, m in enumerate(moves)]
    assert Stones(tuple(stones)).moves(game) == moves
    shuffled = data.draw(st.permutations(stones))
    other = played(task, Stones(tuple(shuffled)).moves(game))
    assert (other.observation()[1:3] == state.observation()[1:3]).all()
    assert other.to_play == state.to_play


def test_a_row_that_wins_nothing_is_not_made_of_one_that_does():
    """Six in a row do not win by the exact rule, but the first five of them would."""
    row = [(OWN, 9 * 4 + x) for x in range(6)]
    others = [(OTHER, 9 * 2 * y + x) for y, x in ((0, 0), (1, 3), (3, 5))]
    others += [(OTHER, 9 * 8 + x) for x in (0, 2, 7)]
    stones = Stones((*row, *others))
    moves = stones.moves(games.make("gomoku/9/exact"))
    assert not played("gomoku/9/exact", moves).is_terminal()
    with refused(GomocupError, "over"):
        stones.moves(games.make("gomoku/9"))


def test_an_overline_is_played_without_five_before():
    row = [(OWN, 9 * 4 + x) for x in (1, 2, 3, 4, 0, 5)]
    others = [(OTHER, 9 * 2 * y + x) for y, x in ((0, 0), (1, 3), (3, 5))]
    others += [(OTHER, 9 * 8 + x) for x in (0, 2, 7)]
    moves = Stones((*row, *others)).moves(games.make("gomoku/9/exact"))
    position = played("gomoku/9/exact", moves)
    assert not position.is_terminal()
    assert sorted(moves) == sorted(cell for _, cell in (*row, *others))


def test_stones_alternate():
    stones = Stones(((OTHER, 0), (OTHER, 1)))
    with refused(GomocupError, "stones (0 own, 2 of the other side)"):
        stones.moves(games.make("gomoku/5"))
    assert stones.without(1, 5).moves(games.make("gomoku/5")) == [0]
    with refused(GomocupError, "stones (0 own, 1 of the other side)"):
        stones.without(1, 5).moves(games.make("gomoku/5"), to_move=OTHER)
