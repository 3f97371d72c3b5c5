"""Limits of time and memory set with INFO."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tengen import games
from tengen.games.gomoku import GomokuRules
from tengen.play.gomocup.engine import ManagerLimits
from tengen.play.session.searches import most_simulations


def limits(*infos, begun_s=0.0, now_s=0.0, own_bytes=100 << 20):
    made = ManagerLimits(GomokuRules(15, False), begun_s, own_bytes)
    for info in infos:
        made.set(info)
    made.start(now_s)
    return made


def test_nobody_says_anything():
    assert limits().budget(0) == (None, None)
    assert limits("timeout_match 0", "time_left 2147483647").budget(0) == (None, None)
    assert limits().tree_bytes is None
    assert limits("max_memory 0").tree_bytes is None


@given(
    turn_ms=st.integers(-1, 10**7),
    match_ms=st.integers(-1, 10**8),
    left_ms=st.integers(-(10**6), 2**31 - 1) | st.none(),
    age_s=st.floats(0, 100),
    ply=st.integers(0, 225),
)
def test_no_move_has_what_is_not_there(turn_ms, match_ms, left_ms, age_s, ply):
    infos = [f"timeout_turn {turn_ms}", f"timeout_match {match_ms}"]
    infos += [] if left_ms is None else [f"time_left {left_ms}"]
    clear_s, most_s = limits(*infos, now_s=age_s).budget(ply)
    assert 0 <= clear_s <= most_s
    assert most_s <= 0.9 * max(turn_ms, 0) / 1000
    assert most_s == 0 or most_s <= turn_ms / 1000 - 0.15
    if left_ms is not None and left_ms < 2**31 - 1:
        assert most_s == 0 or most_s <= left_ms / 1000 - 0.15
    elif left_ms is None and match_ms > 0:
        assert most_s == 0 or most_s <= match_ms / 1000 - age_s - 0.15


def test_a_turn_of_0_is_no_search():
    assert limits("timeout_turn 0").budget(0) == (0.0, 0.0)


def test_a_match_ends_however_many_moves_it_has():
    """The session measures time itself if the manager does not send the time left."""
    own = limits("timeout_match 60000", now_s=2.0)
    used_s = 2.0
    for ply in range(0, 225, 2):
        used_s += own.budget(ply)[1]
        own.spend(own.budget(ply)[1])
    assert 40 < used_s < 60
    # A new match gets the full time, without the startup of the process.
    own.start(1000.0)
    assert own.budget(0)[0] > limits("timeout_match 60000", now_s=2.0).budget(0)[0]


def test_what_the_manager_tells_counts():
    own = limits("timeout_match 60000", "time_left 30000", now_s=20.0)
    assert own.budget(0) == limits("time_left 30000").budget(0)
    own.spend(4.98)
    assert own.budget(0) == pytest.approx(limits("time_left 25000").budget(0))
    own.set("TIME_LEFT 60000")
    assert own.budget(0) == limits("time_left 60000").budget(0)


def test_a_long_match_does_not_lengthen_a_turn():
    assert limits("timeout_turn 5000", "time_left 1000000").budget(0)[1] == 4.35


def test_memory():
    # 16 MiB are reserved, and there may be two trees of at least 1 MiB.
    least = 118 << 20
    assert limits(f"max_memory {least + (2 << 20)}").tree_bytes == 2 << 20
    assert limits(f"max_memory {least}").problem is None
    assert limits(f"max_memory {least - 1}").problem == (
        f"max_memory ({least - 1}) must be at least {least} bytes, for the program and "
        "this model"
    )
    assert limits("max_memory 60", "max_memory 0").problem is None


def test_a_value_that_is_none_changes_nothing():
    own = limits("timeout_turn 1000", "timeout_turn", "timeout_turn 1e3", "rule five")
    assert own.budget(0)[1] == pytest.approx(0.75)
    assert own.problem is None
    assert len(own.take_notes()) == 3
    assert own.take_notes() == []


@pytest.fixture
def megabytes(monkeypatch):
    """Makes a session see a process of 100 MiB."""
    monkeypatch.setattr("tengen.play.gomocup.engine.resident_bytes", lambda: 100 << 20)


def test_trees_grow_no_further_than_memory_allows(converse, megabytes):
    max_memory = 118 << 20
    talk = converse(simulations=10_000, keeps_tree=True)
    most = most_simulations(games.make("gomoku/6"), 1 << 20)
    answers = talk.ask("START 6", f"INFO max_memory {max_memory}", "BEGIN", "TURN 0,0")
    told = [line for line in answers if line.startswith("MESSAGE")]
    counts = [int(line.split("simulations ")[1].split(",")[0]) for line in told]
    assert 1000 < most < 10_000
    # A search does not end early before half of its simulations.
    assert len(counts) == 2
    assert all(most / 2 < count <= most for count in counts)


def test_too_little_memory_is_said_where_a_move_is_asked_for(ask, megabytes):
    answers = ask("START 6", "INFO max_memory 83886080", "BEGIN", "RESTART")
    error = f"ERROR max_memory (83886080) must be at least {118 << 20} bytes, for "
    assert answers[1].startswith(error)
    assert answers[2].startswith(error)
    assert len(answers) == 3


def test_searches_keep_to_the_time(converse):
    """Checks the time given to a search after INFO commands."""
    talk, given_s = converse(simulations=None), []
    search = talk.engine.search

    def spy(moves, limits, *rest):
        given_s.append((limits.seconds, limits.last_s, limits.simulations))
        return search(moves, limits, *rest)

    talk.engine.search = spy
    lines = ["INFO timeout_turn 300", "BEGIN", "INFO timeout_turn 0", "TURN 0,0"]
    talk.ask("START 6", *lines)
    (seconds, last_s, simulations), fast = given_s
    assert seconds == last_s == pytest.approx(0.12)
    assert simulations == talk.engine.most > 10**6
    assert fast[:2] == (0.0, 0.0)
    assert math.isfinite(seconds)
