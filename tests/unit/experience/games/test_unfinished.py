"""The file of games in flight."""

import random

from store_games import random_game

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.errors import RunError
from tengen.experience import ExperienceWriter
from tengen.experience.games.segment import seal
from tengen.games import core_game, make
from tests.refusals import refused


def test_the_last_copy_is_what_a_restart_finds(tmp_path):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        assert writer.unfinished_games(3) == []
        writer.keep_unfinished(3, [b"one", b"", b"three"])
        writer.keep_unfinished(3, [b"two", b"\x00\xff"])
        writer.keep_unfinished(4, [b"other"])
        assert writer.unfinished_games(3) == [b"two", b"\x00\xff"]
    with ExperienceWriter(folder, 10) as writer:
        # Killed before its first copy, it has that of the one before.
        assert writer.unfinished_games(3) == [b"two", b"\x00\xff"]
        writer.keep_unfinished(3, [])
        assert writer.unfinished_games(3) == []
        assert writer.unfinished_games(4) == [b"other"]


def test_a_sealed_generation_has_none(tmp_path):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        writer.keep_unfinished(3, [b"one"])
        writer.keep_unfinished(4, [b"other"])
        writer.seal(3)
        assert writer.unfinished_games(3) == []
        assert writer.unfinished_games(4) == [b"other"]


def test_a_kill_between_the_seal_and_the_removal_leaves_none(tmp_path):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        for generation in (3, 4):
            segment = writer.open_games(generation, "connect4")
            segment.sink.put(random_game("connect4", 0, generation))
            segment.close()
            writer.keep_unfinished(generation, [b"one"])
        # What ``ExperienceWriter.seal`` does first.
        assert seal(folder, 3) is not None
        assert writer.unfinished_games(3) == [b"one"]
    with ExperienceWriter(folder, 10) as writer:
        assert writer.unfinished_games(3) == []
        assert writer.unfinished_games(4) == [b"one"]


def test_a_damaged_copy_is_refused_by_name_with_the_remedy(tmp_path):
    folder = tmp_path / "selfplay-0"
    with ExperienceWriter(folder, 1) as writer:
        writer.keep_unfinished(3, [random.Random(0).randbytes(300)])
        path = folder / "1" / "000003.unfinished"
        data = bytearray(path.read_bytes())
        data[data.index(random.Random(0).randbytes(8)) + 7] ^= 1
        path.write_bytes(data)
        with refused(RunError, "000003.unfinished"):
            writer.unfinished_games(3)


def test_games_that_nobody_went_on_with_yet_stay_kept():
    """Who stops before a slot is free for them has them still."""
    task = "connect4"
    rules, settings = core_game(make(task)), SelfplayConfig(num_slots=4).to_native()
    wanted = {"seed": 1, "generation": 1, "model": 1, "num_games": 4}
    queue = _core.GameQueue(**wanted)
    worker = _core.make_selfplay_worker(rules, settings, queue, _core.GameFrames())
    while not (kept := queue.unfinished()):
        assert worker.next()
        worker.done()
        worker.keep_unfinished()
    again = _core.GameQueue(**wanted, unfinished=kept)
    assert again.num_begun == len(kept)
    assert again.unfinished() == kept
    none = _core.GameQueue(**wanted, unfinished=kept, finished=[0, 1, 2, 3])
    assert none.unfinished() == []
