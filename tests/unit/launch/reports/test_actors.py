"""What several actors do, told as one."""

from __future__ import annotations

from typing import Any

import pytest

from tengen.launch.reports.processes import Acting


def test_the_rates_are_those_of_all_actors() -> None:
    """Each reports 100 frames and 104 evaluations of a second, some 1.5 s apart."""
    actors = Acting(3, are_actors=True)
    names = ["actor-0", "actor-1", "actor-2"]
    told: dict[str, Any] = {}
    for index, name in enumerate(names):
        report: dict[str, Any] = {"num_rows": 100, "num_evaluations": 104}
        report |= {"seconds": 1.0, "mean_return": None, "answer_wait": 0.5}
        report |= {"simulation_busy": 0.3 * index, "room_wait": 0.0}
        told = actors.report(name, index, report, 1.0)
    assert told["actor"] == 2
    assert told["rows_per_s"] == pytest.approx(300, rel=0.05)
    assert told["evaluations_per_s"] == pytest.approx(312, rel=0.05)
    assert told["simulation_busy"] == pytest.approx(0.3)
    assert (told["answer_wait"], told["room_wait"]) == (pytest.approx(0.5), 0.0)
    assert (told["mean_return"], told["mean_length"]) == (None, None)
    for name, mean_return in zip(names[:2], (10.0, 20.0), strict=True):
        report |= {"mean_return": mean_return, "mean_length": 3 * mean_return}
        told = actors.report(name, 0, report, 1.0)
    assert (told["mean_return"], told["mean_length"]) == (15.0, 45.0)
    before = told["rows_per_s"]
    actors.lost("actor-2")  # its 100 a second are left out until it works again
    told = actors.report(names[0], 0, report, 1.0)
    assert told["rows_per_s"] == pytest.approx(before - 100)
    actors.count(2, ["actor-0"])
    told = actors.report("actor-2", 2, {**report, "mean_return": None}, 1.0)
    assert (told["mean_return"], told["mean_length"]) == (20.0, 60.0)


def test_a_silent_actor_is_left_out_of_rates():
    now_s = 0.0
    actors = Acting(2, are_actors=True, clock=lambda: now_s)
    report = {"num_rows": 100, "num_evaluations": 104, "seconds": 1.0}
    report |= {"mean_return": None, "mean_length": None}
    for index in (0, 1):
        told = actors.report(f"actor-{index}", index, report, 1.0)
    assert told["rows_per_s"] == pytest.approx(200)
    now_s = 20.0
    told = actors.report("actor-0", 0, report, 1.0)
    assert told["rows_per_s"] == pytest.approx(100)
