import math

import pytest

from tengen.evaluation import LadderConfig, MatchReport
from tengen.evaluation.elo import (
    ELO_LIMIT,
    Z_95,
    Tally,
    elo_of_score,
    expected_score,
)
from tengen.recipes.finale import match_line


@pytest.mark.parametrize(
    ("difference", "score"),
    [(0, 0.5), (400, 10 / 11), (-400, 1 / 11), (800, 100 / 101), (191, 0.750)],
)
def test_expected_score_is_elos_curve(difference, score):
    assert expected_score(difference) == pytest.approx(score, abs=5e-4)


@pytest.mark.parametrize("difference", [-1500.0, -30.0, 0.0, 12.5, 700.0])
def test_elo_of_score_undoes_expected_score(difference):
    assert elo_of_score(expected_score(difference)) == pytest.approx(difference)


def test_elo_of_a_perfect_score_is_the_limit():
    assert elo_of_score(1.0) == ELO_LIMIT
    assert elo_of_score(0.0) == -ELO_LIMIT
    assert elo_of_score(1.0 - 1e-16) <= ELO_LIMIT


def test_tallies_add_up_and_turn_round():
    tally = Tally(3, 2, 1) + Tally(1, 0, 0)
    assert tally == Tally(4, 2, 1)
    assert (tally.num_games, tally.points, tally.score) == (7, 5.0, 5 / 7)
    assert -tally == Tally(1, 2, 4)
    assert (-tally).elo == pytest.approx(-tally.elo)
    low, high = tally.elo_interval
    assert (-tally).elo_interval == pytest.approx((-high, -low))


def test_the_interval_of_a_known_case():
    # 81 of 263, a worked example of the Wilson interval: 0.255 to 0.366.
    low, high = Tally(81, 0, 182).score_interval
    assert (low, high) == (pytest.approx(0.2553, abs=1e-4), pytest.approx(0.3662, 1e-3))


@pytest.mark.parametrize(
    "tally", [Tally(12, 0, 8), Tally(0, 0, 10), Tally(1, 0, 99), Tally(5, 10, 5)]
)
def test_each_end_is_a_score_that_the_result_would_only_just_not_refuse(tally):
    n, score = tally.num_games, tally.score
    for end in tally.score_interval:
        assert 0.0 <= end <= 1.0
        if 0.0 < end < 1.0:
            error = math.sqrt(end * (1.0 - end) / n)
            assert abs(score - end) == pytest.approx(Z_95 * error)


@pytest.mark.parametrize("tally", [Tally(20, 0, 0), Tally(0, 0, 20), Tally(), Tally(1)])
def test_one_sided_results_stay_finite_and_in_order(tally):
    low, high = tally.elo_interval
    assert -ELO_LIMIT <= low <= tally.elo <= high <= ELO_LIMIT


def test_an_unbeaten_player_rises_with_the_games():
    elos = [Tally(n, 0, 0).elo for n in (1, 10, 100)]
    assert elos == sorted(elos)
    assert Tally(100, 0, 0).elo == pytest.approx(elo_of_score(0.995))
    assert Tally(100, 0, 0).elo_interval[1] == ELO_LIMIT


@pytest.mark.parametrize(
    ("tally", "text"),
    [
        (Tally(6, 2, 2), "+147, 95 % from -73 to +367"),
        (Tally(10, 0, 0), "+512, 95 % from +166 to no bound"),
        (Tally(0, 0, 10), "-512, 95 % from no bound to -166"),
    ],
)
def test_elo_for_people_says_where_there_is_no_bound(tally, text):
    assert tally.elo_text == text
    report = MatchReport(tally, ())
    config = LadderConfig(final_games=10)
    assert match_line(report, config).endswith(f"Elo {text}")
