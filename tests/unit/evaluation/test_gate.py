import dataclasses
import itertools
import math

import pytest

from tengen import games
from tengen.errors import UsageError
from tengen.evaluation import (
    GateResults,
    MatchGate,
    MatchStopped,
    PairedTally,
    SprtGate,
    Tally,
    decide,
    judge,
    log_likelihood_ratio,
)
from tests.refusals import refused


def results(gate, scores=(), *, tally=None):
    """Returns the results of games with ``scores``, or with a given ``tally``."""
    counted = PairedTally()
    for score in scores:
        counted = counted.after(score)
    if tally is not None:
        counted = PairedTally(tally)
    return GateResults(gate, counted)


@pytest.mark.parametrize(
    ("tally", "verdict"),
    [
        (Tally(5, 0, 5), True),  # a tie passes
        (Tally(0, 10, 0), True),
        (Tally(4, 1, 5), False),
        (Tally(5, 0, 0), True),  # the minimum score is already certain
        (Tally(4, 1, 0), None),
        (Tally(0, 0, 5), None),  # five wins would still make a tie
        (Tally(0, 1, 5), False),
        (Tally(), None),
    ],
)
def test_ten_games_at_a_half(tally, verdict):
    gate = MatchGate(num_games=10, min_score=0.5)
    assert decide(results(gate, tally=tally)) is verdict


def test_a_score_of_exactly_the_least_passes():
    gate = MatchGate(num_games=100, min_score=0.55)
    assert decide(results(gate, tally=Tally(55, 0, 45))) is True
    assert decide(results(gate, tally=Tally(54, 1, 45))) is False


@pytest.mark.parametrize("min_score", [0.3, 0.5, 0.6, 1.0])
def test_stopping_early_decides_as_the_whole_match_would(min_score):
    gate = MatchGate(num_games=5, min_score=min_score)
    for scores in itertools.product((0.0, 0.5, 1.0), repeat=5):
        verdicts = [decide(results(gate, scores[:n])) for n in range(6)]
        final = verdicts[-1]
        assert final is (sum(scores) / 5 >= min_score)
        assert all(verdict in (None, final) for verdict in verdicts)


def test_pairs_are_counted_by_points():
    counted = results(MatchGate(), [1, 1, 1, 0, 0.5, 0.5, 0, 0.5, 0, 0, 1, 0.5]).counted
    assert counted.pairs == (1, 1, 2, 1, 1)
    assert counted.tally == Tally(4, 4, 4)
    assert counted.first_score is None
    assert counted.after(0.5) == PairedTally(Tally(4, 5, 4), (1, 1, 2, 1, 1), 0.5)


def test_the_sequential_test_ends_at_its_bounds_after_whole_pairs():
    gate = SprtGate(elo0=-50, elo1=50, alpha=0.1, beta=0.02)
    low, high = math.log(0.02 / 0.9), math.log(0.98 / 0.1)
    assert gate.bounds == pytest.approx((low, high))
    for score, verdict, bound in ((1.0, True, high), (0.0, False, -low)):
        unit = 1 if verdict else -1
        num_games = 0
        while decide(results(gate, [score] * num_games)) is None:
            num_games += 1
        assert num_games % 2 == 0
        assert decide(results(gate, [score] * num_games)) is verdict
        # The sequential test also decides after the last pair.
        last = dataclasses.replace(gate, max_games=num_games)
        assert decide(results(last, [score] * num_games)) is verdict

        def ratio(num_pairs, unit=unit):
            pairs = [num_pairs, 0, 0, 0, 0][:: -1 if unit > 0 else 1]
            return unit * log_likelihood_ratio(pairs, -50, 50)

        assert ratio(num_games // 2 - 1) < bound <= ratio(num_games // 2)


def test_after_the_most_games_the_score_decides():
    gate = SprtGate(max_games=4)
    assert gate.min_score == 0.5
    for scores in itertools.product((0.0, 0.5, 1.0), repeat=4):
        assert [decide(results(gate, scores[:n])) for n in range(4)] == [None] * 4
        assert decide(results(gate, scores)) is (sum(scores) >= 2)
    # The midpoint of 0 and 100 Elo is a score of 0.57.
    gate = SprtGate(elo0=0, elo1=100, max_games=4)
    assert decide(results(gate, (1, 0.5, 0.5, 0))) is False
    assert decide(results(gate, (1, 0.5, 0.5, 0.5))) is True


@pytest.mark.parametrize(
    ("gate", "field", "value"),
    [
        (SprtGate, "elo1", -35.0),
        (SprtGate, "max_games", 101),
        (MatchGate, "num_simulations", 0),
        (MatchGate, "num_simulations", 10**12),
        (SprtGate, "opening_plies", -1),
        (SprtGate, "opening_plies", 10**12),
    ],
)
def test_settings_that_cannot_be_are_refused(gate, field, value):
    with refused(UsageError, field):
        gate(**{field: value})


def test_judge(hash_player):
    game = games.make("tictactoe")
    players = hash_player("tictactoe"), hash_player("tictactoe")
    # Both sides have the same network, so each pair is 1 : 1: a tie, which passes.
    gate = MatchGate(num_games=8, num_simulations=8)
    assert judge(gate, game, *players, seed=4).is_accepted
    strict = MatchGate(num_games=8, num_simulations=8, min_score=0.51)
    assert not judge(strict, game, *players, seed=4).is_accepted
    sprt = SprtGate(max_games=8, num_simulations=8)
    verdict = judge(sprt, game, *players, seed=4)
    assert verdict.is_accepted
    assert verdict.results.counted.pairs == (0, 0, 4, 0, 0)
    assert verdict.results.llr == pytest.approx(0.0, abs=1e-9)
    assert len(verdict.games) == 8


@pytest.mark.parametrize(
    "gate",
    [
        SprtGate(elo0=-10, elo1=150, max_games=120, num_simulations=4),
        MatchGate(num_games=61, num_simulations=4, min_score=0.8),
    ],
)
def test_the_verdict_is_one_of_seed_and_players_alone(gate, hash_player):
    """Neither the number of threads nor an interruption changes the verdict."""
    game = games.make("connect4")
    other = hash_player("connect4")
    verdicts = []
    for num_threads in (1, 2, 3):
        kept = []
        arguments = (gate, game, hash_player("connect4", salt=1), other)
        verdict = judge(*arguments, seed=3, num_threads=num_threads, keep=kept.extend)
        verdicts.append(verdict)
        half = [g for g in kept if g.index % 3 != num_threads - 1]
        again = []
        resumed = judge(
            *arguments,
            seed=3,
            num_threads=num_threads,
            played=half,
            keep=again.extend,
        )
        assert resumed == verdict
        assert not {g.index for g in again} & {g.index for g in half}
    assert verdicts[1:] == verdicts[:1] * 2
    # The decision comes before the last game, and the scores are not all equal.
    verdict = verdicts[0]
    assert 2 < len(verdict.games) < gate.max_games
    assert len({g.score_a for g in verdict.games}) > 1
    assert decide(verdict.results) is verdict.is_accepted
    before = results(gate, [g.score_a for g in verdict.games[:-1]])
    assert decide(before) is None


def test_a_stop_leaves_the_candidate_undecided(hash_player):
    players = [hash_player("tictactoe"), hash_player("tictactoe")]
    gate = MatchGate(num_games=1_000_000)
    with pytest.raises(MatchStopped):
        judge(gate, games.make("tictactoe"), *players, stop=lambda: True)


def test_games_beyond_a_shorter_match_do_not_count(hash_player):
    """A match is shorter, for example, if ``num_games`` is lowered between calls."""
    game = games.make("tictactoe")
    players = [hash_player("tictactoe"), hash_player("tictactoe")]
    gate, kept = MatchGate(num_games=20, num_simulations=4, min_score=0.6), []
    judge(gate, game, *players, keep=kept.extend)
    shorter = dataclasses.replace(gate, num_games=4)
    for indices in (range(20), (0, 19), (4, 5, 6, 7, 8)):
        played = [finished for finished in kept if finished.index in indices]
        verdict = judge(shorter, game, *players, played=played)
        assert verdict == judge(shorter, game, *players)


def test_the_report_says_how_the_match_stands():
    scores = [1, 1, 1, 0.5, 0, 1]
    report = results(SprtGate(), scores).to_json()
    assert report["match"] == [4, 1, 1]
    assert report["pairs"] == [0, 0, 1, 1, 1]
    llr, low, high = report["llr"]
    assert llr == pytest.approx(
        log_likelihood_ratio([0, 0, 1, 1, 1], -35, 35), abs=1e-3
    )
    assert (low, high) == (-2.944, 2.944)
    assert report["elo"][0] == round(Tally(4, 1, 1).elo, 1)
    assert report["summary"] == (
        f"3 pairs, LLR {llr:+.2f} (-2.94 to +2.94), Elo {Tally(4, 1, 1).elo_text}"
    )
    report = results(MatchGate(), scores).to_json()
    assert "llr" not in report
    assert report["summary"].startswith("6 games, score 0.750, Elo +191, 95 % from ")
