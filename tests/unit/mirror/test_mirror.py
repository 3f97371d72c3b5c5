"""Games, models and counts between a mirror and its run's host."""

from __future__ import annotations

import shutil
import threading
import time

import pytest

from tengen.cli import main
from tengen.errors import RunError, UsageError
from tengen.experience import (
    ExperienceWriter,
    Manifest,
    begin_generation,
    claim_writer,
    has_orphan,
    writer_directory,
)
from tengen.experience.games.files import SET_ASIDE
from tengen.experience.games.segment import recorded_games
from tengen.mirror.run_client import RunClient
from tengen.mirror.segments import take_segment
from tengen.observe.status import read_status
from tengen.roles.patience import patiently
from tengen.run import (
    RunDirectory,
    evict_mirrors,
    find_files,
    read_actor_totals,
    read_mirrors,
    write_actor_totals,
)
from tests.integration.runs import wait_for
from tests.unit.experience.store_games import random_game


def play(mirror, writer, indices, seals=True):
    """Plays some games of the next generation as a role would; returns its number."""
    begun = begin_generation(mirror.run, writer, "tictactoe", mirror.next_generation)
    assert begun is not None
    generation, _, segment = begun
    for index in indices:
        segment.sink.put(random_game("tictactoe", index, generation))
    segment.close()
    if seals:
        writer.seal(generation)
    return generation


def writer_of(mirror):
    folder = writer_directory(mirror.run, mirror.place.index)
    return ExperienceWriter(folder, mirror.new_incarnation())


def claimed(mirror):
    wait_for(lambda: mirror.next_generation() is not None)


def games_at(run: RunDirectory) -> list[tuple[int, int]]:
    """Returns (generation, games) of every segment, as the learner meets them."""
    manifest = Manifest(run.experience)
    manifest.discover()
    return [(entry.generation, entry.num_games) for entry in manifest]


def test_a_segment_of_a_mirror_is_a_segment_of_the_run(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        first = play(mirror, writer, range(5))
        second = play(mirror, writer, range(3))
        wait_for(lambda: len(games_at(host.run)) == 2)
    assert games_at(host.run) == [(first, 5), (second, 3)]
    for path in find_files(mirror.run.experience, "selfplay-*/*/*.npz"):
        there = host.run.experience / path.relative_to(mirror.run.experience)
        assert there.read_bytes() == path.read_bytes()
    # Of what was claimed and is sealed no journal is left.
    wait_for(
        lambda: {first, second}.isdisjoint(
            int(p.stem) for p in find_files(host.run.experience, "*/*/*.journal")
        )
    )


def test_a_role_that_is_made_anew_sends_from_another_folder(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    writer_of(mirror).release()
    with writer_of(mirror) as writer:
        assert int(writer._folder.name) == mirror.place.incarnation + 1
        # So fast that no part of its journal was sent.
        host.close()
        generation = play(mirror, writer, range(3))
        host.open()
        wait_for(lambda: games_at(host.run) == [(generation, 3)])


def test_finished_games_are_there_before_their_generation_is(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(7), seals=False)
        folder = writer_directory(host.run, mirror.place.index)
        wait_for(lambda: recorded_games(folder, generation).indices == list(range(7)))


def test_no_two_writers_have_a_number(host, mirror_at, tmp_path):
    mirrors = [mirror_at(tmp_path / f"far-{i}") for i in range(2)]
    for mirror in mirrors:
        claimed(mirror)
    near = claim_writer(host.run, host.run.new_incarnation("selfplay"))
    generation, _, segment = begin_generation(host.run, near, "tictactoe")
    segment.close()
    numbers = [set(mirror._claimed) for mirror in mirrors] + [{generation}]
    assert sum(len(one) for one in numbers) == len(set().union(*numbers))
    indices = [mirror.place.index for mirror in mirrors]
    assert near.directory == writer_directory(host.run, 0)
    # The first ones are the run's own, which may be scaled.
    assert sorted(indices) == [254, 255]
    near.release()


def test_an_outage_costs_nothing(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        played = [play(mirror, writer, range(4))]
        wait_for(lambda: len(games_at(host.run)) == 1)
        host.close()
        # As many as were claimed ahead.
        while mirror.next_generation() is not None:
            played.append(play(mirror, writer, range(2)))
        assert len(played) >= 4
        assert "the next number comes from" in mirror.waits_for
        host.open()
        wait_for(lambda: len(games_at(host.run)) == len(played))
        assert [generation for generation, _ in games_at(host.run)] == played
        claimed(mirror)


def test_a_backlog_is_bounded(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far", backlog_bytes=2000)
    claimed(mirror)
    with writer_of(mirror) as writer:
        play(mirror, writer, range(1))
        wait_for(lambda: mirror._games.unsent_bytes() == 0)
        host.close()
        play(mirror, writer, range(200))
        assert mirror.next_generation() is None
        assert "games wait for" in mirror.waits_for
        host.open()
        wait_for(lambda: mirror.next_generation() is not None)


def test_a_process_that_was_killed_goes_on_with_its_place(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(3), seals=False)
    place = mirror.place
    mirror.close()
    mirror = mirror_at(tmp_path / "far")
    assert mirror.place.index == place.index
    with writer_of(mirror) as writer:
        assert play(mirror, writer, range(3, 6)) == generation
        wait_for(lambda: games_at(host.run) == [(generation, 6)])


def test_a_copy_that_is_ahead_of_its_original_is_left_alone(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(3), seals=False)
        name = f"{generation:06d}.journal"
        there = lambda: find_files(host.run.experience, f"*/*/{name}")  # noqa: E731
        (path,) = find_files(mirror.run.experience, f"*/*/{name}")
        wait_for(lambda: max(p.stat().st_size for p in there()) == path.stat().st_size)
    mirror.close()
    # The power failed: the last frames never reached this host's disk.
    with open(path, "r+b") as file:
        file.truncate(path.stat().st_size - 30)
    mirror = mirror_at(tmp_path / "far")
    with writer_of(mirror) as writer:
        play(mirror, writer, range(2, 6))
        wait_for(lambda: games_at(host.run) == [(generation, 6)])


def test_who_is_gone_for_good_leaves_what_it_sent(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(3), seals=False)
        (path,) = find_files(mirror.run.experience, f"*/*/{generation:06d}.journal")
        there = lambda: find_files(  # noqa: E731
            host.run.experience, f"*/*/{generation:06d}.journal"
        )
        wait_for(lambda: max(p.stat().st_size for p in there()) == path.stat().st_size)
    mirror.close()
    assert not has_orphan(host.run)  # it may come back
    host.close()
    host.open(away_s=0.2)
    wait_for(lambda: games_at(host.run) == [(generation, 3)])
    wait_for(lambda: read_mirrors(host.run) == [])
    assert find_files(host.run.experience, "*/*/*.journal") == []
    # The place is free, and the folder gets another one or the same, with no games.
    mirror._client.deadline_s = None
    with pytest.raises(UsageError, match="has no place in this run any more"):
        mirror._client.claim(1)


def test_a_place_that_the_run_gives_is_taken_over_at_once(host, mirror_at, tmp_path):
    lost = mirror_at(tmp_path / "far", index=5, is_vouched=True)
    claimed(lost)
    with writer_of(lost) as writer:
        generation = play(lost, writer, range(3), seals=False)
        wait_for(lambda: lost._games.unsent_bytes() == 0)
    # Nobody has said that the host is gone: the run started another process.
    again = mirror_at(tmp_path / "other", index=5, is_vouched=True)
    assert again.place.index == 5
    # What the first had sent is the run's; its generation is not gone on with.
    assert games_at(host.run) == [(generation, 3)]
    claimed(again)
    assert again.next_generation() > generation
    wait_for(lambda: lost._error is not None)
    with pytest.raises(UsageError, match="has no place in this run any more"):
        lost.next_generation()


def test_numbers_of_one_that_is_gone_are_used_by_nobody(host, mirror_at, tmp_path):
    """It plays on, cut off, and comes back: its games are not taken a second time."""
    gone = mirror_at(tmp_path / "far")
    claimed(gone)
    writer = writer_of(gone)
    host.close()
    generation = play(gone, writer, range(4))
    writer.release()
    host.open(away_s=0.2)
    gone._is_over.set()
    gone._wake.set()
    gone._thread.join()
    wait_for(lambda: read_mirrors(host.run) == [])
    near = claim_writer(host.run, host.run.new_incarnation("selfplay"))
    number, _, segment = begin_generation(host.run, near, "tictactoe")
    segment.close()
    near.release()
    assert number > generation
    gone._held.release()
    host.close()
    host.open()
    with pytest.raises(UsageError, match="was not claimed for"):
        mirror_at(tmp_path / "far")
    assert games_at(host.run) == []


def test_a_process_with_the_run_directory_takes_a_mirrors_place(
    host, mirror_at, tmp_path
):
    mirror = mirror_at(tmp_path / "far", index=0, is_vouched=True)
    folder = writer_directory(host.run, 0)
    with pytest.raises(UsageError, match="is in use by process"):
        ExperienceWriter(folder, host.run.new_incarnation("selfplay"))
    evict_mirrors(host.run, "selfplay", 0)
    incarnation = host.run.new_incarnation("selfplay")
    patiently(
        lambda: ExperienceWriter(folder, incarnation), threading.Event()
    ).release()
    wait_for(lambda: mirror._error is not None)


def test_who_was_parted_with_is_not_parted_with_again(
    host, mirror_at, tmp_path, monkeypatch
):
    """Its place may be another's by then, whose journals would be sealed."""
    monkeypatch.setattr("tengen.mirror.service._LOOK_S", 0.05)
    host.close()
    host.open()
    mirror_at(tmp_path / "far")
    members = host.service._members
    (member,) = members._members.values()
    looks = iter([[member]])
    parted = []

    def look(away_s):
        for found in looks:
            return found
        raise RunError("the disk refuses")

    def part_with(member):
        parted.append(member)

    monkeypatch.setattr(members, "look", look)
    monkeypatch.setattr(members, "part_with", part_with)
    wait_for(lambda: parted)
    time.sleep(0.5)
    assert parted == [member]
    monkeypatch.undo()


def test_a_slow_disk_for_one_mirror_holds_up_no_other(
    host, mirror_at, tmp_path, monkeypatch
):
    begun, may_end = threading.Event(), threading.Event()

    def slowly(*args):
        begun.set()
        assert may_end.wait(60)
        return take_segment(*args)

    monkeypatch.setattr("tengen.mirror.service.take_segment", slowly)
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(3))
        assert begun.wait(60)
        other = mirror_at(tmp_path / "other")
        assert other._client.look("")["stop"] is False
        assert other.place.index != mirror.place.index
        assert games_at(host.run) == []
        may_end.set()
        wait_for(lambda: games_at(host.run) == [(generation, 3)])


def test_a_clean_end_gives_the_place_back(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    claimed(mirror)
    with writer_of(mirror) as writer:
        generation = play(mirror, writer, range(3))
    mirror.close()
    assert games_at(host.run) == [(generation, 3)]
    assert read_mirrors(host.run) == []
    assert find_files(host.run.experience, "*/*/*.journal") == []
    # The numbers that it has not begun are free again.
    assert find_files(host.run.experience, f"*/*/*.{SET_ASIDE}") == []
    near = claim_writer(host.run, host.run.new_incarnation("selfplay"))
    number, _, segment = begin_generation(host.run, near, "tictactoe")
    segment.close()
    near.release()
    assert number == generation + 1


def test_a_mirror_may_begin_when_there_are_models(host, mirror_at, tmp_path):
    host.run.models.publish(0, lambda folder: (folder / "meta.json").touch())
    assert mirror_at(tmp_path / "far").run.models.numbers() == [0]


def test_a_model_that_arrives_damaged_is_none(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    tell = host.service.service.questions["model"]
    wrong = {"sha256": "0" * 64}
    host.service.service.questions["model"] = lambda message: [
        {**file, **wrong} for file in tell(message)
    ]
    host.run.models.publish(0, lambda folder: (folder / "meta.json").touch())
    wait_for(lambda: mirror._away_since_s is not None)
    assert mirror.run.models.numbers() == []
    wrong.clear()
    wait_for(lambda: mirror.run.models.numbers() == [0])


def test_what_the_run_says_is_heard(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    assert mirror.run.read_run()["config"] == {"task": "tictactoe"}
    host.run.write_run({"config": {"task": "tictactoe", "seed": 3}})
    wait_for(lambda: mirror.run.read_run()["config"].get("seed") == 3)
    host.run.request_stop()
    wait_for(mirror.run.stop_requested)
    host.run.clear_stop()
    wait_for(lambda: not mirror.run.stop_requested())
    # Of this host alone: the run goes on, and the role here ends.
    mirror.run.request_stop()
    host.run.write_run({"config": {"task": "tictactoe", "seed": 4}})
    wait_for(lambda: mirror.run.read_run()["config"].get("seed") == 4)
    assert mirror.run.stop_requested()
    assert not host.run.stop_requested()
    mirror.close()
    # The next process does not find the request of the one before.
    mirror = mirror_at(tmp_path / "far")
    assert not mirror.run.stop_requested()


def test_a_copy_of_a_mirrors_folder_takes_its_place(host, mirror_at, tmp_path):
    first = mirror_at(tmp_path / "far")
    shutil.copytree(tmp_path / "far", tmp_path / "copy")
    mirror_at(tmp_path / "copy")
    wait_for(lambda: first._error is not None)
    with pytest.raises(UsageError, match="is worked on by process"):
        first.next_generation()


def test_events_are_read_at_the_host(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    name = f"selfplay-command-{mirror.place.events}.jsonl"
    with open(mirror.run.events / name, "a") as file:
        for word in ("begin", "turn"):
            file.write(f'{{"kind": "{word}"}}\n')
            file.flush()
            text = (mirror.run.events / name).read_text()
            wait_for(lambda text=text: (host.run.events / name).read_text() == text)


def test_the_status_of_the_run_is_read_at_the_mirror(host, tmp_path, mirror_at, capsys):
    host.close()
    host.open(status=lambda: read_status(host.run))
    mirror = mirror_at(tmp_path / "far")
    assert mirror.run.path != host.run.path
    assert main(["status", str(mirror.run.path)]) == 0
    text = capsys.readouterr().out
    assert str(host.run.path) in text
    assert f"seen from {mirror.run.path}" in text
    path = mirror.run.path / "host_status.json"
    path.write_text('{"schema": 1, "time_s": 0, "report": {"run": 1}}')
    assert main(["status", str(mirror.run.path)]) == 1
    assert "is damaged" in capsys.readouterr().err


def test_an_actor_counts_on_from_what_the_host_knows(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far", "actor", index=3)
    write_actor_totals(mirror.run, 3, (100, 7))
    wait_for(lambda: read_actor_totals(host.run, 3) == (100, 7))
    with pytest.raises(UsageError, match="is in use by process"):
        mirror_at(tmp_path / "other", "actor", index=3)
    mirror.close()
    # Another host takes its place, in a folder that has nothing.
    again = mirror_at(tmp_path / "third", "actor", index=3)
    assert read_actor_totals(again.run, 3) == (100, 7)


def test_who_may_not_come_in(host, mirror_at, tmp_path, monkeypatch):
    monkeypatch.setattr("tengen.mirror.run_client.__version__", "9.9")
    with pytest.raises(UsageError, match=r"tengen \(9.9\) of .* must be"):
        mirror_at(tmp_path / "far")
    monkeypatch.undo()
    own = RunDirectory.create_or_resume(tmp_path / "own")
    own.write_run({"config": {"task": "tictactoe"}})
    own.models.publish(0, lambda folder: None)
    with pytest.raises(UsageError, match="is a run of its own"):
        mirror_at(tmp_path / "own")
    mirror_at(tmp_path / "far").close()
    shutil.copytree(tmp_path / "far", tmp_path / "far-2")
    other = RunDirectory.create_or_resume(tmp_path / "run-2")
    assert other.is_new
    text = (tmp_path / "far-2" / "mirror.json").read_text()
    known = mirror_at(tmp_path / "far-3").place.run
    (tmp_path / "far-2" / "mirror.json").write_text(text.replace(known, "0" * 16))
    with pytest.raises(UsageError, match="is not the one that this mirror was made of"):
        mirror_at(tmp_path / "far-2")


def test_a_host_that_never_answers_is_an_error(host, tmp_path, monkeypatch, mirror_at):
    monkeypatch.setattr("tengen.mirror.mirror._PATIENCE_S", 0.0)
    host.close()
    with pytest.raises(UsageError, match=r"does not answer.*, for 0 s"):
        mirror_at(tmp_path / "far")
    host.open()


@pytest.mark.parametrize("lost", ["look", "claim"])
def test_a_host_that_is_lost_while_a_mirror_begins_is_waited_for(
    host, mirror_at, tmp_path, monkeypatch, lost
):
    ask = RunClient._ask
    said: list[str] = []

    def once_lost(client, what, **fields):
        if what == lost and not said:
            host.close()
            try:
                return ask(client, what, **fields)
            finally:
                host.open()
        return ask(client, what, **fields)

    monkeypatch.setattr(RunClient, "_ask", once_lost)
    mirror = mirror_at(tmp_path / "far", say=said.append)
    assert said[0].startswith("waits for the run's host: run (tcp://127.0.0.1:")
    claimed(mirror)
