"""What is told of environments whose roles all work at once."""

import dataclasses

import pytest

from tengen.observe import StageTimes, environment_verdict
from tengen.observe.environment_verdict import ENVIRONMENT_ADVICE

EVEN = StageTimes(simulation=0.3, answers=0.4, room=0.2, inference=0.6, learning=0.7)


def test_the_whole_line():
    line = environment_verdict(EVEN, {"export": 0.12, "gate": 0.01}, "")
    assert line == (
        "learner 70% busy, inference 60% busy, actors simulate 30%, wait 60% (answers "
        "40%, room 20%), publishing 12%: actors and learner go together"
    )
    line = environment_verdict(dataclasses.replace(EVEN, inference=None), {}, "")
    assert line.startswith("learner 70% busy, actors simulate 30%, wait ")


@pytest.mark.parametrize(
    ("changed", "busy", "limit"),
    [
        ({}, {}, "even"),
        ({"learning": 0.95}, {}, "learning"),
        ({"learning": 0.84, "room": 0.8, "answers": 0.1}, {}, "learning"),
        ({"learning": 0.95}, {"gate": 0.95}, "gate"),
        ({"learning": 0.95, "simulation": 0.9}, {}, "learning"),
        ({"learning": 0.3}, {}, "playing"),
        ({"learning": 0.3, "inference": 0.9}, {}, "inference"),
        ({"learning": 0.3, "simulation": 0.6}, {}, "simulation"),
        ({"learning": 0.3, "simulation": 0.6, "inference": 0.9}, {}, "inference"),
        ({"learning": 0.3, "inference": None}, {}, "playing"),
    ],
)
def test_what_limits(changed, busy, limit):
    line = environment_verdict(dataclasses.replace(EVEN, **changed), busy, "rest")
    advice = ENVIRONMENT_ADVICE[limit].format(lighter="rest")
    assert line.partition(": ")[2] == advice


def test_every_advice_is_for_something_that_limits():
    cases = test_what_limits.pytestmark[0].args[1]
    assert {limit for *_, limit in cases} == set(ENVIRONMENT_ADVICE)
