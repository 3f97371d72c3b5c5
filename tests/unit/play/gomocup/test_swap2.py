"""SWAP2BOARD: offering stones, and choosing a side of an offer."""

import pytest

from tengen.games.gomoku import read_cell

OFFER = ["1,1", "2,3", "4,4"]


def test_three_stones_are_offered(ask):
    answers = ask("START 6", "SWAP2BOARD", "DONE", "BEGIN", simulations=64)
    cells = {read_cell(word, 6) for word in answers[1].split()}
    assert len(cells) == 3
    assert None not in cells
    assert read_cell(answers[2], 6) is not None


@pytest.mark.parametrize("more", [[], ["0,5", "5,0"]])
def test_the_better_side_is_taken(ask, make_player, more):
    """The value for White decides, after 3 stones and after 5."""
    answered = set()
    for x in range(6):
        stones = [f"{x},2", *OFFER[1:], *more]
        player = make_player("gomoku/6")
        moves = [read_cell(stone, 6) for stone in stones]
        # One simulation, because longer searches may end early.
        found = player.analyse(moves, simulations=1)
        answer = ask("START 6", "SWAP2BOARD", *stones, "DONE", simulations=1)[1]
        swaps = found.value_to_play < 0
        assert (answer == "SWAP") == swaps
        if not swaps:
            assert read_cell(answer, 6) == found.best_action
        answered.add(swaps)
    assert answered == {True, False}


def test_after_a_choice_the_game_goes_on_by_a_board(ask):
    stones = ["1,1,1", "2,3,2", "4,4,1", "0,0,2"]
    answers = ask("START 6", "SWAP2BOARD", *OFFER, "DONE", "BOARD", *stones, "DONE")
    assert answers[2] == ask("START 6", "BOARD", *stones, "DONE")[1]


def test_an_offer_keeps_to_the_time(converse):
    """Without any time, the first candidate stones are offered."""
    talk = converse(simulations=64)
    looked_at, search = [], talk.engine.search

    def spy(moves, *rest):
        looked_at.append(moves)
        return search(moves, *rest)

    talk.engine.search = spy
    talk.ask("START 6", "INFO timeout_turn 0", "SWAP2BOARD", "DONE")
    assert len(looked_at) == 1
