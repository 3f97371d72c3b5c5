"""The places of mirrors, and who may come back to one; without a service."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.experience import ExperienceWriter, claim_ahead, writer_directory
from tengen.experience.games.files import SET_ASIDE, writer_files
from tengen.remote.members import Members
from tengen.run import RunDirectory, evict_mirrors, read_mirrors
from tests.refusals import refused
from tests.unit.remote.playing import NO_PLACE

NAME, PROCESS = 32 * "a", "7 on far"


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    made = RunDirectory.create_or_resume(tmp_path / "run")
    made.write_run({"config": {"task": "tictactoe"}})
    return made


@pytest.fixture
def members(run: RunDirectory) -> Iterator[Members]:
    made = Members(run, "tictactoe", lambda text: None)
    yield made
    made.close()


def is_free(run: RunDirectory) -> bool:
    try:
        ExperienceWriter(writer_directory(run, 0), 1000).release()
    except UsageError:
        return False
    return True


@pytest.mark.parametrize(
    "come_back",
    [
        lambda members, events: members.hear(NAME, events),
        lambda members, events: members.join(NAME, "selfplay", 0, PROCESS),
        lambda members, events: members.end(NAME, events, keeps_place=True),
    ],
    ids=["asks", "joins", "ends"],
)
def test_who_was_evicted_while_away_is_told_when_it_comes_back(
    run: RunDirectory, members: Members, come_back: Callable[[Members, int], object]
) -> None:
    """Also before the service has looked whom it is to part with."""
    member = members.join(NAME, "selfplay", 0, PROCESS)
    members.end(NAME, member.record.events, keeps_place=True)
    assert not is_free(run)
    evict_mirrors(run, "selfplay", 0)
    with refused(UsageError, NO_PLACE):
        come_back(members, member.record.events)
    assert read_mirrors(run) == []
    assert is_free(run)


def test_who_the_run_has_started_again_has_its_place(
    run: RunDirectory, members: Members
) -> None:
    members.join(NAME, "selfplay", 0, PROCESS)
    evict_mirrors(run, "selfplay", 0)
    again = members.join(NAME, "selfplay", 0, PROCESS, is_vouched=True)
    assert read_mirrors(run) == [again.record]
    assert not is_free(run)


def test_who_is_asking_at_this_moment_loses_its_place_to_the_next(
    run: RunDirectory, members: Members
) -> None:
    member = members.join(NAME, "selfplay", 0, PROCESS, is_vouched=True)
    member.heard_s += 1e6
    other = members.join(32 * "b", "selfplay", 0, PROCESS, is_vouched=True)
    assert [one.mirror for one in read_mirrors(run)] == [other.record.mirror]


def test_one_that_was_only_away_goes_on(run: RunDirectory, members: Members) -> None:
    member = members.join(NAME, "selfplay", 0, PROCESS)
    members.end(NAME, member.record.events, keeps_place=True)
    assert [record.is_away for record in read_mirrors(run)] == [True]
    assert members.hear(NAME, member.record.events) is member
    assert [record.is_away for record in read_mirrors(run)] == [False]


def test_one_that_waits_for_an_answer_is_not_silent(members: Members) -> None:
    events = members.join(NAME, "selfplay", 0, PROCESS).record.events
    assert members.num_here(-1.0) == 0
    with members.working(NAME, events):
        assert members.num_here(-1.0) == 1
    assert members.num_here(-1.0) == 0
    assert members.num_here(900.0) == 1


def test_who_was_parted_with_is_parted_with_once(
    run: RunDirectory, members: Members
) -> None:
    events = members.join(NAME, "selfplay", 0, PROCESS).record.events
    members.end(NAME, events, keeps_place=False)
    again = members.join(32 * "b", "selfplay", 0, PROCESS)
    folder = writer_directory(run, 0)
    begun = claim_ahead(run, folder, again.record.incarnation, "tictactoe", 1)
    with refused(UsageError, NO_PLACE):
        members.end(NAME, events, keeps_place=False)
    with refused(UsageError, NO_PLACE), members.working(NAME, events):
        pass
    members.look(3600.0)
    assert read_mirrors(run) == [again.record]
    # Its successor's generation is not given up.
    assert begun == [1]
    assert writer_files(folder, SET_ASIDE) == []


def test_a_process_that_another_one_followed_is_refused(members: Members) -> None:
    first = members.join(NAME, "selfplay", 0, PROCESS).record.events
    member = members.join(NAME, "selfplay", 0, "8 on far")
    with refused(UsageError, "process 8 on far"):
        members.hear(NAME, first)
    with (
        refused(UsageError, "process 8 on far"),
        members.working(NAME, first),
    ):
        pass
    assert members.hear(NAME, member.record.events) is member


def test_a_question_of_the_services_last_moment_costs_no_place(
    run: RunDirectory, members: Members
) -> None:
    member = members.join(NAME, "selfplay", 0, PROCESS)
    events = member.record.events
    members.close()
    for ask in (
        lambda: members.hear(NAME, events),
        lambda: members.working(NAME, events).__enter__(),
        lambda: members.join(NAME, "selfplay", 0, PROCESS),
    ):
        with refused(RunError, "service of run ("):
            ask()
    assert read_mirrors(run) == [member.record]


def test_a_full_run_gives_the_place_that_was_silent_longest(
    members: Members, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tengen.remote.members.MAX_WRITERS", 3)
    members.join(32 * "0", "actor", 0, PROCESS)
    first, second = (members.join(32 * n, "selfplay", None, PROCESS) for n in "12")
    with refused(UsageError, "3 self-play processes"):
        members.join(NAME, "selfplay", None, PROCESS)
    first.heard_s -= 61
    second.heard_s -= 99
    joined = members.join(NAME, "selfplay", None, PROCESS)
    assert joined.record.index == second.record.index
    members.hear(32 * "1", first.record.events)
    with refused(UsageError, NO_PLACE):
        members.hear(32 * "2", second.record.events)
