"""The sequential test: worked numbers, a slow maximum, and simulated error rates."""

import math

import numpy as np
import pytest

from tengen.evaluation import (
    GateResults,
    MatchGate,
    MatchReport,
    PairedTally,
    SprtGate,
    decide,
    log_likelihood_ratio,
    sprt_bounds,
)
from tengen.evaluation.elo import ELO_LIMIT, Z_95, Tally, elo_of_score, expected_score
from tengen.recipes import make_config
from tengen.recipes.finale import match_line
from tests.oracle.gate_matches import draw_points, judge_match, judge_sprt


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
    # 81 of 263 is a worked example of the Wilson interval: 0.255 to 0.366.
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
    assert match_line(report, make_config("tictactoe", None, None)).endswith(
        f"Elo {text}"
    )


SCORES = (0.0, 0.25, 0.5, 0.75, 1.0)


def log_likelihood(counts, shares):
    return sum(n * math.log(p) for n, p in zip(counts, shares, strict=True))


def moved(shares, i, amount):
    """Moves 2 * ``amount`` from result i + 1 to its neighbours, in equal parts."""
    steps = {i: 1.0, i + 1: -2.0, i + 2: 1.0}
    return [p + amount * steps.get(j, 0.0) for j, p in enumerate(shares)]


def slow_maximum(counts, mean):
    """Returns the maximum log-likelihood of a multinomial whose scores have a mean.

    Uses coordinate ascent: ``moved`` preserves the sum and the mean, and the likelihood
    is concave along its direction.
    """
    shares = [math.comb(4, i) * mean**i * (1 - mean) ** (4 - i) for i in range(5)]
    best = -math.inf
    while log_likelihood(counts, shares) > best + 1e-12:
        best = log_likelihood(counts, shares)
        for i in range(3):
            low, high = -min(shares[i], shares[i + 2]), shares[i + 1] / 2
            for _ in range(80):
                a, b = low + (high - low) / 3, high - (high - low) / 3
                there = log_likelihood(counts, moved(shares, i, b))
                if log_likelihood(counts, moved(shares, i, a)) < there:
                    low = a
                else:
                    high = b
            shares = moved(shares, i, (low + high) / 2)
    assert sum(shares) == pytest.approx(1.0)
    assert sum(p * s for p, s in zip(shares, SCORES, strict=True)) == pytest.approx(
        mean
    )
    return best


@pytest.mark.parametrize(
    ("counts", "elo0", "elo1"),
    [
        ((3, 10, 40, 12, 5), -35, 35),
        ((3, 10, 40, 12, 5), 0, 10),
        ((1, 2, 3, 40, 60), -200, 150),
        ((9, 1, 1, 1, 9), -35, 35),
        ((2, 5, 1, 7, 3), 400, 500),
    ],
)
def test_against_a_slow_maximum(counts, elo0, elo1):
    slow = slow_maximum(counts, expected_score(elo1))
    slow -= slow_maximum(counts, expected_score(elo0))
    assert log_likelihood_ratio(counts, elo0, elo1) == pytest.approx(slow, abs=1e-6)


def test_worked_numbers():
    """If each pair is won or lost 2 : 0, the mean is the probability of a win.

    40 pairs, 30 of them won, at scores of 0.6 and 0.4: 30 ln 1.5 - 10 ln 1.5, which is
    20 * 0.405465 = 8.10930.
    """
    elo = elo_of_score(0.6)
    assert elo == pytest.approx(70.4365, abs=1e-4)
    ratio = log_likelihood_ratio((10, 0, 0, 0, 30), -elo, elo)
    assert ratio == pytest.approx(8.10930, abs=1e-5)
    # A tied pair does not change the ratio if the hypotheses are symmetric.
    assert log_likelihood_ratio((0, 0, 25, 0, 0), -elo, elo) == pytest.approx(
        0, abs=1e-9
    )
    # Only ties, against a mean of 0.6: the likeliest shares are 0.8 ties and 0.2 wins,
    # so each pair adds ln 0.8 = -0.223144.
    ratio = log_likelihood_ratio((0, 0, 100, 0, 0), 0, elo)
    assert ratio == pytest.approx(-22.3144, abs=1e-4)
    assert sprt_bounds(0.05, 0.1) == pytest.approx((-2.25129, 2.89037), abs=1e-5)


def test_from_the_first_pair_on_it_is_finite_and_speaks_for_the_stronger():
    nothing = log_likelihood_ratio((0,) * 5, -35, 35)
    assert nothing == pytest.approx(0.0, abs=1e-9)
    first = [log_likelihood_ratio(np.eye(5)[i], -35, 35) for i in range(5)]
    assert (np.diff(first) >= -1e-9).all()
    # One pair, however clear, gives at most the log-odds of the hypotheses.
    most = math.log(expected_score(35) / expected_score(-35))
    assert first[4] == pytest.approx(most)
    assert first[0] == pytest.approx(-most)
    extreme = log_likelihood_ratio(np.eye(5) * 1e6, -1000, 1000)
    assert np.isfinite(extreme).all()
    assert -extreme[0] == pytest.approx(1e6 * math.log(10) * 2.5)
    assert extreme[4] == pytest.approx(1e6 * math.log(10) * 2.5)


def test_a_result_that_was_never_seen_is_the_limit_of_a_rare_one():
    for counts in ([0, 0, 5, 0, 3], [0, 4, 0, 0, 0], [0, 2, 9, 1, 0], [7, 0, 0, 2, 0]):
        rare = np.maximum(counts, 1e-9)
        for elos in ((-35, 35), (0, 35), (200, 300), (-300, -10)):
            expected = log_likelihood_ratio(rare, *elos)
            assert log_likelihood_ratio(counts, *elos) == pytest.approx(
                expected, abs=1e-5
            )


def test_arrays_and_mirrors():
    rng = np.random.default_rng(0)
    counts = rng.integers(0, 30, (6, 7, 5))
    ratios = log_likelihood_ratio(counts, -20, 50)
    assert ratios.shape == (6, 7)
    assert np.isfinite(ratios).all()
    assert ratios[2, 3] == log_likelihood_ratio(counts[2, 3], -20, 50)
    mirrored = log_likelihood_ratio(counts[..., ::-1], -50, 20)
    np.testing.assert_allclose(ratios, -mirrored, atol=1e-8)
    there = log_likelihood_ratio(counts, -20, 10) + log_likelihood_ratio(counts, 10, 50)
    np.testing.assert_allclose(ratios, there, atol=1e-8)


@pytest.mark.parametrize(
    ("draw_share", "opening_share", "elo0", "elo1"),
    [
        (0.0, 0.0, -80, 80),
        (0.3, 0.0, 0, 160),
        (0.5, 0.0, -80, 80),
        (0.0, 0.3, 0, 160),
        (0.3, 0.3, -80, 80),
    ],
)
def test_errors_are_as_rare_as_asked_for(draw_share, opening_share, elo0, elo1):
    """Simulated matches, with draws and decisive openings; up to three deviations."""
    gate = SprtGate(elo0=elo0, elo1=elo1, alpha=0.1, beta=0.04)
    num_matches = 600
    for elo, rate, wrong in ((elo0, gate.alpha, True), (elo1, gate.beta, False)):
        points = draw_points(
            np.random.default_rng(7),
            elo=elo,
            draw_share=draw_share,
            opening_share=opening_share,
            num_matches=num_matches,
            num_pairs=100,
        )
        passed, num_games = judge_sprt(gate, points)
        slack = 3 * math.sqrt(rate * (1 - rate) / num_matches)
        assert np.mean(passed == wrong) <= rate + slack
        assert num_games.mean() < 100


def test_matches_by_chance_are_judged_as_the_gate_does():
    points = draw_points(
        np.random.default_rng(1),
        elo=20,
        draw_share=0.3,
        opening_share=0.2,
        num_matches=12,
        num_pairs=30,
    )
    gates = [
        (SprtGate(elo0=-100, elo1=100, max_games=60), judge_sprt),
        (SprtGate(elo0=0, elo1=20, max_games=60), judge_sprt),
        (MatchGate(num_games=60, min_score=0.55), judge_match),
    ]
    for gate, judge in gates:
        passed, num_games = judge(gate, points)
        for match, is_accepted, length in zip(points, passed, num_games, strict=True):
            results = GateResults(gate)
            for score in match.reshape(-1) / 2:
                assert decide(results) is None
                results = GateResults(gate, results.counted.after(score))
                if decide(results) is not None:
                    break
            assert results.counted.tally.num_games == length
            assert decide(results) is bool(is_accepted)
    assert PairedTally().after(1.0).first_score == 1.0
