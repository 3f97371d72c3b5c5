"""What comes once training has ended, on roles that only count."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import RunError
from tengen.launch import Budget
from tengen.roles import RunConfig, StopListener
from tengen.run import RunDirectory
from tests.unit.launch.fake_roles import (
    Fake,
    Roles,
    Turn,
    config,
    in_a_moment,
    nothing,
    played,
    train,
    until_stopped,
    without_room,
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunDirectory:
    monkeypatch.setattr("tengen.launch.schedule._POLL_S", 0.01)
    return RunDirectory.create_or_resume(tmp_path / "run")


def played_by_one_of_two(fake: Fake) -> dict[str, Any]:
    return {**played(fake), "num_rows": 1, "num_evaluations": 1}


def with_target(*settings: str) -> RunConfig:
    return config("agent.target.opponent=random", "agent.iterations=9", *settings)


def test_those_that_acted_close_the_run_once_it_has_its_models(
    run: RunDirectory,
) -> None:
    """All at once, until each finds nothing left; nobody learns any more."""
    begun = threading.Barrier(2, timeout=900)
    left = [3, 2]

    def accept(fake: Fake) -> dict[str, Any] | None:
        newest = run.models.latest()
        if newest == 2:
            return None
        run.models.publish((newest or 0) + 1, lambda folder: None)
        return {"candidate": run.models.latest()}

    def evaluate(index: int) -> Turn:
        def turn(fake: Fake) -> dict[str, Any] | None:
            if fake.num_turns == 1:
                begun.wait()
            left[index] -= 1
            return {"part": index} if left[index] >= 0 else None

        return turn

    scripts: dict[str, Turn] = {
        "selfplay": played_by_one_of_two,
        "selfplay-1": played_by_one_of_two,
        "gate": accept,
        "eval": evaluate(0),
        "eval-1": evaluate(1),
    }
    made = with_target("launch.roles.selfplay.count=2")
    roles, journal = train(run, scripts, Budget(models=2), made)
    assert run.models.numbers() == [1, 2]
    assert len(journal.of("eval")) == 5
    assert roles.fakes["selfplay"].is_closed
    # Without its models, by a budget in games, it closes nothing.
    scripts["gate"] = nothing
    roles, journal = train(run, scripts, Budget(games=10, models=3), made)
    assert journal.of("eval") == []
    assert "eval" not in roles.fakes


def test_one_that_fails_in_closing_ends_the_others(run: RunDirectory) -> None:
    run.models.publish(0, lambda folder: None)

    def fail(fake: Fake) -> dict[str, Any]:
        raise RunError("the target is gone")

    def evaluate(fake: Fake) -> dict[str, Any]:
        time.sleep(0.01)
        return {"part": 0}

    scripts: dict[str, Turn] = {"eval": evaluate, "eval-1": fail}
    made = with_target("launch.roles.selfplay.count=2")
    with pytest.raises(RunError, match="the target is gone"):
        train(run, scripts, Budget(models=0), made)


def test_a_stop_ends_the_closing(run: RunDirectory) -> None:
    run.models.publish(0, lambda folder: None)
    begun = threading.Event()

    def evaluate(fake: Fake) -> dict[str, Any]:
        begun.set()
        assert fake.stopped.wait(900)
        return {"stopped": True}

    def stopping(stop: StopListener, roles: Roles) -> None:
        assert begun.wait(900)
        run.request_stop()

    scripts: dict[str, Turn] = {"eval": evaluate}
    _, journal = train(run, scripts, Budget(models=0), with_target(), stopping)
    assert journal.of("eval") == []


def publishing(run: RunDirectory, most: int) -> Turn:
    """A gate that makes a model each turn, up to a number."""

    def accept(fake: Fake) -> dict[str, Any] | None:
        newest = run.models.latest() or 0
        if newest == most:
            return None
        run.models.publish(newest + 1, lambda folder: None)
        return {"candidate": newest + 1}

    return accept


def evaluated_once(fake: Fake) -> dict[str, Any] | None:
    return {"part": 0} if fake.num_turns == 1 else None


def test_a_run_without_anybody_that_acts_is_closed_by_one_process(
    run: RunDirectory,
) -> None:
    """Which has the learner's cores: that has saved and ended."""
    run.models.publish(0, lambda folder: None)
    scripts: dict[str, Turn] = {"gate": publishing(run, 2), "eval": evaluated_once}
    made = with_target("agent.learn_from=other")
    roles, journal = train(run, scripts, Budget(models=2), made)
    assert len(journal.of("eval")) == 1
    assert roles.num_threads["eval"] == roles.num_threads["learn"] == 8


def test_a_run_that_has_its_models_learns_no_more(run: RunDirectory) -> None:
    """Nor does it export or gate: what comes of that is a model too many."""
    run.models.publish(1, lambda folder: None)

    def fail(fake: Fake) -> dict[str, Any]:
        raise RunError(f"{fake.roles[0]} had a turn")

    roles = ("selfplay", "learn", "export", "gate", "rate")
    scripts: dict[str, Turn] = {**dict.fromkeys(roles, fail), "eval": evaluated_once}
    _, journal = train(run, scripts, Budget(models=1), with_target())
    assert [name for name, _ in journal.reports] == ["eval"]


def test_no_model_too_many_is_made_before_the_call_sees_that_it_is_over(
    run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.launch.schedule._POLL_S", 0.3)
    scripts: dict[str, Turn] = {
        "selfplay": until_stopped,
        "gate": publishing(run, 9),
        "eval": evaluated_once,
    }
    _, journal = train(run, scripts, Budget(models=2), with_target())
    assert run.models.numbers() == [1, 2]
    assert len(journal.of("eval")) == 1


def test_the_end_makes_no_model_too_many_and_closes(run: RunDirectory) -> None:
    """The last model may come of what is learned once the games are played."""
    run.models.publish(0, lambda folder: None)
    is_played = threading.Event()
    accept = publishing(run, 9)

    def play(fake: Fake) -> dict[str, Any]:
        is_played.set()
        return played(fake)

    def gate(fake: Fake) -> dict[str, Any] | None:
        # By threads it finds nothing: all comes after the budget.
        late = is_played.is_set() and threading.current_thread() is main
        return accept(fake) if late else None

    main = threading.current_thread()
    scripts: dict[str, Turn] = {"selfplay": play, "gate": gate, "eval": evaluated_once}
    made = with_target()
    roles, journal = train(run, scripts, Budget(games=10, models=2), made)
    assert run.models.numbers() == [0, 1, 2]
    assert len(journal.of("eval")) == 1
    assert roles.fakes["learn"].is_closed


def test_one_without_room_is_not_waited_for_once_others_closed_the_run(
    run: RunDirectory,
) -> None:
    run.models.publish(0, lambda folder: None)

    def evaluate(fake: Fake) -> dict[str, Any] | None:
        time.sleep(0.05)
        return evaluated_once(fake)

    scripts: dict[str, Turn] = {"eval": evaluate, "eval-1": in_a_moment}
    made = with_target("launch.roles.selfplay.count=2")
    _, journal = train(run, scripts, Budget(models=0), made)
    assert len(journal.of("eval")) == 1


def test_a_closing_role_that_never_has_room_ends_the_run(run: RunDirectory) -> None:
    """Also where the minutes of the call are over, as it comes after them."""
    run.models.publish(0, lambda folder: None)
    scripts: dict[str, Turn] = {"eval": without_room, "eval-1": without_room}
    made = with_target("launch.roles.selfplay.count=2")
    line = r"role \(eval-0, eval-1\) has had no room in the cluster for "
    with pytest.raises(RunError, match=line):
        train(run, scripts, Budget(models=0, minutes=1e-6), made)
