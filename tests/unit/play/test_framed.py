"""Smaller boards in the planes of a larger one, compared with searches of the core."""

import pytest

from tengen import _core, games
from tengen.errors import UsageError
from tengen.evaluation.searcher import Searcher
from tengen.games import Framed
from tengen.search import SearchConfig
from tests.refusals import refused
from tests.unit.conftest import HashBackend


@pytest.fixture
def mixed(make_player):
    """Returns a player of go/5 that was trained on several board sizes."""
    return make_player("go/5", mixed_sizes=True)


def test_actions_are_numbered_on_either_board():
    framed = Framed.corner(games.make("go/3x4"), games.make("go/5"))
    assert framed.variant == "go/3x4"
    # Its lower right point is column 4 of row 3; action 12 is its pass.
    assert framed.to_frame([0, 4, 11, 12, 13, -1]) == [0, 5, 13, 25, -1, -1]
    assert [framed.from_frame(action) for action in (0, 5, 13, 25)] == [0, 4, 11, 12]
    assert str(framed.new_state([11])) == str(_played("go/3x4", [11]))


def _played(name, moves):
    state = games.make(name).new_state()
    for move in moves:
        state.apply(move)
    return state


def test_a_search_is_that_of_the_variant(mixed):
    # B2 and C3 of the smaller board, in the numbering of five columns.
    player = mixed.playing("go/4/komi=0.5")
    found = player.analyse([9, 6], simulations=40)
    request = _core.SearchRequest()
    request.num_simulations, request.ply, request.keep_squares = 40, 2, True
    searcher = Searcher(games.make("go/5"), HashBackend(), SearchConfig())
    wanted = searcher.run([11, 7], request, "go/4/komi=0.5")
    rows = {row.action: row for row in found.actions}
    assert len(rows) == len(wanted.actions) == 15
    for row in wanted.actions:
        down, right = divmod(row.action, 5)
        own = rows[16 if row.action == 25 else 4 * down + right]
        assert (own.visits, own.prior) == (row.visits, row.prior)
        assert own.value_to_play == row.value_to_play
    assert found.value_to_play == wanted.root_value_to_play


def test_a_variation_and_what_is_left_out_are_the_small_boards(mixed):
    with mixed.playing("go/4").begin(
        [], 60, left_out=[(0, 16, 1), (0, 15, 1)]
    ) as search:
        search.grow(60)
        found = search.analysis(8)
    assert {row.action for row in found.actions} == set(range(15))
    assert max(len(row.variation) for row in found.actions) > 2
    for row in found.actions:
        state = games.make("go/4").new_state()
        for action in row.variation:
            state.apply(action)


def test_a_longer_game_on_a_smaller_board(mixed):
    long = mixed.playing("go/4/plies=1444")
    assert long.playing("go/5").game.num_actions == 26
    assert long.choose([0, 16, 1], simulations=4) in range(17)


def test_planes_are_those_of_the_network(mixed, make_player):
    minigo = make_player("go/5/nosuicide/planes=minigo", mixed_sizes=True)
    for name in ("go/4/nosuicide/planes=minigo", "go/4/nosuicide"):
        assert minigo.playing(name).choose([5, 16, 6], simulations=4) in range(17)
    assert mixed.playing("go/4/planes=minigo").choose([5], simulations=4) in range(17)


def test_another_name_of_the_same_board_is_played_with_the_own_planes(make_player):
    own = make_player("go/5")
    shown = own.playing("go/5/nosuicide/planes=minigo")
    # By these rules Black must not fill the last liberty of its two stones, although
    # the rules that the network was trained with allow it.
    moves = [0, 2, 25, 6, 25, 5, 25, 11]
    found = shown.analyse(moves, simulations=40)
    assert 1 not in {row.action for row in found.actions}
    assert 1 in {row.action for row in own.analyse(moves, simulations=40).actions}
    assert shown.choose(moves, simulations=8) in range(26)


def test_moves_that_the_small_board_has_not(mixed):
    with refused(_core.CoreError, "legal"):
        mixed.playing("go/4").choose([17])
    with refused(_core.CoreError, "legal"):
        mixed.playing("go/4").choose([3, 3])


def test_games_that_do_not_fit(mixed, make_player):
    for name in ("go/6", "go/4x6", "go/6x4", "tictactoe"):
        with refused(UsageError, f"game ({name})", "go/5"):
            mixed.playing(name)
    with refused(UsageError, "game (go/4)", "go/5"):
        make_player("go/5").playing("go/4")
