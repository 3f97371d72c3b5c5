"""Games, models and counts between a mirror and its run's host."""

from __future__ import annotations

import shutil

import pytest

from tengen.cli import main
from tengen.errors import RunError, UsageError
from tengen.experience import MAX_WRITERS, writer_directory
from tengen.experience.games.segment import recorded_games
from tengen.observe.status import read_status
from tengen.remote import Mirror
from tengen.remote.messages import RunClient
from tengen.run import RunDirectory, find_files, read_actor_totals, write_actor_totals
from tests.integration.runs import wait_for
from tests.refusals import refused
from tests.unit.remote.playing import (
    fails,
    games_at,
    journals_of,
    play,
    play_near,
    sent,
    writer_of,
)


def test_a_segment_of_a_mirror_is_a_segment_of_the_run(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    first, second = play(mirror, 5), play(mirror, 3)
    wait_for(lambda: games_at(host.run) == [(first, 5), (second, 3)])
    for path in find_files(mirror.run.experience, "selfplay-*/*/*.npz"):
        there = host.run.experience / path.relative_to(mirror.run.experience)
        assert there.read_bytes() == path.read_bytes()
    # Of what was claimed and is sealed no journal is left.
    wait_for(lambda: not journals_of(host.run, first) + journals_of(host.run, second))


def test_a_role_that_is_made_anew_sends_from_another_folder(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    with writer_of(mirror):
        pass
    assert mirror.new_incarnation() == mirror.place.incarnation + 1
    # So fast that no part of its journal was sent.
    host.close()
    generation = play(mirror, 3)
    host.open()
    wait_for(lambda: games_at(host.run) == [(generation, 3)])


def test_finished_games_are_there_before_their_generation_is(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    generation = play(mirror, 7, seals=False)
    folder = writer_directory(host.run, mirror.place.index)
    wait_for(lambda: recorded_games(folder, generation).indices == list(range(7)))


def test_no_two_writers_have_a_number(host, mirror_at, tmp_path):
    mirrors = [mirror_at(tmp_path / f"far-{i}") for i in range(2)]
    played = [play(mirror, 1) for mirror in (*mirrors, *mirrors)]
    played += [play_near(host.run), play_near(host.run)]
    assert len(set(played)) == 6
    # The first ones are the run's own, which may be scaled.
    indices = [mirror.place.index for mirror in mirrors]
    assert sorted(indices) == [MAX_WRITERS - 2, MAX_WRITERS - 1]


def test_an_outage_costs_nothing(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far")
    played = [play(mirror, 4)]
    wait_for(lambda: len(games_at(host.run)) == 1)
    host.close()
    # As many as were claimed ahead.
    while mirror.next_generation() is not None:
        played.append(play(mirror, 2))
    assert len(played) >= 4
    assert "has not sent the next generation" in mirror.waits_for
    host.open()
    wait_for(lambda: len(games_at(host.run)) == len(played))
    assert [generation for generation, _ in games_at(host.run)] == played
    assert mirror.next_generation() not in played


def test_a_stop_is_heard_while_a_backlog_is_sent(host, mirror_at, tmp_path):
    """Also by the next process, for which a process leaves what it could not send."""
    lines, heard, errors = [], [], [RunError("it passes")]

    class Watched(Mirror):
        look_s = retry_s = 0.0

        def __init__(self, path, client, *args, **options):
            super().__init__(path, client, *args, **options)
            ask = client.ask

            def watch(message):
                if message.get("kind") == "segment":
                    host.run.request_stop()
                    heard.append(self.run.stop_requested())
                if message["ask"] == "end" and errors:
                    raise errors.pop()
                return ask(message)

            client.ask = watch

    mirror = mirror_at(tmp_path / "far", say=lines.append)
    host.close()
    played = [(play(mirror, 2), 2) for _ in range(4)]
    wait_for(lambda: lines)
    mirror.close()
    assert lines[-1].endswith(f"unsent files stay in {mirror.run.path}")
    host.open()
    mirror = mirror_at(tmp_path / "far", kind=Watched, say=lines.append)
    wait_for(lambda: games_at(host.run) == played)
    assert heard[-1]
    lines.clear()
    mirror.close()
    assert (errors, lines) == ([], [])


def test_a_number_that_is_sent_and_gone_is_not_played_again(host, mirror_at, tmp_path):
    """Its file may go before the stock has heard that it was sent."""
    mirror = mirror_at(tmp_path / "far")
    first = play(mirror, 2)
    numbers = range(first, first + 9)
    host.close()
    played = [first, *(play(mirror, 2) for _ in range(7))]
    host.open()
    wait_for(lambda: len(games_at(host.run)) == 8)
    sent(mirror)
    mirror._stock.put(numbers)
    assert mirror.next_generation() not in played


def test_a_backlog_is_bounded(host, mirror_at, tmp_path):
    mirror = mirror_at(tmp_path / "far", backlog_bytes=2000)
    play(mirror, 1)
    sent(mirror)
    host.close()
    play(mirror, 200)
    assert mirror.next_generation() is None
    assert "games wait for" in mirror.waits_for
    host.open()
    wait_for(lambda: mirror.next_generation() is not None)


@pytest.mark.parametrize("num_lost_bytes", [0, 30])
def test_a_process_that_was_killed_goes_on_with_its_place(
    host, mirror_at, tmp_path, num_lost_bytes
):
    """Also where the power failed, and the run's host has more than this one."""
    mirror = mirror_at(tmp_path / "far")
    generation = play(mirror, 3, seals=False)
    (path,) = journals_of(mirror.run, generation)
    size = path.stat().st_size
    wait_for(
        lambda: max(p.stat().st_size for p in journals_of(host.run, generation)) == size
    )
    place = mirror.place
    mirror.close()
    with open(path, "r+b") as file:
        file.truncate(size - num_lost_bytes)
    mirror = mirror_at(tmp_path / "far")
    assert mirror.place.index == place.index
    assert play(mirror, range(2 if num_lost_bytes else 3, 6)) == generation
    wait_for(lambda: games_at(host.run) == [(generation, 6)])


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
    fails(first, "is in use by process")


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
    with refused(UsageError, "process"):
        mirror_at(tmp_path / "other", "actor", index=3)
    # The last counts are sent at the end.
    write_actor_totals(mirror.run, 3, (150, 9))
    mirror.close()
    # Another host takes its place, in a folder that has nothing.
    again = mirror_at(tmp_path / "third", "actor", index=3)
    assert read_actor_totals(again.run, 3) == (150, 9)


@pytest.mark.parametrize(("name", "value"), [("__version__", "9.9"), ("PYTHON", "3.9")])
def test_both_sides_need_the_same_versions(
    host, mirror_at, tmp_path, monkeypatch, name, value
):
    monkeypatch.setattr(f"tengen.remote.messages.{name}", value)
    with refused(UsageError, f"({value})"):
        mirror_at(tmp_path / "far")


def test_other_folders_are_refused(host, mirror_at, tmp_path):
    own = RunDirectory.create_or_resume(tmp_path / "own")
    own.write_run({"config": {"task": "tictactoe"}})
    own.models.publish(0, lambda folder: None)
    with refused(UsageError, "run ("):
        mirror_at(tmp_path / "own")
    mirror = mirror_at(tmp_path / "far")
    mirror.close()
    path = tmp_path / "far" / "mirror.json"
    path.write_text(path.read_text().replace(mirror.place.run, "0" * 16))
    with refused(UsageError, "run ("):
        mirror_at(tmp_path / "far")


def test_a_host_that_never_answers_is_an_error(host, tmp_path, mirror_at):
    class Impatient(Mirror):
        patience_s = 0.0

    host.close()
    with refused(UsageError, "0 s"):
        mirror_at(tmp_path / "far", kind=Impatient)
    host.open()


@pytest.mark.parametrize("lost", ["look", "claim"])
def test_a_host_that_is_lost_while_a_mirror_begins_is_waited_for(
    host, mirror_at, tmp_path, monkeypatch, lost
):
    ask = RunClient.ask
    said: list[str] = []

    def once_lost(client, what, **fields):
        if what == lost and not said:
            host.close()
            try:
                return ask(client, what, **fields)
            finally:
                host.open()
        return ask(client, what, **fields)

    monkeypatch.setattr(RunClient, "ask", once_lost)
    mirror = mirror_at(tmp_path / "far", say=said.append)
    assert said[0].startswith("waits for the run's host: run (tcp://127.0.0.1:")
    play(mirror, 1)
