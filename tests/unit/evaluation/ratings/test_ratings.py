"""Ratings fitted to matches, and the records of matches."""

import json
import math
import random

import pytest

from tengen.errors import RunError, UsageError
from tengen.evaluation import (
    MatchRecord,
    Pairing,
    Tally,
    elo_of_score,
    expected_score,
    fit_ratings,
    read_records,
)
from tengen.evaluation.ratings.fit import PRIOR_DRAWS, Link
from tengen.evaluation.ratings.records import publish_record
from tengen.run import RunDirectory
from tengen.search import PlayConfig
from tests.refusals import refused


def pairing(a, b, wins, draws, losses):
    return Pairing(a, b, Tally(wins, draws, losses))


def test_one_pair_has_a_closed_form():
    rating = fit_ratings([pairing("x", "random", 6, 2, 2)], {"random": 100.0})["x"]
    score = (7 + 0.5 * PRIOR_DRAWS) / (10 + PRIOR_DRAWS)
    information = (10 + PRIOR_DRAWS) * score * (1 - score)
    assert rating.elo == pytest.approx(100.0 + elo_of_score(score))
    assert rating.standard_error == pytest.approx(
        400 / math.log(10) / math.sqrt(information)
    )
    assert rating.num_games == 10
    assert rating.error == pytest.approx(1.96 * rating.standard_error, rel=1e-4)


def test_fixed_ratings_stay():
    ratings = fit_ratings([pairing("x", "a", 9, 0, 1)], {"a": 250.0, "b": 300.0})
    assert ratings["a"].elo == 250.0
    assert ratings["a"].standard_error == 0.0
    assert ratings["b"].num_games == 0


def test_a_pair_may_come_in_parts_and_either_way_round():
    whole = fit_ratings([pairing("x", "a", 5, 3, 2)], {"a": 0.0})
    parts = fit_ratings(
        [
            pairing("x", "a", 4, 1, 0),
            pairing("a", "x", 2, 2, 1),
            pairing("a", "x", 0, 0, 0),
            pairing("x", "x", 5, 0, 0),
        ],
        {"a": 0.0},
    )
    assert parts == whole


def test_perfect_scores_stay_finite_and_in_order():
    chain = [
        pairing("b", "a", 50, 0, 0),
        pairing("c", "b", 50, 0, 0),
        pairing("d", "c", 50, 0, 0),
    ]
    ratings = fit_ratings(chain, {"a": 0.0})
    step = elo_of_score(50.5 / 51)
    assert [ratings[name].elo for name in "bcd"] == pytest.approx(
        [step, 2 * step, 3 * step]
    )
    errors = [ratings[name].standard_error for name in "bcd"]
    assert errors == sorted(errors)


def climb(pairings, fixed, num_rounds):
    """Returns ratings by Hunter 2004, "MM algorithms for generalized Bradley-Terry
    models": slow, but it converges from any start, independently of the library."""
    strength = {name: 10 ** (elo / 400) for name, elo in fixed.items()}
    free = sorted({n for p in pairings for n in (p.a, p.b)} - set(fixed))
    strength.update(dict.fromkeys(free, 1.0))
    for _ in range(num_rounds):
        for name in free:
            points = weight = 0.0
            for p in pairings:
                if name in (p.a, p.b):
                    tally = p.tally if name == p.a else -p.tally
                    points += tally.points + 0.5 * PRIOR_DRAWS
                    weight += (tally.num_games + PRIOR_DRAWS) / (
                        strength[p.a] + strength[p.b]
                    )
            strength[name] = points / weight
    return {name: 400 * math.log10(strength[name]) for name in free}


@pytest.mark.parametrize("seed", range(20))
def test_newton_finds_what_slow_climbing_finds_from_far_away(seed):
    # Anchors 2,000 Elo apart and perfect scores, as in a run that learns fast, made an
    # unbounded Newton step diverge.
    rng = random.Random(seed)
    fixed = {"random": 0.0, "mcts:10": 700.0, "mcts:1000": 1500.0, "mcts:3000": 2100.0}
    pairings = []
    for number in range(12):
        for _ in range(rng.randint(1, 3)):
            wins, draws = rng.choice([0, 1, 4, 7, 8, 8]), rng.choice([0, 0, 1, 4])
            losses = max(8 - wins - draws, 0)
            earlier = [f"{number - 1:06d}"] if number > 0 else []
            other = rng.choice([*sorted(fixed), *earlier])
            pairings.append(pairing(f"{number:06d}", other, wins, draws, losses))
    merged = {}
    for p in pairings:
        merged[p.a, p.b] = merged.get((p.a, p.b), Tally()) + p.tally
    whole = [Pairing(a, b, tally) for (a, b), tally in merged.items()]
    expected = climb(whole, fixed, 3000)
    ratings = fit_ratings(pairings, fixed)
    for name, elo in expected.items():
        assert ratings[name].elo == pytest.approx(elo, abs=0.5)
        assert math.isfinite(ratings[name].standard_error)


def test_known_strengths_come_back_within_their_errors():
    rng = random.Random(11)
    truth = {"random": 0.0, **{f"m{i}": 120.0 * i for i in range(1, 8)}}
    names = list(truth)
    inside = total = 0
    for _ in range(40):
        pairings = []
        for a, b in zip(names[1:], names, strict=False):
            wins = sum(
                rng.random() < expected_score(truth[a] - truth[b]) for _ in range(100)
            )
            pairings.append(pairing(a, b, wins, 0, 100 - wins))
        ratings = fit_ratings(pairings, {"random": 0.0})
        for name in names[1:]:
            inside += abs(ratings[name].elo - truth[name]) <= ratings[name].error
            total += 1
    # 95 % intervals; ratings in one chain are correlated, so the bound is wide.
    assert 0.88 <= inside / total <= 1.0


def test_players_without_a_chain_to_a_fixed_one_are_named():
    with refused(UsageError, "pairings (of x)"):
        fit_ratings([pairing("x", "y", 1, 0, 0)], {"random": 0.0})
    with refused(UsageError, "fixed"):
        fit_ratings([], {})


def test_a_link_is_a_normal_prior_on_the_difference():
    alone = fit_ratings([pairing("late", "a", 6, 2, 2)], {"a": 0.0})["late"]
    tied = fit_ratings(
        [pairing("late", "a", 6, 2, 2), pairing("early", "a", 6, 2, 2)],
        {"a": 0.0},
        [Link("late", "early", 1e-3)],
    )
    assert tied["late"].elo == pytest.approx(alone.elo, abs=1e-2)
    assert tied["early"].elo == pytest.approx(tied["late"].elo, abs=1e-2)
    # Equivalent to one player with twice the games, so half the variance.
    assert tied["late"].standard_error == pytest.approx(
        alone.standard_error / math.sqrt(2), rel=1e-3
    )
    loose = fit_ratings(
        [pairing("late", "a", 9, 0, 1), pairing("early", "a", 2, 0, 8)],
        {"a": 0.0},
        [Link("late", "early", 1e6)],
    )
    assert loose["late"].elo == pytest.approx(elo_of_score(9.5 / 11), abs=1e-2)
    assert loose["early"].elo == pytest.approx(elo_of_score(2.5 / 11), abs=1e-2)


def test_a_link_pulls_by_its_precision():
    # At the maximum the gradients of the games and of the link cancel.
    link = Link("late", "early", 100.0)
    games = [pairing("late", "a", 9, 0, 1), pairing("early", "a", 2, 0, 8)]
    ratings = fit_ratings(games, {"a": 0.0}, [link])
    unit = 400 / math.log(10)
    difference = ratings["late"].elo - ratings["early"].elo
    pull = difference / 100.0**2 * unit
    for name, points in (("late", 9.5), ("early", 2.5)):
        surplus = points - 11 * expected_score(ratings[name].elo)
        assert surplus == pytest.approx(pull if name == "late" else -pull, rel=1e-6)


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


def record(a="000003", b="random", **changed):
    fields = {
        "task": "connect4",
        "a": a,
        "b": b,
        "wins_a": 5,
        "draws": 2,
        "wins_b": 1,
        "num_simulations": 64,
        "opening_plies": 2,
        "seed": 9,
    }
    return MatchRecord(**{**fields, **changed})


def test_records_come_back_in_order(run):
    names = ["000010", "000010", "000002", *["000010"] * 9]
    for seed, name in enumerate(names):
        publish_record(run, name, record(a=name, seed=seed))
    assert [r.seed for r in read_records(run)] == [2, 0, 1, *range(3, 12)]
    assert (run.eval / "000010-11.json").exists()


def test_a_record_is_a_pairing():
    assert record().to_pairing() == Pairing("000003", "random", Tally(5, 2, 1))


def test_a_run_without_records_has_none(tmp_path):
    assert read_records(RunDirectory(tmp_path)) == []


def test_other_files_are_passed_over(run):
    for name in (".tmp-host-1-x-000001-1.json", "notes.txt", "gate.json"):
        (run.eval / name).write_text("no")
    assert read_records(run) == []


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"schema": 1, "a'])
def test_a_damaged_record_is_named(run, text):
    (run.eval / "000001-1.json").write_text(text)
    with refused((RunError, UsageError), "000001-1.json"):
        read_records(run)


def test_a_record_of_before_is_of_a_player_as_it_was_then(run):
    path = publish_record(run, "000003", record())
    content = json.loads(path.read_text())
    assert content.pop("play")["search"]["policy"] == "puct"
    path.write_text(json.dumps({**content, "schema": 1}))
    assert [r.play for r in read_records(run)] == [PlayConfig()]


def test_a_newer_schema_is_refused(run):
    path = publish_record(run, "000001", record())
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "schema": 99}))
    with refused(UsageError, "schema (99)"):
        read_records(run)
