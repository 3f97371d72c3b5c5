"""Commands that set the clock, in all forms that front ends send."""

import math

import pytest

from tengen.play.gtp.board_commands import TIME_COMMANDS
from tengen.play.session.clock import Clock, TimeSettings


def test_a_clock_limits_a_search(converse):
    conversation = converse(simulations=None)
    # Without the clock, the search would run for a million simulations or more.
    answers = conversation.ask("kgs-time_settings byoyomi 0 0.3 5", "genmove b")
    assert answers[1].startswith("= ")


@pytest.mark.parametrize("left", ["time_left b 5 0", "time_left b 5 3"])
def test_time_that_is_left_counts_before_any_settings(converse, left):
    conversation = converse(simulations=None)
    clock = conversation.engine.clock
    assert clock.budget_s(0, 0, 25) is None
    assert conversation.ask(left) == ["="]
    for player in (0, 1):  # until the other side's time is sent
        assert 0 < clock.budget_s(player, 0, 25) < 5
    # Settings without a limit take precedence.
    again = converse(simulations=None)
    assert again.ask("time_settings 0 1 0", left) == ["=", "="]
    assert again.engine.clock.budget_s(0, 0, 25) is None


def test_no_time_left_is_no_clock_where_nobody_spoke_of_one(converse):
    conversation = converse(simulations=None)
    assert conversation.ask("time_left b 0 0") == ["="]
    assert conversation.engine.clock.budget_s(0, 0, 25) is None
    later = converse(simulations=None)
    assert later.ask("time_left b 9 0", "time_left w 20 2", "time_left b 0 0") == (
        ["="] * 3
    )
    assert later.engine.clock.budget_s(0, 0, 25) == 0
    assert 5 < later.engine.clock.budget_s(1, 0, 25) < 10


@pytest.mark.parametrize(
    ("said", "kind", "numbers"),
    [
        ("time_settings 600 30 5", "canadian", (600, 30, 5)),
        ("time_settings 600 0 0", "absolute", (600,)),
        ("time_settings 0 8 1", "canadian", (0, 8, 1)),  # Lizzie
        ("time_settings 0 1 0", "none", ()),
        ("kgs-time_settings none", "none", ()),
        ("kgs-time_settings byoyomi 300 30 5", "byoyomi", (300, 30, 5)),
        ("kgs-time_settings byoyomi 300 30 0", "absolute", (300,)),
        ("kgs-time_settings canadian 300 30 0", "none", ()),
        ("kata-time_settings none", "none", ()),
        ("kata-time_settings absolute 12.5", "absolute", (12.5,)),
        ("kata-time_settings canadian 60.5 20.5 10", "canadian", (60.5, 20.5, 10)),
        ("kata-time_settings byoyomi 60.5 20.5 3", "byoyomi", (60.5, 20.5, 3)),
        ("kata-time_settings fischer 120 5.5", "fischer", (120, 5.5)),
        ("kata-time_settings Fischer 2147483647 0", "fischer", (1e7, 0)),
        (
            "kata-time_settings fischer-capped 120 5 240 30",
            "fischer",
            (120, 5, 0, 240, 30),
        ),
        (
            "kata-time_settings fischer-capped 120 5 -1 -1.0",
            "fischer",
            (120, 5, 0, math.inf, math.inf),
        ),
    ],
)
def test_what_each_form_means(converse, said, kind, numbers):
    conversation = converse()
    assert conversation.ask(said) == ["="]
    found, wanted = conversation.engine.clock, Clock(TimeSettings(kind, *numbers))
    for spent_s in (0, 1, 500):
        for clock in (found, wanted):
            clock.spend(0, spent_s)
        assert found.budget_s(0, 0, 25) == wanted.budget_s(0, 0, 25)


def test_every_system_is_listed(ask):
    listed = ask("kata-list_time_settings")[0].removeprefix("= ").split()
    for kind in listed:
        assert ask(f"kata-time_settings {kind} 60 10 60 5") == ["="]
    assert set(TIME_COMMANDS) <= set(ask("list_commands")[0].removeprefix("= ").split())
