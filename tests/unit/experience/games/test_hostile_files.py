"""Files of a run that damage changed, or that were made to harm: one line, no harm."""

import contextlib
import json
import random
import shutil
import threading

import numpy as np
import pytest
from damage import damaged, reason
from store_games import random_game, write_generation

from tengen import _core
from tengen.actors import SelfplayConfig
from tengen.errors import RunError
from tengen.experience import ExperienceWriter, GameWindow, Shuffler, WindowConfig
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.games.journal import OpenSegment, read_journal
from tengen.experience.games.segment import recorded_games
from tengen.experience.rows.shuffled_files import (
    read_shard,
    read_turn,
    read_window_state,
)
from tengen.games import core_game, make
from tengen.run import NumberedFolder, RunDirectory, publish_json
from tests.refusals import refused

NUMBERS = (0, 1, -1, 2**31, 2**63, 2**200, 1.5, float("inf"), float("nan"))
VALUES = (None, True, "", "x", "\0", [], [0], {}, {"a": 1}, *NUMBERS)


def changed(rng, value):
    """JSON values of which one is another, is missing, or is one too many."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(sorted(value))
        rest = {name: value[name] for name in value if name != key}
        if rng.random() < 0.15:
            return {**rest, rng.choice([key + "x", "__class__", ""]): value[key]}
        return rest if rng.random() < 0.15 else {**rest, key: changed(rng, value[key])}
    if isinstance(value, list) and value and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return [*value[:at], changed(rng, value[at]), *value[at + 1 :]]
    return rng.choice(VALUES)


def write_frames(path, meta, frames):
    journal = _core.Journal(str(path), meta)
    for frame in frames:
        journal.append(frame)
    journal.close()


def seal(folder):
    recorded_games(folder, 0)
    with ExperienceWriter(folder, 2) as writer:
        writer.seal(0)


def test_journals_of_anything_are_sealed_or_refused(tmp_path):
    """Whole frames that are no games, as they come with a CRC that is right."""
    rng = random.Random(1)
    games = [_core.encode_game(random_game("connect4", index)) for index in range(3)]
    good = {"game": "connect4", "generation": 0}
    reasons = []
    for number in range(60):
        folder = tmp_path / str(number)
        (folder / "1").mkdir(parents=True)
        frames = [damaged(rng, game) if rng.random() < 0.4 else game for game in games]
        if rng.random() < 0.1:
            frames.append(rng.randbytes(40))
        meta = json.dumps(good if rng.random() < 0.7 else changed(rng, good))
        path = folder / "1" / "000000.journal"
        write_frames(path, meta, [frame or b"\0" for frame in frames])
        reasons.append(reason(seal, folder))
        # What was refused is there still.
        assert path.exists() == (reasons[-1] is not None)
    assert 10 < sum(why is not None for why in reasons) < 55


@pytest.mark.parametrize("meta", ["", "[]", "7", "{", "[" * 100_000, "\x00", "null"])
def test_a_journal_without_an_object_is_one_line(tmp_path, meta):
    path = tmp_path / "a.journal"
    write_frames(path, meta, [b"frame"])
    with refused(RunError, "JSON"):
        read_journal(path)


def test_a_journal_of_marks_alone_is_no_hang(tmp_path):
    path = tmp_path / "a.journal"
    OpenSegment(path, {}).close()
    # Each claims half a megabyte that follows.
    mark = b"TNGF" + (1 << 19).to_bytes(4, "little") + b"\1\1\1\1"
    with open(path, "ab") as file:
        file.write(mark * (1 << 17))
    with refused(RunError, "marks"):
        read_journal(path)


@pytest.fixture(scope="module")
def shuffled(tmp_path_factory):
    """A turn of tictactoe."""
    path = tmp_path_factory.mktemp("run")
    write_generation(path / "experience", 1, 30, name="tictactoe")
    folder = NumberedFolder(path / "shuffled")

    def open_window(state):
        config = WindowConfig(min_rows=20)
        return GameWindow("tictactoe", path / "experience", config, 7, state, False)

    Shuffler(folder, open_window, 16, 1).turn(threading.Event())
    return folder


def use_shard(path):
    rows = read_shard(path, "tictactoe")
    assert rows.keys.dtype == np.int64
    assert rows.columns["planes"].shape[1:] == (3, 3, 3)
    assert {len(column) for column in rows.columns.values()} == {len(rows.keys)}


def test_shards_are_read_or_refused(tmp_path, shuffled):
    whole = shuffled.entry(0) / "shard-0000.npz"
    use_shard(whole)
    path = tmp_path / "shard-0000.npz"
    rng = random.Random(2)
    data = whole.read_bytes()
    for number in range(100):
        size = len(data) * number // 100
        path.write_bytes(data[:size])
        assert reason(use_shard, path) is not None
        path.write_bytes(damaged(rng, data))
        reason(use_shard, path)


def test_shards_that_claim_anything_are_refused(tmp_path, shuffled):
    with ArchiveReader(shuffled.entry(0) / "shard-0000.npz") as reader:
        columns = {name: reader.read(name) for name in reader.names()}
        meta = reader.meta
    path = tmp_path / "shard-0000.npz"
    rng = random.Random(3)
    huge = {"shape": [1 << 20] * 3, "num_actions": 1 << 40}
    for key, value in huge.items():
        path.write_bytes(pack({**meta, key: value}, columns))
        assert "not those of tictactoe" in (reason(use_shard, path) or "")
    counts = {"policy_count": np.full_like(columns["policy_count"], 255)}
    path.write_bytes(pack(meta, {**columns, **counts}))
    assert "number of entries" in (reason(use_shard, path) or "")
    for name in columns:
        for column in (columns[name][:-1], columns[name][None], np.zeros(3, np.int8)):
            path.write_bytes(pack(meta, {**columns, name: column}))
            reason(use_shard, path)
        path.write_bytes(pack(meta, {k: v for k, v in columns.items() if k != name}))
        assert "is damaged" in (reason(use_shard, path) or "")
    nothing = np.zeros(0, np.uint8)
    no_number = np.full_like(columns["search_value"], np.nan)
    no_float = columns["outcome"].astype(np.float64)
    for name, column in (
        ("legal_bits", nothing),
        ("search_value", no_number),
        ("outcome", no_float),
        ("policy_action", columns["policy_action"].astype(np.int16)),
    ):
        path.write_bytes(pack(meta, {**columns, name: column}))
        assert name in (reason(use_shard, path) or ""), name
    for _ in range(50):
        said = changed(rng, meta)
        path.write_bytes(pack(said if isinstance(said, dict) else {}, columns))
        reason(use_shard, path)


def test_a_small_shard_takes_little_memory(tmp_path):
    zeros = np.zeros(1 << 23, np.uint8)
    path = tmp_path / "shard-0000.npz"
    columns = {f"column_{number}": zeros for number in range(9)}
    path.write_bytes(pack({}, columns, deflates=True))
    assert path.stat().st_size < 1 << 20
    assert "declares an impossible size" in (reason(use_shard, path) or "")


def test_turns_are_read_or_refused(tmp_path, shuffled):
    folder = NumberedFolder(tmp_path / "shuffled")
    shutil.copytree(shuffled.entry(0), folder.entry(0))
    path = folder.entry(0) / "turn.json"
    data = path.read_bytes()
    content = json.loads(data)
    rng = random.Random(4)
    config = WindowConfig(min_rows=20)

    def use(which):
        read_turn(folder, which)
        state = read_window_state(folder, which)
        GameWindow("tictactoe", tmp_path, config, 7, state, False)

    for number in range(200):
        text = json.dumps(changed(rng, content)).encode()
        path.write_bytes(text if number % 2 else damaged(rng, data))
        reason(use, 0)
    for size in range(len(data) - 2):
        path.write_bytes(data[:size])
        assert reason(use, 0) is not None


def test_run_json_is_read_or_refused(tmp_path):
    run = RunDirectory.create_or_resume(tmp_path / "run")
    content = {"schema": 1, "config": {"task": "go/9", "seed": 7}, "measured": {"a": 1}}
    rng = random.Random(5)
    for number in range(100):
        data = json.dumps(content).encode()
        text = json.dumps(changed(rng, content)).encode()
        (run.path / "run.json").write_bytes(text if number % 2 else damaged(rng, data))
        reason(lambda: RunDirectory.open(run.path).read_run())
    publish_json(run.path / "run.json", content)
    assert run.read_run() == content


def games_in_flight():
    rules = core_game(make("connect4"))
    queue = _core.GameQueue(seed=1, generation=1, model=1, num_games=4)
    settings = SelfplayConfig(num_slots=4, full_simulations=4).to_native()
    worker = _core.make_selfplay_worker(rules, settings, queue, _core.GameFrames())
    while not queue.unfinished():
        assert worker.next()
        worker.done()
        worker.keep_unfinished()
    return list(queue.unfinished())


def test_games_in_flight_are_gone_on_with_or_refused(tmp_path):
    kept = games_in_flight()
    rules = core_game(make("connect4"))
    settings = SelfplayConfig(num_slots=4, full_simulations=4).to_native()
    rng = random.Random(6)

    def go_on(games):
        queue = _core.GameQueue(
            seed=1, generation=1, model=1, num_games=4, unfinished=games
        )
        sink = _core.GameFrames()
        worker = _core.make_selfplay_worker(rules, settings, queue, sink)
        for _ in range(20):
            if not worker.next():
                break
            worker.done()

    go_on(kept)
    refused = []
    for _ in range(60):
        with contextlib.suppress(_core.CoreError):
            go_on([damaged(rng, game) for game in kept[:1]])
            continue
        refused.append(True)
    assert len(refused) > 20
    with ExperienceWriter(tmp_path / "w", 1) as writer:
        writer.keep_unfinished(1, kept)
        path = tmp_path / "w" / "1" / "000001.unfinished"
        data = path.read_bytes()
        for number in range(200):
            path.write_bytes(damaged(rng, data) if number % 2 else data[:number])
            reason(writer.unfinished_games, 1)
        columns = {
            "num_bytes": np.array([9], np.uint32),
            "bytes": np.zeros(3, np.uint8),
        }
        for sizes in (
            columns["num_bytes"],
            np.array([-1, 4], np.int64),
            np.ones((1, 3), np.uint8),
        ):
            path.write_bytes(pack({}, {**columns, "num_bytes": sizes}))
            assert "delete it" in (reason(writer.unfinished_games, 1) or "")
