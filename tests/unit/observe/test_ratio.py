"""The verdict on self-play and learner, on worked numbers."""

from __future__ import annotations

from typing import Any

import pytest

from tengen.observe.ratio import ratio
from tengen.observe.roles import RoleProcess

CONFIG = {
    "store": {"limiter": {"samples_per_row": 4.0}},
    "learner": {"batch_size": 50},
}
NOW_S = 10_000.0
PLAYED = {"selfplay": 1.0}


def turn(end_s: float, turn_s: float, num_steps: int = 10) -> dict[str, Any]:
    return {
        "kind": "turn",
        "time_s": NOW_S + end_s,
        "turn_s": turn_s,
        "num_steps": num_steps,
        "total_steps": 300,
        "table": {"num_rows": 5000},
    }


def told(events: list[dict[str, Any]]) -> RoleProcess:
    """Returns a learner that has told of events."""
    process = RoleProcess({"kind": "begin", "time_s": events[0]["time_s"]})
    for event in events:
        process.take(event)
    return process


def begin(at_s: float) -> dict[str, Any]:
    return {"kind": "begin", "time_s": NOW_S + at_s}


@pytest.mark.parametrize(
    ("events", "share", "words"),
    [
        # 10 s of the last 100.
        ([turn(-90, 10)], "10%", "self-play too slow; start another tengen selfplay"),
        ([turn(-60, 40), turn(0, 30)], "70%", "self-play and learner go together"),
        ([turn(-50, 50), turn(0, 48)], "98%", "learner too slow; lower --set store."),
        # The start of a process is not waiting, nor is a turn without steps learning.
        ([begin(-500), turn(-60, 40), turn(0, 30)], "70%", "go together"),
        ([turn(-400, 1, num_steps=0), turn(0, 10)], "100%", "learner too slow"),
        # Half of this turn is older than what is looked at.
        ([turn(-900, 9), turn(-300, 600)], "50%", "go together"),
        # A turn of an hour that is not over yet.
        ([turn(-3600, 60), {"kind": "busy", "time_s": NOW_S}], "100%", "learner too"),
    ],
)
def test_the_share_of_learning_decides(
    events: list[dict[str, Any]], share: str, words: str
) -> None:
    text = ratio(told(events), CONFIG, NOW_S, PLAYED)
    assert text is not None
    assert text.startswith(
        f"the learner is busy {share} of the time, each row was used 3.0 times of 4: "
    )
    assert words in text


def test_before_the_first_steps_there_is_no_verdict() -> None:
    for events in ([begin(-9)], [begin(-9), turn(-1, 1, num_steps=0)]):
        assert ratio(told(events), CONFIG, NOW_S, PLAYED) is None


@pytest.mark.parametrize(
    ("suppliers", "words"),
    [
        ({"selfplay": None}, "nothing comes without selfplay; start tengen selfplay"),
        ({"selfplay": 1.0, "shuffle": None}, "without shuffle; start tengen shuffle"),
        ({"selfplay": 1.0, "shuffle": 0.9}, "shuffle too slow; give tengen shuffle"),
        ({"selfplay": 1.0, "shuffle": 0.8}, "self-play too slow; start another"),
    ],
)
def test_a_learner_that_waits_blames_who_keeps_it_waiting(
    suppliers: dict[str, float | None], words: str
) -> None:
    text = ratio(told([turn(-90, 10)]), CONFIG, NOW_S, suppliers)
    assert text is not None
    assert words in text
    busy = ratio(told([turn(-50, 50), turn(0, 48)]), CONFIG, NOW_S, suppliers)
    assert busy is not None
    assert "learner too slow" in busy


@pytest.mark.parametrize(
    ("turn_s", "words"),
    [
        (10, "actors too slow; make a run with more --actors"),
        (70, "actors and learner go together"),
        (98, "learner too slow; give tengen learn more --threads"),
    ],
)
def test_environments_have_actors(turn_s: float, words: str) -> None:
    events = [turn(-99, 1), turn(0, turn_s)]
    text = ratio(told(events), {"learner": {"batch_size": 50}}, NOW_S, {"actor": 1.0})
    assert text is not None
    assert words in text
    assert "self-play" not in text
