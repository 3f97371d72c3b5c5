"""Parts of a generation that are sealed while the rest of it is played."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from store_games import random_game

from tengen import _core
from tengen.experience import ExperienceWriter, OpenGeneration, SegmentReader
from tengen.experience.games.files import writer_files
from tengen.experience.games.generations import sealed_generation

NUM_GAMES = 6


def play(folder, incarnation):
    """Plays what is missing of generation 1; seals a part after each second game."""
    with ExperienceWriter(folder, incarnation) as writer:
        kept = set(writer.recorded_games(1).indices)
        numbers = iter(range(incarnation + 1, incarnation + 100))
        segment = writer.open_games(1, "tictactoe")
        opened = OpenGeneration(writer, 1, "tictactoe", segment, lambda: next(numbers))
        for index in range(NUM_GAMES):
            if index in kept:
                continue
            opened.sink.put(random_game("tictactoe", index, 1))
            opened.keep_unfinished([f"in flight beside {index}".encode()])
            if index % 2 == 1:
                opened.seal_part()
        opened.close()
        writer.seal(1)


def games_of(folder):
    """The outcome and plies of each game that is sealed; fails where one is twice."""
    found = {}
    for path in writer_files(folder, "npz"):
        with SegmentReader(path) as reader:
            columns = reader.game_columns()
        ends = columns["num_plies"].cumsum()
        for place, index in enumerate(columns["game_index"].tolist()):
            assert index not in found
            begin = ends[place] - columns["num_plies"][place]
            actions = columns["action"][begin : ends[place]]
            found[index] = bytes([columns["outcome"][place]]) + actions.tobytes()
    return found


def expected():
    found = {}
    for index in range(NUM_GAMES):
        record = random_game("tictactoe", index, 1)
        actions = b"".join(ply.action.to_bytes(2, "little") for ply in record.plies)
        found[index] = bytes([int(record.outcome)]) + actions
    return found


def test_a_part_is_for_learners_while_the_rest_is_played(tmp_path):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 4) as writer:
        numbers = iter((5, 9))
        segment = writer.open_games(1, "tictactoe")
        opened = OpenGeneration(writer, 1, "tictactoe", segment, lambda: next(numbers))
        opened.sink.put(random_game("tictactoe", 0, 1))
        opened.seal_part()
        assert set(games_of(folder)) == {0}
        assert opened.recorded().indices == [0]
        # It is not over, for who asks and for a restart.
        assert sealed_generation(folder) == 0
        assert writer.unsealed() == [1]
        opened.sink.put(random_game("tictactoe", 3, 1))
        opened.keep_unfinished([b"one in flight"])
        assert opened.recorded().indices == [0, 3]
        assert opened.num_appended == 2
        opened.seal_part()
        assert opened.unfinished() == [b"one in flight"]
        opened.close()
        writer.seal(1)
        assert opened.unfinished() == []
    assert sealed_generation(folder) == 1
    assert set(games_of(folder)) == {0, 3}


def test_the_games_are_those_of_one_segment(tmp_path):
    play(tmp_path / "selfplay-0", 1)
    assert games_of(tmp_path / "selfplay-0") == expected()
    assert len(writer_files(tmp_path / "selfplay-0", "npz")) == 3
    assert writer_files(tmp_path / "selfplay-0", "journal") == []


CHILD = """
import sys
from pathlib import Path
sys.path[:0] = {folders!r}
from test_open_generation import play
play(Path(sys.argv[1]), 1)
"""


@pytest.mark.parametrize(
    "fault",
    [
        "seal.gathered:1",
        "seal.published:1",
        "seal.journal_removed:1",
        "seal.gathered:2",
        "seal.published:2",
        "seal.journal_removed:2",
        "seal.published:3",
        "seal.journal_removed:3",
        "publish.renamed:1:npz",
        "publish.renamed:4:unfinished",
    ],
)
def test_a_kill_loses_and_doubles_nothing(tmp_path, fault):
    folder = tmp_path / "selfplay-0"
    folders = [str(folder) for folder in Path(__file__).parents[:2]]
    code = CHILD.format(folders=folders)
    child = subprocess.run(
        [sys.executable, "-P", "-c", code, str(folder)],
        env={**os.environ, "TENGEN_FAULT": fault},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL
    before = games_of(folder)
    assert before.items() <= expected().items()
    play(folder, 100)
    assert games_of(folder) == expected()
    assert before.items() <= games_of(folder).items()
    assert writer_files(folder, "journal") == []


def test_who_has_no_room_for_a_part_seals_it_later(tmp_path, monkeypatch):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        numbers = iter(range(2, 9))
        segment = writer.open_games(1, "tictactoe")
        opened = OpenGeneration(writer, 1, "tictactoe", segment, lambda: next(numbers))
        opened.sink.put(random_game("tictactoe", 0, 1))

        def full(*_):
            raise _core.DiskFullError("disk is full")

        with monkeypatch.context() as patch:
            patch.setattr("tengen.experience.games.segment.publish_file", full)
            with pytest.raises(_core.DiskFullError):
                opened.seal_part()
        assert games_of(folder) == {}
        opened.sink.put(random_game("tictactoe", 1, 1))
        opened.seal_part()
        assert set(games_of(folder)) == {0, 1}
        assert opened.num_appended == 2
        opened.close()
        writer.seal(1)
    assert set(games_of(folder)) == {0, 1}
