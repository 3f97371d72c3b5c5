"""The bottleneck of a run in one line, whoever acts and whether roles take turns."""

from dataclasses import replace

import pytest

from tengen.observe import (
    Shares,
    StageTimes,
    at_once_verdict,
    environment_verdict,
    verdict,
)
from tengen.observe.verdict import ADVICE, AT_ONCE_ADVICE

TURNS = Shares(playing=0.7, learning=0.27, inference_busy=0.7, tree_busy=0.25)
PLAYING = Shares(playing=0.99, learning=0.7, inference_busy=0.7, tree_busy=0.25)
BUSY = {"selfplay": 0.99, "learn": 0.7, "export": 0.12, "gate": 0.01, "rate": 0.1}
STAGES = StageTimes(simulation=0.3, answers=0.4, room=0.2, inference=0.6, learning=0.7)


def in_turn(role, **changed):
    return verdict(role, replace(TURNS, **changed), "use less")


def at_once(role, **changed):
    if role == "selfplay":
        return at_once_verdict(role, PLAYING, BUSY | changed)
    busy = {"gate": changed.pop("gate", 0.01), "export": 0.12}
    return environment_verdict(replace(STAGES, **changed), busy, "use less")


CASES = [
    (in_turn, "selfplay", "inference", {}),
    (in_turn, "selfplay", "learning", {"learning": 0.6, "playing": 0.4}),
    (in_turn, "selfplay", "publishing", {"playing": 0.4}),
    (in_turn, "selfplay", "gate", {"playing": 0.4, "gate": 0.2}),
    (in_turn, "selfplay", "rating", {"playing": 0.3, "gate": 0.2, "rating": 0.21}),
    (in_turn, "selfplay", "tail", {"inference_busy": 0.5}),
    (in_turn, "selfplay", "batches", {"batch_fill": 0.4}),
    (in_turn, "selfplay", "tree", {"inference_busy": 0.3, "tree_busy": 0.65}),
    (in_turn, "actor", "inference", {}),
    (in_turn, "actor", "learning", {"learning": 0.6, "playing": 0.2}),
    (in_turn, "actor", "publishing", {"playing": 0.3}),
    (in_turn, "actor", "tree", {"tree_busy": 0.8}),
    (at_once, "selfplay", "even", {}),
    (at_once, "selfplay", "learning", {"learn": 0.95}),
    (at_once, "selfplay", "playing", {"learn": 0.3}),
    (at_once, "selfplay", "gate", {"gate": 0.95}),
    (at_once, "selfplay", "gate", {"gate": 0.95, "learn": 0.95}),
    (at_once, "actor", "even", {}),
    (at_once, "actor", "learning", {"learning": 0.95}),
    (at_once, "actor", "learning", {"learning": 0.84, "room": 0.8, "answers": 0.1}),
    (at_once, "actor", "gate", {"learning": 0.95, "gate": 0.95}),
    (at_once, "actor", "learning", {"learning": 0.95, "simulation": 0.9}),
    (at_once, "actor", "playing", {"learning": 0.3}),
    (at_once, "actor", "inference", {"learning": 0.3, "inference": 0.9}),
    (at_once, "actor", "simulation", {"learning": 0.3, "simulation": 0.6}),
    (
        *(at_once, "actor", "inference"),
        {"learning": 0.3, "simulation": 0.6, "inference": 0.9},
    ),
    (at_once, "actor", "playing", {"learning": 0.3, "inference": None}),
]


@pytest.mark.parametrize(("tell", "role", "limit", "changed"), CASES)
def test_the_bottleneck(tell, role, limit, changed):
    advice = (ADVICE if tell is in_turn else AT_ONCE_ADVICE)[role][limit]
    line = tell(role, **changed)
    assert line.partition(": ")[2] == advice.format(lighter="use less")


@pytest.mark.parametrize(
    ("tell", "table"), [(in_turn, ADVICE), (at_once, AT_ONCE_ADVICE)]
)
def test_every_advice_is_for_something_that_limits(tell, table):
    told = {(role, limit) for each, role, limit, _ in CASES if each is tell}
    assert told == {(role, limit) for role, row in table.items() for limit in row}


@pytest.mark.parametrize(
    ("line", "begins"),
    [
        (
            in_turn("selfplay", playing=0.5, batch_fill=0.93, rating=0.06, gate=0.04),
            "self-play 50% (net 70%, trees 25%, batches 93% full); learning 27%; "
            "rating 6%; publishing 13%: the net takes most; lower --set ",
        ),
        (
            in_turn("actor"),
            "acting 70% (net 70%, steps 25%, batches 100% full); learning 27%: the net",
        ),
        (
            at_once("selfplay"),
            "at once, self-play 99% (net 70%, trees 25%, batches 100% full); learning "
            "70%; publishing 12%; rating 10%: self-play and learner go together",
        ),
        (
            at_once("actor"),
            "learner 70% busy, inference 60% busy, actors simulate 30%, wait 60% "
            "(answers 40%, room 20%), publishing 12%: actors and learner go together",
        ),
        (
            at_once("actor", inference=None),
            "learner 70% busy, actors simulate 30%, wait ",
        ),
    ],
)
def test_the_line_tells_all_stages_worth_telling(line, begins):
    assert line.startswith(begins)
