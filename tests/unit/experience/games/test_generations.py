import os
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tengen.errors import RunError, UsageError
from tengen.experience import SegmentReader
from tengen.experience.games.generations import (
    adopt_writer,
    begin_generation,
    claim_writer,
    has_orphan,
    sealed_generation,
    writer_directory,
)
from tengen.overrides import override
from tengen.recipes import make_config
from tengen.roles import write_config
from tengen.run import RunDirectory, find_files
from tests.refusals import refused
from tests.unit.experience.store_games import random_game, write_generation


@pytest.fixture
def run(tmp_path):
    made = RunDirectory.create_or_resume(tmp_path / "run")
    write_config(made, make_config("tictactoe", None, None))
    return made


def claim(run):
    return claim_writer(run, run.new_incarnation("selfplay"))


def begin(run, writer):
    generation, recorded, segment = begin_generation(run, writer, "tictactoe")
    segment.close()
    return generation, recorded.indices


def test_each_process_takes_a_writer_of_its_own(run):
    first, second = claim(run), claim(run)
    assert [w.directory.name for w in (first, second)] == ["selfplay-0", "selfplay-1"]
    first.release()
    assert claim(run).directory == writer_directory(run, 0)


def test_a_writer_with_unfinished_games_comes_first(run):
    first, second = claim(run), claim(run)
    begin(run, second)
    first.release()
    second.release()
    assert claim(run).directory == writer_directory(run, 1)


def test_all_writers_taken(run, monkeypatch):
    monkeypatch.setattr("tengen.experience.games.generations.MAX_WRITERS", 2)
    held = [claim(run), claim(run)]
    with refused(UsageError, "2 self-play"):
        claim(run)
    assert len(held) == 2


@pytest.mark.slow
def test_hundreds_of_processes_have_a_writer_each(run):
    start_s = time.monotonic()
    held = [claim(run) for _ in range(300)]
    # Those that are taken are not tried one after the other: that was 0.2 s each.
    assert time.monotonic() - start_s < 900
    assert {writer.directory.name for writer in held} == {
        f"selfplay-{number}" for number in range(300)
    }
    assert [begin(run, writer)[0] for writer in (held[0], held[299])] == [1, 2]


def test_no_two_writers_play_the_same_generation(run):
    writers = [claim(run) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        begun = list(pool.map(lambda writer: begin(run, writer)[0], writers))
    assert sorted(begun) == list(range(1, 9))


def test_a_writer_goes_on_with_its_own(run):
    first, second = claim(run), claim(run)
    assert [begin(run, first)[0], begin(run, second)[0]] == [1, 2]
    first.release()
    again = claim(run)
    assert begin(run, again) == (1, [])
    # Sealed by hand: the next number is beyond what anyone has begun.
    for journal in again.directory.glob("*/*.journal"):
        journal.rename(journal.with_suffix(".npz"))
    assert sealed_generation(again.directory) == 1
    assert begin(run, again)[0] == 3


def test_temporaries_are_no_generations(run):
    folder = writer_directory(run, 0) / "1"
    folder.mkdir(parents=True)
    assert sealed_generation(folder.parent) == 0
    for name in ("000003.npz", ".tmp-host-1-0-0-000009.npz"):
        (folder / name).touch()
    assert sealed_generation(folder.parent) == 3


def test_the_number_of_a_segment_that_was_given_up_is_not_used_again(run):
    path = write_generation(run.experience, 4, 2)
    path.rename(path.with_suffix(".damaged"))
    writer = claim(run)
    assert sealed_generation(writer.directory) == 4
    assert begin(run, writer) == (5, [])
    other = claim(run)
    assert begin(run, other) == (6, [])


def test_journals_of_a_sealed_generation_are_cleared(run):
    """A kill between the segment and the removal of its journals leaves them."""
    writer = claim(run)
    segment = begin_generation(run, writer, "tictactoe")[2]
    segment.sink.put(random_game("tictactoe", 0, 1))
    segment.close()
    (journal,) = writer.directory.glob("*/*.journal")
    kept = journal.read_bytes()
    sealed = writer.seal(1).read_bytes()
    journal.write_bytes(kept)
    writer.release()
    again = claim(run)
    assert sealed_generation(again.directory) == 0
    assert begin(run, again) == (1, [0])
    assert again.seal(1) is None
    assert again.unsealed() == []
    assert sealed_generation(again.directory) == 1
    assert [p.read_bytes() for p in again.directory.glob("*/[0-9]*.npz")] == [sealed]


def test_games_of_a_dead_process_wait_for_another(run):
    first, second = claim(run), claim(run)
    begin(run, first)
    begin(run, second)
    assert not has_orphan(run)
    second.release()
    assert has_orphan(run)
    with run.lock("train"):
        assert has_orphan(run)
        first.release()
        # Whatever train's own process left, train goes on with.
        assert claim(run).directory == writer_directory(run, 1)
        assert not has_orphan(run)
    assert has_orphan(run)
    assert claim(run).directory == writer_directory(run, 0)


def test_restarts_leave_nothing_that_grows(run):
    for _ in range(5):
        writer = claim(run)
        begin(run, writer)
        for name in (".tmp-elsewhere-1-a-b-000001.unfinished", "000007.journal.tmp"):
            (writer.directory / str(run.incarnations("selfplay")[-1]) / name).touch()
        writer.seal(1)
        writer.release()
        run.forget_incarnations("selfplay", run.incarnations("selfplay")[-1])
    writer = claim(run)
    left = sorted(path.name for path in writer.directory.rglob("*"))
    assert left == ["6", "lock"]
    assert run.incarnations("selfplay") == [5, 6]


def test_where_locks_end_at_the_host_the_second_writer_wins(run):
    first = claim(run)
    generation, _, segment = begin_generation(run, first, "tictactoe")
    for index in range(2):
        segment.sink.put(random_game("tictactoe", index, 1))
    segment.close()
    # Another file of the name: so little does the lock hold for the other host.
    (first.directory / "lock").unlink()
    # It goes on with what it finds, and no game is in the segment twice.
    second = claim(run)
    assert second.directory == first.directory
    again, recorded, segment = begin_generation(run, second, "tictactoe")
    assert (again, recorded.indices) == (generation, [0, 1])
    for index in (1, 2):
        segment.sink.put(random_game("tictactoe", index, 1))
    segment.close()
    for write in (
        lambda: first.seal(1),
        lambda: first.keep_unfinished(1, []),
        lambda: first.open_games(2, "tictactoe"),
    ):
        with refused(RunError, "locks"):
            write()
    with SegmentReader(second.seal(1)) as reader:
        assert reader.column("game_index").tolist() == [0, 1, 2]


def test_a_generation_that_is_sealed_meanwhile_counts(run, monkeypatch):
    """Its journal goes, its segment comes, between two looks at the folders."""
    first, second = claim(run), claim(run)
    begin(run, first)
    (journal,) = first.directory.glob("*/*.journal")
    looks = []

    def look(folder, pattern):
        found = find_files(folder, pattern)
        if folder == run.experience:
            looks.append(pattern)
            if len(looks) == 1:
                journal.rename(journal.with_suffix(".npz"))
        return found

    monkeypatch.setattr("tengen.experience.games.generations.find_files", look)
    assert begin(run, second)[0] == 2
    assert [Path(look).suffix for look in looks[:2]] == [".journal", ".npz"]


def test_folders_may_go_while_others_look(tmp_path, monkeypatch):
    (tmp_path / "selfplay-0" / "1").mkdir(parents=True)
    (tmp_path / "selfplay-0" / "2").mkdir()
    (tmp_path / "selfplay-0" / "2" / "000001.npz").touch()
    scandir = os.scandir

    def gone(path):
        if str(path).endswith("/1"):
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr("os.scandir", gone)
    found = find_files(tmp_path, "selfplay-*/*/*.npz")
    assert [path.name for path in found] == ["000001.npz"]


def test_the_writers_of_a_call_are_left_to_its_own_processes(run):
    """``tengen train`` has three here; who plays by itself is the fourth writer."""
    settings = ["launch.roles.selfplay.count=3"]
    write_config(run, override(make_config("tictactoe", None, None), settings))
    assert claim(run).directory == writer_directory(run, 0)
    with run.lock("train"):
        assert claim(run).directory == writer_directory(run, 3)
        begin(run, claim(run))  # of writer 4, which lives
        assert not has_orphan(run)


def test_what_a_process_left_that_is_no_more_is_adopted(run):
    writers = [claim(run) for _ in range(3)]
    for writer in writers:
        begin(run, writer)
    writers[1].release()
    numbers = iter(range(100, 200))
    assert adopt_writer(run, lambda: next(numbers), 2) is None  # writer 1 comes back
    writers[2].release()
    found = adopt_writer(run, lambda: next(numbers), 2)
    assert found.directory == writer_directory(run, 2)
    assert begin(run, found)[0] == 3
    assert adopt_writer(run, lambda: next(numbers), 2) is None  # it is held now
