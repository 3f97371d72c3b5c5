"""Positions in which either side may move at any time, compared with plain boards."""

import slow_go
from hypothesis import given, settings
from hypothesis import strategies as st

from tengen import _core, games
from tengen.play.gtp.position import MAX_PLIES, Position, Start
from tests.refusals import refused

PASS = 16


def empty(task="go/4"):
    return Position(Start(task, _core.parse_go_name(task).komi), games.make(task))


def text_of(position):
    planes = position.state.observation()[1:3].reshape(2, -1)
    mover = "XO"[position.state.to_play]
    other = "OX"[position.state.to_play]
    pairs = zip(*planes, strict=True)
    return "".join(mover if a else other if b else "." for a, b in pairs)


@settings(max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, PASS)), max_size=40))
def test_stones_of_any_order_stand_as_on_a_board_without_turns(moves):
    position, text, seen = empty(), "." * 16, {"." * 16}
    for player, action in moves:
        before = position
        try:
            position = position.after(player, action)
        except _core.CoreError:
            assert action != PASS
            if text[action] == "." and len(position.actions) < 31:
                # Only superko and suicide of a single stone forbid an empty point.
                board = slow_go.after(text, 4, action, "XO"[player], True)
                assert board is None or board in seen
            continue
        if action != PASS:
            assert text[action] == "."
            text = slow_go.after(text, 4, action, "XO"[player], True)
            assert position.state.to_play == 1 - player
            seen.add(text)
        assert text_of(position) == text
        undone = Position(position.start, position.game, position.moves[:-1])
        assert undone.actions == before.actions
        for turn in (0, 1):
            turned = position.turn_of(turn)
            assert text_of(turned) == text
            assert turned.state.is_terminal() or turned.state.to_play == turn
        assert position.score == _core.GoPosition("go/4", position.actions).score()


def test_no_game_of_the_core_is_longer():
    assert games.make(f"go/5/plies={MAX_PLIES}").max_plies == MAX_PLIES
    with refused(_core.CoreError, f"1 to {MAX_PLIES}"):
        _core.parse_go_name(f"go/5/plies={MAX_PLIES + 1}")


def test_a_record_says_its_limit_where_it_is_longer_than_usual():
    name = f"go/3/plies={MAX_PLIES}"
    position = Position(Start(name, 7.5), games.make(name))
    for action in (0, 1, 2, 3, 5, 6, 7, 8):
        position = position.after(0, action)
    # White, who has passed seven times, captures all of them.
    position = position.after(1, 4).after(0, 0)
    assert len(position.actions) == 17
    assert position.record().game == "go/3"
    position = position.after(0, 1)
    assert len(position.actions) == 19
    assert position.record().game == name
    assert not position.state.is_terminal()
