import itertools

import pytest

from tengen import games
from tengen.config import from_dict, to_dict
from tengen.errors import UsageError
from tengen.evaluation import (
    AcceptAllGate,
    MatchGate,
    MatchStopped,
    Tally,
    decide,
    judge,
)


def test_accept_all_asks_for_no_game():
    assert decide(AcceptAllGate(), Tally()) is True


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (Tally(5, 0, 5), True),  # a tie passes
        (Tally(0, 10, 0), True),
        (Tally(4, 1, 5), False),
        (Tally(5, 0, 0), True),  # five points can no longer be lost
        (Tally(4, 1, 0), None),
        (Tally(0, 0, 5), None),  # five wins would still tie
        (Tally(0, 1, 5), False),
        (Tally(), None),
    ],
)
def test_ten_games_at_a_half(tally, verdict):
    assert decide(MatchGate(num_games=10, min_score=0.5), tally) is verdict


def test_a_score_of_exactly_the_least_passes():
    gate = MatchGate(num_games=100, min_score=0.55)
    assert decide(gate, Tally(55, 0, 45)) is True
    assert decide(gate, Tally(54, 1, 45)) is False


@pytest.mark.parametrize("min_score", [0.3, 0.5, 0.6, 1.0])
def test_stopping_early_decides_as_the_whole_match_would(min_score):
    gate = MatchGate(num_games=5, min_score=min_score)
    for results in itertools.product(range(3), repeat=5):
        verdicts = []
        for n in range(6):
            played = results[:n]
            tally = Tally(played.count(0), played.count(1), played.count(2))
            verdicts.append(decide(gate, tally))
        final = verdicts[-1]
        assert final is (tally.score >= min_score)
        assert all(verdict in (None, final) for verdict in verdicts)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("num_games", 1),
        ("min_score", 0.0),
        ("min_score", 1.5),
        ("num_games", 10**12),
        ("num_simulations", 0),
        ("num_simulations", 10**12),
        ("opening_plies", -1),
        ("opening_plies", 10**12),
    ],
)
def test_settings_out_of_range(field, value):
    with pytest.raises(UsageError, match=field):
        MatchGate(**{field: value})


def test_the_config_survives_json():
    gate = MatchGate(num_games=40, min_score=0.55)
    assert from_dict(MatchGate, to_dict(gate)) == gate


def test_judge(hash_player):
    game = games.make("tictactoe")
    player = hash_player("tictactoe")
    first = judge(MatchGate(), game, player, None)
    assert first.is_accepted
    assert first.tally.num_games == 0
    assert judge(AcceptAllGate(), game, player, player).is_accepted
    # The same network on both sides wins what it loses: a tie, which passes.
    gate = MatchGate(num_games=8, num_simulations=8)
    verdict = judge(gate, game, player, hash_player("tictactoe"), seed=4)
    assert verdict.is_accepted
    strict = MatchGate(num_games=8, num_simulations=8, min_score=0.51)
    assert not judge(strict, game, player, hash_player("tictactoe"), seed=4).is_accepted


def test_a_stop_leaves_the_candidate_undecided(hash_player):
    players = [hash_player("tictactoe"), hash_player("tictactoe")]
    gate = MatchGate(num_games=1_000_000)
    with pytest.raises(MatchStopped):
        judge(gate, games.make("tictactoe"), *players, stop=lambda: True)
