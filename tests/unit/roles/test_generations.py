from concurrent.futures import ThreadPoolExecutor

import pytest

from tengen.errors import UsageError
from tengen.roles.generations import (
    begin_generation,
    claim_writer,
    num_games_kept,
    sealed_generation,
    writer_directory,
)
from tengen.run import RunDirectory
from tengen.store import ExperienceWriter
from tests.unit.store.store_games import random_game, write_generation


@pytest.fixture
def run(tmp_path):
    return RunDirectory.create_or_resume(tmp_path / "run")


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
    monkeypatch.setattr("tengen.roles.generations._MAX_WRITERS", 2)
    held = [claim(run), claim(run)]
    with pytest.raises(UsageError, match="has 2 self-play processes, the most"):
        claim(run)
    assert len(held) == 2


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


def test_games_kept_are_counted_once_wherever_they_are(run):
    folder = writer_directory(run, 0)
    assert num_games_kept(folder) == 0
    write_generation(run.experience, 1, 24, writer=folder.name)
    write_generation(run.experience, 2, 5, writer=folder.name)
    with ExperienceWriter(folder, 3) as writer:
        segment = writer.open_games(3, "tictactoe")
        for index in range(7):
            segment.sink.put(random_game("tictactoe", index, 3))
        segment.close()
    write_generation(run.experience, 1, 24, writer="selfplay-1")
    assert num_games_kept(folder) == 36
