"""Archives that damage changed, or that were made to harm: one line, and no harm."""

import io
import json
import os
import random
import re
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from damage import damaged, reason
from store_games import random_game

from tengen.errors import RunError
from tengen.experience import ExperienceWriter, Manifest, SegmentReader
from tengen.experience.games.archive import SCHEMA, ArchiveReader, pack
from tengen.experience.rows.derived_rows import DerivedRows
from tests.refusals import refused

GAME = "connect4"


@pytest.fixture(scope="module")
def segment(tmp_path_factory):
    """A sealed segment of six games."""
    with ExperienceWriter(tmp_path_factory.mktemp("writer"), 1) as writer:
        games = writer.open_games(0, GAME)
        for index in range(6):
            games.sink.put(random_game(GAME, index))
        games.close()
        path = writer.seal(0)
    return path.read_bytes()


def use(path):
    """Reads a segment as the learner does, and derives every row."""
    with SegmentReader(path) as reader:
        columns = reader.game_columns()
    rows = DerivedRows(GAME, auxiliary=False)
    num_rows = rows.add(columns)
    batch = rows.derive(np.arange(num_rows), np.zeros(num_rows, np.uint8))
    for name, column in batch.items():
        assert np.isfinite(column).all(), name


def test_damage_anywhere_is_one_line(tmp_path, segment):
    path = tmp_path / "000000.npz"
    path.write_bytes(segment)
    use(path)
    rng = random.Random(1)
    reasons = []
    for _ in range(300):
        path.write_bytes(damaged(rng, segment))
        reasons.append(reason(use, path))
    assert sum(why is not None for why in reasons) > 200


def edited(rng, column):
    """A column that is another: values, length, type or axes."""
    kind = rng.randrange(6)
    if kind == 0 and column.size:
        column = column.copy()
        column[rng.randrange(len(column))] = rng.choice([0, 1, 255, column.max()])
    elif kind == 1:
        column = column[: rng.randrange(len(column) + 1)]
    elif kind == 2:
        column = np.concatenate([column, column])
    elif kind == 3:
        column = column.astype(rng.choice([np.int8, np.float16, np.float64, bool]))
    elif kind == 4:
        column = column.reshape(rng.choice([(-1, 1), (1, -1)]))
    elif kind == 5 and column.dtype.kind == "f" and column.size:
        column = column.copy()
        column[rng.randrange(len(column))] = rng.choice([np.nan, np.inf, -1e4])
    return column


def test_columns_that_do_not_fit_are_one_line(tmp_path, segment):
    """With CRCs that are right: a process that is wrong, or means harm."""
    path = tmp_path / "000000.npz"
    path.write_bytes(segment)
    with ArchiveReader(path) as reader:
        meta = reader.meta
        columns = {name: reader.read(name) for name in reader.names()}
    rng = random.Random(2)
    reasons = []
    for _ in range(300):
        changed = dict(columns)
        for name in rng.sample(sorted(columns), rng.choice([1, 1, 2])):
            changed[name] = edited(rng, columns[name])
            if rng.random() < 0.05:
                del changed[name]
        path.write_bytes(pack(meta, changed))
        reasons.append(reason(use, path))
    assert sum(why is not None for why in reasons) > 100


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("name", "dtype"),
    [("action", np.float32), ("action", bool), ("root_value", np.float64)],
)
def test_a_column_of_another_kind_is_not_rounded(tmp_path, segment, name, dtype):
    path = tmp_path / "000000.npz"
    path.write_bytes(segment)
    with ArchiveReader(path) as reader:
        meta = reader.meta
        columns = {name: reader.read(name) for name in reader.names()}
    columns[name] = (columns[name] * 0).astype(dtype)
    path.write_bytes(pack(meta, columns))
    with (
        refused(RunError, f"column {name}", str(np.dtype(dtype))),
        SegmentReader(path) as reader,
    ):
        reader.game_columns()


class Harm:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def npy(header, data=bytes(16), magic=b"\x01\x00"):
    size = "<H" if magic == b"\x01\x00" else "<I"
    text = header.encode()
    return b"\x93NUMPY" + magic + struct.pack(size, len(text)) + text + data


def described(descr, shape="(2,)"):
    return npy(f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}")


HEADERS = {
    "object": described("'|O'"),
    "structure": described("[('a', '<i4'), ('b', '<i4')]"),
    "nested objects": described("[('a', '|O')]"),
    "text": described("'<U2'"),
    "bytes": described("'|S8'"),
    "nothing": described("'|V0'"),
    "complex": described("'<c8'"),
    "time": described("'<M8[s]'"),
    "no type": described("'x'"),
    "a number for a type": described("7"),
    "negative": described("'<i8'", "(-1,)"),
    "negative twice": described("'<i8'", "(-2, -1)"),
    "too many": described("'<i8'", "(3,)"),
    "far too many": described("'|u1'", f"({1 << 62},)"),
    "overflow": described("'|u1'", f"({1 << 40}, {1 << 40})"),
    "no tuple": described("'<i8'", "2"),
    "fractions": described("'<i8'", "(2.0,)"),
    "deep": npy("(" * 5000 + ")" * 5000),
    "open": npy("{'descr': '<i8', 'shape': ((((((((("),
    "a call": npy("__import__('os').abort()"),
    "no dictionary": npy("[1, 2]"),
    "other keys": npy("{'descr': '<i8'}"),
    "too long": npy("{" + " " * 20_000 + "}"),
    "zeros": npy("\0" * 100),
    "Fortran": npy("{'descr': '<i8', 'fortran_order': True, 'shape': (2,)}"),
    "another version": npy(
        "{'descr': '<i8', 'fortran_order': False, 'shape': (2,)}", magic=b"\x02\x00"
    ),
    "no magic": bytes(64),
    "cut": b"\x93NUMPY\x01\x00\xff\xff",
    "empty": b"",
}


def archive(path, entry, how=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", how) as file:
        file.writestr("meta.json", json.dumps({"schema": SCHEMA}))
        file.writestr("x.npy", entry)


@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_header_is_one_line(tmp_path, name):
    path = tmp_path / "a.npz"
    archive(path, HEADERS[name])
    with ArchiveReader(path) as reader:
        assert "damaged, column x" in (reason(reader.read, "x") or "")


def test_nothing_is_unpickled(tmp_path):
    path, harm = tmp_path / "a.npz", tmp_path / "harm"
    buffer = io.BytesIO()
    objects = np.array([Harm(harm)], object)
    np.lib.format.write_array(buffer, objects, (1, 0), allow_pickle=True)
    archive(path, buffer.getvalue())
    with ArchiveReader(path) as reader:
        assert "not a plain array" in (reason(reader.read, "x") or "")
    assert not harm.exists()
    # The file would have done it.
    with np.load(path, allow_pickle=True) as columns:
        assert len(columns["x"]) == 1
    assert harm.exists()


def measured(path):
    """Why the column is refused, and the most bytes that reading it took."""
    with ArchiveReader(path) as reader:
        tracemalloc.start()
        why = reason(reader.read, "x")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return why, peak


def test_a_bomb_does_not_go_off(tmp_path):
    """80 MB in 80 KB, which zip may say or not."""
    path = tmp_path / "a.npz"
    archive(path, bytes(80_000_000), zipfile.ZIP_DEFLATED)
    whole = path.read_bytes()
    assert len(whole) < 100_000
    size = struct.pack("<I", 80_000_000)
    assert whole.count(size) == 2
    claims = {
        "true": whole,
        # Of a size that is no lie the rest differs from its CRC.
        "small": whole.replace(size, struct.pack("<I", 1000)),
        "nothing": whole.replace(size, bytes(4)),
    }
    for name, data in claims.items():
        path.write_bytes(data)
        why, peak = measured(path)
        wanted = "an impossible size" if name == "true" else "is wrong"
        assert wanted in (why or "")
        assert peak < 1_000_000


def test_a_description_that_is_a_bomb_does_not_go_off(tmp_path):
    """16 MB of JSON in 50 KB, which would be 400 MB of objects."""
    path = tmp_path / "000000.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        many = ",".join(["{}"] * 5_000_000)
        file.writestr("meta.json", f'{{"schema": {SCHEMA}, "a": [{many}]}}')
    assert path.stat().st_size < 100_000
    tracemalloc.start()
    why = reason(ArchiveReader, path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "meta.json declares an impossible size" in (why or "")
    assert peak < 1_000_000


def test_an_entry_beyond_its_file_is_one_line(tmp_path):
    path = tmp_path / "a.npz"
    archive(path, described("'<i8'"))
    whole = path.read_bytes()
    at = whole.rindex(b"PK\x01\x02")
    for offset, name in ((20, "compressed"), (24, "size"), (42, "place")):
        for number in (1 << 31, (1 << 32) - 2, len(whole)):
            data = bytearray(whole)
            data[at + offset : at + offset + 4] = struct.pack("<I", number)
            path.write_bytes(data)
            why, peak = measured(path)
            assert why is not None, name
            assert peak < 1_000_000


@pytest.mark.parametrize(
    "meta",
    [
        b"[" * 100_000,
        b'{"schema": true}',
        b'{"schema": 3.0}',
        b'{"schema": "3"}',
        b'{"schema": null}',
        b"\xff\xfe",
        b"{}",
    ],
)
def test_a_hostile_description_is_one_line(tmp_path, meta):
    path = tmp_path / "000000.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("meta.json", meta)
    with refused(RunError, "segment", "damaged"):
        ArchiveReader(path)


@pytest.mark.parametrize("said", [None, -1, "1", 1.5, True, [1]])
def test_numbers_of_a_description_are_numbers(tmp_path, said):
    folder = tmp_path / "w" / "1"
    folder.mkdir(parents=True)
    path = folder / "000000.npz"
    whole = {"generation": 0, "num_games": 1, "num_rows": 1}
    for name in whole:
        meta = {key: value for key, value in whole.items() if key != name}
        path.write_bytes(pack(meta if said is None else {**meta, name: said}, {}))
        with refused(RunError, f"its {name}"):
            Manifest(tmp_path).discover()


def test_many_entries_are_no_hang(tmp_path):
    """Of one name: the last one counts."""
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("meta.json", json.dumps({"schema": SCHEMA}))
        for index in range(2001):
            file.writestr(f"{index:04d}.npy", described("'<i8'") if index else b"")
    path.write_bytes(re.sub(rb"[0-9]{4}\.npy", b"name.npy", path.read_bytes()))
    with ArchiveReader(path) as reader:
        assert reader.names() == ["name"]
        assert reader.read("name").tolist() == [0, 0]
