import io
import json
import random
import struct
import zipfile
import zlib

import numpy as np
import pytest
from store_games import num_rows, random_game, write_generation

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience import ExperienceWriter, SegmentReader
from tengen.experience.games.archive import ArchiveReader, pack
from tengen.experience.games.segment import GAME_COLUMNS
from tengen.experience.rows.derived_rows import DerivedRows
from tests.refusals import refused


def write_games(directory, incarnation, records):
    with ExperienceWriter(directory, incarnation) as writer:
        segment = writer.open_games(records[0].generation, "connect4")
        for record in records:
            segment.sink.put(record)
        segment.close()


def seal(directory, incarnation, generation=0):
    with ExperienceWriter(directory, incarnation) as writer:
        return writer.seal(generation)


def read_records(path):
    """The records of a segment, rebuilt from its columns by an independent reader."""
    with np.load(path) as columns:
        data = {name: columns[name].tolist() for name in GAME_COLUMNS}
        generation = json.loads(columns["meta.json"])["generation"]
    openings, plies = iter(data["opening"]), _plies(data)
    records = []
    for game in range(len(data["game_index"])):
        record = _core.GameRecord()
        record.generation = generation
        record.game_index, record.model = data["game_index"][game], data["model"][game]
        record.outcome = data["outcome"][game]
        count = data["num_opening_plies"][game]
        record.opening = [next(openings) for _ in range(count)]
        record.plies = [next(plies) for _ in range(data["num_plies"][game])]
        records.append(record)
    assert next(openings, None) is None
    assert next(plies, None) is None
    return records


def _plies(data):
    entries = iter(zip(data["policy_action"], data["policy_mass"], strict=True))
    for i, action in enumerate(data["action"]):
        ply = _core.PlyRecord()
        ply.action, ply.root_value = action, data["root_value"][i]
        ply.policy_weight = data["policy_weight"][i]
        ply.value_weight = data["value_weight"][i]
        ply.num_simulations = data["num_simulations"][i]
        ply.lead = data["lead"][i]
        ply.policy = [next(entries) for _ in range(data["num_policy_entries"][i])]
        yield ply


def test_numpy_load_gives_the_games_back(tmp_path):
    records = [random_game("connect4", index) for index in range(30)]
    shuffled = random.Random(1).sample(records, len(records))
    write_games(tmp_path / "w", 1, shuffled)
    sealed = seal(tmp_path / "w", 2)
    assert sealed == tmp_path / "w" / "1" / "000000.npz"
    assert read_records(sealed) == records
    with SegmentReader(sealed) as reader:
        assert reader.meta["game"] == "connect4"
        assert reader.meta["num_games"] == 30
        assert reader.meta["num_rows"] == sum(num_rows(r) for r in records)
        for name, dtype in GAME_COLUMNS.items():
            assert reader.column(name).dtype == dtype


def test_bytes_depend_on_the_games_alone(tmp_path):
    records = [random_game("connect4", index) for index in range(20)]
    write_games(tmp_path / "a", 0, records)
    write_games(tmp_path / "b", 0, records[15:])
    write_games(tmp_path / "b", 3, records[:10][::-1])
    write_games(tmp_path / "b", 10, records[5:])  # some a second time
    first, second = seal(tmp_path / "a", 20), seal(tmp_path / "b", 20)
    assert second == tmp_path / "b" / "10" / "000000.npz"
    assert seal(tmp_path / "b", 21) is None  # there is nothing left to seal
    assert first.read_bytes() == second.read_bytes()
    assert not list(tmp_path.glob("*/*/*.journal"))


def test_games_after_sealing_make_a_second_segment(tmp_path):
    records = [random_game("connect4", index) for index in range(6)]
    write_games(tmp_path / "w", 0, records[:4])
    seal(tmp_path / "w", 1)
    write_games(tmp_path / "w", 2, records[2:])
    with ExperienceWriter(tmp_path / "w", 3) as writer:
        assert writer.recorded_games(0)[:2] == (list(range(6)), [])
        assert writer.unsealed() == [0]
        second = writer.seal(0)
        assert writer.recorded_games(0)[:2] == (list(range(6)), [])
    assert second == tmp_path / "w" / "2" / "000000.npz"
    assert read_records(second) == records[4:]


def test_games_behind_damage_are_kept_and_the_lost_one_is_missing(tmp_path):
    records = [random_game("connect4", index) for index in range(10)]
    write_games(tmp_path / "whole", 0, records)
    write_games(tmp_path / "w", 0, records)
    journal = tmp_path / "w" / "0" / "000000.journal"
    content = bytearray(journal.read_bytes())
    at = content.index(_core.encode_game(records[4]))
    content[at + 5 : at + 25] = bytes(20)
    journal.write_bytes(content)
    with ExperienceWriter(tmp_path / "w", 1) as writer:
        indices, gaps, _ = writer.recorded_games(0)
        assert indices == [0, 1, 2, 3, 5, 6, 7, 8, 9]
        ((path, offset, is_tail),) = [(g.path, g.offset, g.is_tail) for g in gaps]
        assert (path, offset, is_tail) == (journal, at - 12, False)
        # What a run then does: the missing game is played again, to the same bytes.
        segment = writer.open_games(0, "connect4")
        segment.sink.put(records[4])
        segment.close()
        second = writer.seal(0)
    first = seal(tmp_path / "whole", 1)
    assert first.read_bytes() == second.read_bytes()


def test_entries_are_aligned_and_narrow(tmp_path):
    sealed = write_generation(tmp_path, 0, 50, name="gomoku/9")
    content = sealed.read_bytes()
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.testzip() is None
        for info in archive.infolist():
            at = info.header_offset
            name_bytes, extra_bytes = struct.unpack_from("<HH", content, at + 26)
            start = at + 30 + name_bytes + extra_bytes
            assert start % 64 == 0
            if info.compress_type == zipfile.ZIP_STORED and start > 64:
                (header_bytes,) = struct.unpack_from("<H", content, start + 8)
                assert (10 + header_bytes) % 64 == 0
    with np.load(sealed) as columns:
        assert columns["action"].dtype == np.uint8
        assert columns["policy_mass"].dtype == np.uint8
        assert columns["root_value"].dtype == np.float16


def a_file_of_two(path):
    noise = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)
    few = np.arange(5000).astype(np.uint8) % 7
    path.write_bytes(pack({"kind": "x"}, {"noise": noise, "few": few}, deflates=True))
    return noise, few


def test_a_column_is_deflated_where_that_gains(tmp_path):
    path = tmp_path / "a.npz"
    noise, few = a_file_of_two(path)
    with zipfile.ZipFile(path) as archive:
        kinds = {one.filename: one.compress_type for one in archive.infolist()}
    assert kinds == {
        "meta.json": zipfile.ZIP_STORED,
        "noise.npy": zipfile.ZIP_STORED,
        "few.npy": zipfile.ZIP_DEFLATED,
    }
    assert path.stat().st_size < 6500
    with np.load(path) as loaded:
        assert np.array_equal(loaded["few"], few)
    with ArchiveReader(path) as reader:
        assert np.array_equal(reader.read("few"), few)
        assert np.array_equal(reader.read("noise"), noise)


def test_damage_to_a_deflated_column_is_a_run_error(tmp_path):
    path = tmp_path / "a.npz"
    a_file_of_two(path)
    with zipfile.ZipFile(path) as archive:
        info = archive.getinfo("few.npy")
    content = path.read_bytes()
    end = content.index(b"PK\x01\x02")
    for at in range(end - info.compress_size, end - 1):
        damaged = bytearray(content)
        damaged[at] ^= 0x55
        path.write_bytes(damaged)
        with (
            refused(RunError, "a.npz"),
            ArchiveReader(path) as reader,
        ):
            reader.read("few")


@pytest.mark.parametrize("schema", [2, 3])
def test_a_segment_of_an_earlier_schema_is_read(tmp_path, monkeypatch, schema):
    new = write_generation(tmp_path / "new", 0, 3, name="go/5")
    old = tmp_path / "old.npz"
    with SegmentReader(new) as reader, monkeypatch.context() as then:
        then.setattr("tengen.experience.games.archive.SCHEMA", schema)
        columns = {name: reader.read(name) for name in reader.names()}
        del columns["lead"]
        old.write_bytes(pack(reader.meta, columns, deflates=schema > 2))
    with zipfile.ZipFile(old) as archive:
        assert any(one.compress_type for one in archive.infolist()) == (schema > 2)
    rows = DerivedRows("go/5", auxiliary=True)
    with SegmentReader(old) as first, SegmentReader(new) as second:
        assert first.meta["schema"] == schema
        assert second.meta["schema"] == 4
        columns = second.game_columns()
        assert (columns["lead"] != _core.NO_LEAD).any()
        columns["lead"] = np.full_like(columns["lead"], _core.NO_LEAD)
        assert first.game_columns().keys() == columns.keys()
        for name, column in first.game_columns().items():
            assert column.dtype == columns[name].dtype
            assert np.array_equal(column, columns[name])
        size = rows.add(first.game_columns())
    row = rows.derive(np.arange(size), np.zeros(size, np.uint8))
    assert not row["lead"].any()
    assert not row["lead_weight"].any()


def test_a_column_without_leads_is_next_to_nothing(tmp_path):
    records = [random_game("connect4", index) for index in range(200)]
    for record in records:
        plies = record.plies
        for ply in plies:
            ply.lead = _core.NO_LEAD
        record.plies = plies
    write_games(tmp_path, 0, records)
    sealed = seal(tmp_path, 1)
    assert sealed is not None
    with zipfile.ZipFile(sealed) as archive:
        column = archive.getinfo("lead.npy")
    assert column.compress_size < column.file_size / 50


def test_narrowing_keeps_every_value(tmp_path):
    columns = {
        f"to_{largest}": np.array([0, largest], np.uint64)
        for largest in (255, 256, 65535, 65536, 2**32 - 1, 2**32)
    }
    (tmp_path / "a.npz").write_bytes(pack({"kind": "x"}, columns, deflates=True))
    with ArchiveReader(tmp_path / "a.npz") as reader:
        read = {name: reader.read(name) for name in columns}
    sizes = [read[name].dtype.itemsize for name in columns]
    assert sizes == [1, 2, 2, 4, 4, 8]
    for name, column in columns.items():
        assert read[name].tolist() == column.tolist()


def test_every_truncation_is_a_run_error_with_the_name(tmp_path):
    content = write_generation(tmp_path, 0, 3).read_bytes()
    path = tmp_path / "cut.npz"
    for size in [*range(0, len(content), 97), len(content) - 1]:
        path.write_bytes(content[:size])
        with refused(RunError, "cut.npz"), SegmentReader(path) as reader:
            reader.game_columns()


def test_a_flipped_bit_in_a_column_is_a_run_error(tmp_path):
    sealed = write_generation(tmp_path, 0, 3)
    content = bytearray(sealed.read_bytes())
    with zipfile.ZipFile(sealed) as archive:
        end = archive.getinfo("root_value.npy").header_offset
    content[end - 8] ^= 1
    sealed.write_bytes(content)
    with refused(RunError, "000000.npz"):
        SegmentReader(sealed).column("action")


@pytest.mark.parametrize(
    ("schema", "named"),
    [
        (7, ("schema (7)", "000000.npz", "4")),
        (1, ("schema (1)", "000000.npz", "2 to 4")),
    ],
)
def test_a_segment_of_another_schema_is_a_usage_error_with_both_versions(
    tmp_path, schema, named
):
    sealed = write_generation(tmp_path, 0, 3)
    content = sealed.read_bytes().replace(b'"schema": 4', b'"schema": %d' % schema)
    meta = content[content.index(b"{") : content.index(b"}") + 1]
    old = sealed.read_bytes()
    with zipfile.ZipFile(io.BytesIO(old)) as archive:
        crc = struct.pack("<I", archive.getinfo("meta.json").CRC)
    content = content.replace(crc, struct.pack("<I", zlib.crc32(meta)))
    sealed.write_bytes(content)
    with refused(UsageError, *named):
        SegmentReader(sealed)


@pytest.mark.parametrize("content", [b"", b"hello", bytes(4000)])
def test_a_foreign_segment_is_a_run_error(tmp_path, content):
    (tmp_path / "foreign.npz").write_bytes(content)
    with refused(RunError, "foreign.npz"):
        SegmentReader(tmp_path / "foreign.npz")
    with refused(RunError, "absent.npz"):
        SegmentReader(tmp_path / "absent.npz")


def test_one_process_is_a_writer_and_incarnations_increase(tmp_path):
    with (
        ExperienceWriter(tmp_path / "w", 4),
        refused(UsageError, f"folder ({tmp_path}/w)"),
    ):
        ExperienceWriter(tmp_path / "w", 5)
    with refused(UsageError, "incarnation (4)"):
        ExperienceWriter(tmp_path / "w", 4)
    ExperienceWriter(tmp_path / "w", 5).release()


def test_sealing_leaves_no_empty_folder_of_an_earlier_incarnation(tmp_path):
    for incarnation in range(1, 4):  # three kills in one generation
        write_games(tmp_path, incarnation, [random_game("connect4", incarnation)])
    with ExperienceWriter(tmp_path, 4) as writer:
        sealed = writer.seal(0)
        folders = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert sealed == tmp_path / "3" / "000000.npz"
    assert folders == {"3", "4"}
    assert len(read_records(sealed)) == 3


def test_files_of_others_are_left_alone(tmp_path):
    games = [random_game("connect4", index) for index in range(3)]
    write_games(tmp_path, 2, games)
    for stray in ("2/abc.journal", "x/000000.journal", "x/000000.npz"):
        (tmp_path / stray).parent.mkdir(exist_ok=True)
        (tmp_path / stray).write_bytes(b"?")
    with ExperienceWriter(tmp_path, 3) as writer:
        assert writer.unsealed() == [0]
        assert writer.recorded_games(0).indices == [0, 1, 2]
        assert writer.seal(0) == tmp_path / "2" / "000000.npz"
    assert (tmp_path / "2" / "abc.journal").exists()
