"""Places of mirrors in a run: kept, taken over, given back and given up."""

from __future__ import annotations

import threading

import pytest

from tengen.errors import RunError, UsageError
from tengen.experience import (
    ExperienceWriter,
    OpenSegment,
    has_orphan,
    writer_directory,
)
from tengen.experience.games.journal import read_journal
from tengen.remote.games import append_segment
from tengen.remote.members import Members
from tengen.roles import RoleContext
from tengen.roles.role import patiently
from tengen.run import evict_mirrors, find_files, read_mirrors
from tests.integration.runs import wait_for
from tests.refusals import refused
from tests.unit.remote.playing import (
    NO_PLACE,
    fails,
    games_at,
    journals_of,
    kill,
    play,
    play_near,
    sent,
    writer_of,
)


def part_with_silent_ones(host):
    """Has a closed host find out now, as it would in two hours, and opens it."""
    members = Members(host.run, "tictactoe", host.lines.append)

    def are_gone() -> bool:
        members.look(0.2)
        return read_mirrors(host.run) == []

    wait_for(are_gone)
    members.close()
    host.open()


def test_who_is_gone_for_good_leaves_what_it_sent(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    generation = play(mirror, 3, seals=False)
    mirror.close()
    assert not has_orphan(host.run)  # it may come back
    host.close()
    part_with_silent_ones(host)
    assert games_at(host.run) == [(generation, 3)]
    assert find_files(host.run.experience, "*/*/*.journal") == []
    # The place is free, and the folder gets another one or the same, with no games.
    mirror._client.deadline_s = None
    with refused(UsageError, NO_PLACE):
        mirror._client.ask("claim", num_wanted=1)


def test_a_place_that_the_run_gives_is_taken_over_at_once(host, mirror_at, tmp_path):
    lost = mirror_at(tmp_path / "far", index=5, is_vouched=True)
    generation = play(lost, 3, seals=False)
    sent(lost)
    # Nobody has said that the host is gone: the run started another process.
    other = mirror_at(tmp_path / "other", index=5, is_vouched=True)
    assert other.place.index == 5
    # What the first had sent is the run's; its generation is not gone on with.
    assert games_at(host.run) == [(generation, 3)]
    assert play(other, 1) > generation
    fails(lost, NO_PLACE)
    lost.close()
    # It starts again, and takes the place in its turn.
    again = mirror_at(tmp_path / "far", index=5, is_vouched=True)
    play(again, 1)
    fails(other, NO_PLACE)


def test_numbers_of_one_that_is_gone_are_used_by_nobody(host, mirror_at, tmp_path):
    """It plays on, cut off, and comes back: its games are not taken a second time."""
    gone = mirror_at(tmp_path / "far")
    with writer_of(gone):
        host.close()
    generation = play(gone, 4)
    # Before the host is back, or it would send its games.
    kill(gone)
    part_with_silent_ones(host)
    assert play_near(host.run) > generation
    lines = []
    again = mirror_at(tmp_path / "far", say=lines.append)
    # Its games are put aside, whatever place it gets, and it plays on.
    (line,) = lines
    assert "1 generations, of which the run has what was sent before" in line
    (aside,) = find_files(again.run.path, "given-up/*/*/*/*.npz")
    assert aside.stem == f"{generation:06d}"
    number = play(again, 2)
    wait_for(lambda: (number, 2) in games_at(host.run))
    assert number > generation


def test_a_process_with_the_run_directory_takes_a_mirrors_place(
    host, mirror_at, tmp_path
):
    mirror = mirror_at(tmp_path / "far", index=0, is_vouched=True)
    folder = writer_directory(host.run, 0)
    with refused(UsageError, "process"):
        ExperienceWriter(folder, host.run.new_incarnation("selfplay"))
    evict_mirrors(host.run, "selfplay", 0)
    incarnation = host.run.new_incarnation("selfplay")
    patiently(lambda: ExperienceWriter(folder, incarnation), RoleContext()).release()
    fails(mirror, NO_PLACE)


def test_who_is_evicted_is_told_when_it_comes_back(host, mirror_at, tmp_path):
    """Before the service has looked: the eviction is not published away."""
    mirror = mirror_at(tmp_path / "far", index=0, is_vouched=True)
    play(mirror, 2, seals=False)
    mirror.close()
    (record,) = read_mirrors(host.run)
    assert record.is_away
    evict_mirrors(host.run, "selfplay", 0)
    lines = []
    again = mirror_at(tmp_path / "far", say=lines.append)
    assert "lost its place while it was away" in lines[0]
    assert again.place.index != 0
    folder = writer_directory(host.run, 0)
    ExperienceWriter(folder, host.run.new_incarnation("selfplay")).release()
    # The same while it is connected.
    evict_mirrors(host.run, "selfplay", again.place.index)
    fails(again, NO_PLACE)
    assert read_mirrors(host.run) == []


def test_a_clean_end_gives_the_place_back(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    first = play(mirror, 3)
    mirror.close()
    assert games_at(host.run) == [(first, 3)]
    assert read_mirrors(host.run) == []
    assert find_files(host.run.experience, "*/*/*.journal") == []
    # The numbers that it has not begun are free again, and nothing was given up.
    lines = []
    mirror = mirror_at(tmp_path / "far", say=lines.append)
    second = play(mirror, 2)
    wait_for(lambda: games_at(host.run) == [(first, 3), (second, 2)])
    assert second == first + 1
    assert lines == []


def test_a_clean_end_gives_an_actors_place_back(host, mirror_at, tmp_path):
    mirror_at(tmp_path / "far", "actor", index=0).close()
    assert read_mirrors(host.run) == []
    host.run.lock("actor-0").release()


def test_a_disk_that_fails_once_costs_no_games(host, mirror_at, tmp_path, monkeypatch):
    mirror = mirror_at(tmp_path / "far")
    generation = play(mirror, 5, seals=False)
    sent(mirror)
    kill(mirror)
    failures = []

    def once(path):
        if not failures:
            failures.append(path)
            raise RunError(f"journal ({path}) cannot be read, Input/output error")
        return read_journal(path)

    monkeypatch.setattr("tengen.remote.games.read_journal", once)
    host.close()
    part_with_silent_ones(host)
    assert failures
    assert games_at(host.run) == [(generation, 5)]
    assert find_files(host.run.experience, "*/*/*.refused") == []


@pytest.mark.parametrize("damage", ["header", "game", "frames"])
def test_what_is_no_journal_is_refused_and_told(host, mirror_at, tmp_path, damage):
    mirror = mirror_at(tmp_path / "far")
    generation = play(mirror, 5, seals=False)
    sent(mirror)
    kill(mirror)
    (path,) = journals_of(host.run, generation + 1)
    if damage == "header":
        path.write_bytes(b"TENGENJL and then something else")
    else:
        path.unlink()
        task = "connect4" if damage == "game" else "tictactoe"
        meta = {"kind": "games", "game": task, "generation": int(path.stem)}
        segment = OpenSegment(path, meta)
        segment.append(b"no game")
        segment.close()
    host.close()
    part_with_silent_ones(host)
    # It costs no other generation.
    assert games_at(host.run) == [(generation, 5)]
    assert find_files(host.run.experience, f"*/*/{path.stem}.refused")
    assert "except 1 files that are not journals" in host.lines[-1]


def test_a_place_leaves_little_behind(host, mirror_at, tmp_path):
    for name in ("first", "second"):
        mirror = mirror_at(tmp_path / name)
        play(mirror, 0, seals=False)
        folder = writer_directory(host.run, mirror.place.index)
        (folder / str(mirror.place.incarnation) / "000001.part").touch()
        kill(mirror)
        newest = max(int(path.stem) for path in folder.glob("*/*.journal"))
        host.close()
        part_with_silent_ones(host)
        # Neither a folder of the process nor a mark for each number.
        assert [path.name for path in folder.iterdir()] == ["lock"]
        assert (host.run.experience / "given_up").read_text() == f"{newest}\n"
        assert play_near(host.run) == newest + 1


def test_one_that_sends_keeps_nobody_else_waiting(
    host, mirror_at, tmp_path, monkeypatch
):
    sends, goes_on = threading.Event(), threading.Event()

    def slow(*args):
        sends.set()
        assert goes_on.wait(900)
        return append_segment(*args)

    first, second = (mirror_at(tmp_path / name) for name in ("first", "second"))
    monkeypatch.setattr("tengen.remote.service.append_segment", slow)
    generation = play(first, 2)
    assert sends.wait(900)
    second._client.ask("look")
    second._client.ask("claim", num_wanted=30)
    goes_on.set()
    wait_for(lambda: games_at(host.run) == [(generation, 2)])
