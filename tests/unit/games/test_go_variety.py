"""The variants of Go that a run plays, and their frequencies."""

import math

import numpy as np
import pytest

from tengen import _core
from tengen.errors import UsageError
from tengen.games import GoVariety, make, variants_of
from tests.refusals import refused


def shares(task, **fields):
    found = dict(variants_of(task, GoVariety(**fields)))
    assert sum(found.values()) == pytest.approx(1.0)
    assert min(found.values()) > 0
    return found


def test_nothing_varies_by_default():
    assert variants_of("go/9", GoVariety()) == []
    assert variants_of("connect4", GoVariety()) == []
    assert variants_of("go/9/planes=minigo", GoVariety()) == []


def test_boards_come_as_often_as_they_weigh():
    found = shares("go/9", boards=("7", "9", "5x8"), board_weights=(1.0, 2.0, 1.0))
    assert found == {"go/7": 0.25, "": 0.5, "go/5x8": 0.25}
    assert shares("go/9", boards=("7", "9")) == {"go/7": 0.5, "": 0.5}


def test_rules_are_drawn_evenly_and_the_rest_is_the_tasks():
    found = shares(
        "go/9/simple/komi=6.5/plies=100",
        ko=("positional", "simple"),
        suicide=(True, False),
    )
    assert found == {
        "go/9/komi=6.5/plies=100": 0.25,
        "go/9/nosuicide/komi=6.5/plies=100": 0.25,
        "": 0.25,
        "go/9/simple/nosuicide/komi=6.5/plies=100": 0.25,
    }


def test_komi_is_a_normal_draw_rounded_to_half_points():
    found = shares("go/19", komi_stdev=1.0)
    komis = {
        float(name.partition("=")[2]) if name else 7.5: share
        for name, share in found.items()
    }
    assert min(komis) == 4.5
    assert max(komis) == 10.5
    draws = np.random.default_rng(1).normal(0.0, 1.0, 2_000_000)
    draws = draws[np.abs(draws) <= 3.0]
    rounded = 7.5 + np.round(draws * 2) / 2
    for komi, share in komis.items():
        assert share == pytest.approx(float((rounded == komi).mean()), abs=1.5e-3)
    mean = sum(komi * share for komi, share in komis.items())
    assert mean == pytest.approx(7.5)


def test_komi_varies_less_on_smaller_boards_and_now_and_then_more():
    def stdev(**fields):
        found = shares("go/9", **fields)
        komis = [float(n.partition("=")[2]) if n else 7.5 for n in found]
        terms = zip(komis, found.values(), strict=True)
        return math.sqrt(sum(share * (komi - 7.5) ** 2 for komi, share in terms))

    assert stdev(komi_stdev=10.0) == pytest.approx(10.0 * 9 / 19, rel=0.02)
    both = stdev(komi_stdev=2.0, komi_wide_share=0.5, komi_wide_stdev=20.0)
    halves = 0.5 * (2.0 * 9 / 19) ** 2 + 0.5 * (20.0 * 9 / 19) ** 2
    assert both == pytest.approx(math.sqrt(halves), rel=0.02)


def test_a_handicap_is_given_where_there_are_points_for_it():
    found = shares("go/9", boards=("5", "7", "9"), handicap_share=0.3)
    assert found["go/5"] == pytest.approx(1 / 3)
    assert found["go/7"] == pytest.approx(0.7 / 3)
    assert found["go/7/handicap=4"] == pytest.approx(0.3 / 3 / 3)
    assert found["go/9/handicap=9"] == pytest.approx(0.3 / 3 / 8)
    assert "go/7/handicap=5" not in found
    assert shares("go/9/handicap=2", handicap_share=0.5, boards=("9", "7")) == {
        "": 0.5,
        "go/7/handicap=2": 0.5,
    }


def test_every_game_is_one_that_the_tasks_game_holds():
    game = make("go/9")
    variety = GoVariety(
        boards=("7", "8", "9", "7x9"),
        ko=("positional", "situational", "simple"),
        suicide=(True, False),
        komi_stdev=1.0,
        komi_wide_share=0.06,
        handicap_share=0.1,
    )
    found = variants_of("go/9", variety)
    assert len(found) > 500
    for name, _ in found[:: len(found) // 50]:
        assert game.new_state(name).legal_actions()


@pytest.mark.parametrize(
    ("task", "fields", "message"),
    [
        ("connect4", {"komi_stdev": 1.0}, "variety (of connect4)"),
        (
            "go/9/nosuicide/planes=minigo",
            {"komi_stdev": 1.0},
            "variety (of go/9/nosuicide/planes=minigo)",
        ),
        ("go/9", {"boards": ("10",)}, "variant (go/10)"),
        ("go/9", {"boards": ("nine",)}, "task (go/nine)"),
        ("go/9", {"boards": ("9x9",)}, "go/9x9"),
        ("go/9", {"boards": ("9",), "board_weights": (1.0, 1.0)}, "board_weights"),
        ("go/9", {"boards": ("9",), "board_weights": (0.0,)}, "board_weights"),
        ("go/9", {"ko": ("super",)}, "ko (super)"),
    ],
)
def test_what_does_not_fit_is_said(task, fields, message):
    with refused(UsageError, message):
        variants_of(task, GoVariety(**fields))


def test_a_queue_draws_each_game_by_itself():
    variants = [("", 1.0), ("go/7", 3.0)]

    def queue(generation):
        return _core.GameQueue(
            seed=1,
            generation=generation,
            model=0,
            num_games=4000,
            variants=variants,
        )

    names = [queue(1).variant(index) for index in range(4000)]
    assert names.count("go/7") == pytest.approx(3000, abs=100)
    assert names.count("") + names.count("go/7") == 4000
    assert names == [queue(1).variant(index) for index in range(4000)]
    assert names != [queue(2).variant(index) for index in range(4000)]
    with refused(_core.CoreError, "weight (0.000000)"):
        _core.GameQueue(
            seed=1, generation=1, model=0, num_games=1, variants=[("a", 0.0)]
        )
