"""Examples that TensorFlow wrote, and the rows imported from them."""

import io
import json
import shutil
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience.rows.derived_rows import DerivedRows
from tengen.experience.rows.imported import ImportedRows, rows_name, write_rows
from tengen.games import open_game
from tengen.minigo.import_command import Examples, import_examples, read_examples
from tests.refusals import refused
from tests.unit.minigo.golden import GAME, GOLDEN, TASK, expected, flipped, refusal

SELFPLAY = GOLDEN / "selfplay"


def imported(folder):
    import_examples(SELFPLAY, folder, "nchw", lambda done: None)
    return {n: ImportedRows(folder / rows_name(n)) for n in (3, 4)}


def untouched(rows):
    return rows.columns(np.arange(rows.num_rows), np.zeros(rows.num_rows, np.uint8))


def test_examples_are_those_that_were_written():
    wanted = expected()
    found = read_examples(GAME, 5, "nchw")
    planes = wanted["game_d_planes"]
    np.testing.assert_array_equal(found.planes, planes)
    np.testing.assert_array_equal(found.policy, wanted["game_d_policy"])
    turn = 2 * planes[:, 8, 0, 0].astype(int) - 1
    np.testing.assert_array_equal(found.outcome, wanted["game_d_black"] * turn)


def test_earlier_examples_have_the_channels_last():
    path = GOLDEN / "nhwc" / "000009" / "game.tfrecord.zz"
    found = read_examples(path, 5, "nhwc")
    np.testing.assert_array_equal(found.planes, expected()["game_last_planes"])
    with refused(RunError, "--layout nhwc"):
        read_examples(path, 5, "nchw")


def test_rows_are_the_examples_of_a_generations_games(tmp_path):
    wanted, rows = expected(), imported(tmp_path)
    assert [rows[n].generation for n in (3, 4)] == [3, 4]
    # Sorted by path: node-0 precedes node-1; generation 4's first game has no rows.
    assert rows[3].games.tolist() == [0] * 4 + [1] * 3
    assert rows[4].games.tolist() == [1] * 2
    assert (rows[3].num_games, rows[4].num_games) == (2, 2)
    for number, games in ((3, "ab"), (4, "cd")):
        columns = untouched(rows[number])
        theirs = {
            part: np.concatenate([wanted[f"game_{game}_{part}"] for game in games])
            for part in ("planes", "policy", "black")
        }
        np.testing.assert_array_equal(columns["planes"][:, 1:], theirs["planes"])
        assert (columns["planes"][:, 0] == 1).all()
        np.testing.assert_allclose(
            columns["policy"], theirs["policy"], rtol=0, atol=1e-5
        )
        turn = 2.0 * theirs["planes"][:, 8, 0, 0] - 1.0
        outcome = columns["outcome"]
        np.testing.assert_array_equal(
            outcome[:, 0] - outcome[:, 2], theirs["black"] * turn
        )
        assert (outcome.sum(1) == 1).all()
        np.testing.assert_array_equal(columns["search_value"], theirs["black"] * turn)
        stones = (theirs["planes"][:, 0] + theirs["planes"][:, 1]).reshape(-1, 25)
        np.testing.assert_array_equal(columns["legal"][:, :25], 1 - stones)
        assert (columns["legal"][:, 25] == 1).all()


def test_columns_are_those_that_the_core_derives(tmp_path):
    none = np.zeros(0, np.int64), np.zeros(0, np.uint8)
    theirs = DerivedRows(TASK, auxiliary=False).derive(*none)
    ours = imported(tmp_path)[3].columns(*none)
    assert list(ours) == list(theirs)
    for name, column in theirs.items():
        assert ours[name].dtype == column.dtype
        assert ours[name].shape == column.shape


def test_symmetries_are_the_cores(tmp_path):
    """Imported positions of a game have the same symmetric views as in the core."""
    rng, game = np.random.default_rng(3), open_game(TASK)
    state, states = game.new_state(), []
    for _ in range(20):
        state.apply(int(rng.choice(state.legal_actions())))
        if state.is_terminal():
            break
        states.append(state.clone())
    assert len(states) > 8
    planes = np.stack([state.observation()[1:] for state in states]).astype(np.uint8)
    policy = rng.dirichlet(np.ones(26), len(states)).astype(np.float32)
    outcome = rng.integers(-1, 2, len(states)).astype(np.int8)
    path = tmp_path / "x.npz"
    assert write_rows(path, [Examples(planes, policy, outcome)], 5, 0, "here") == (
        1,
        len(states),
    )
    rows = ImportedRows(path)
    # Every row with every symmetry, in random order.
    pairs = rng.permutation([(i, s) for i in range(len(states)) for s in range(8)])
    columns = rows.columns(pairs[:, 0], pairs[:, 1].astype(np.uint8))
    for place, (index, symmetry) in enumerate(pairs.tolist()):
        np.testing.assert_array_equal(
            columns["planes"][place], states[index].observation(symmetry)
        )
        images = [game.transform_action(action, symmetry) for action in range(26)]
        np.testing.assert_allclose(
            columns["policy"][place, images], policy[index], rtol=0, atol=1e-5
        )
        shown = columns["legal"][place, images]
        assert shown[25] == 1
        assert set(states[index].legal_actions()) <= set(np.flatnonzero(shown))
    np.testing.assert_array_equal(columns["search_value"], outcome[pairs[:, 0]])


def test_draws_are_draws_and_a_share_a_little_above_one_is_one(tmp_path):
    policy = np.zeros((1, 26), np.float32)
    policy[0, 25] = np.float32(1.0005)
    examples = Examples(np.zeros((1, 13, 5, 5), np.uint8), policy, np.int8([0]))
    write_rows(tmp_path / "x.npz", [examples], 5, 0, "here")
    columns = untouched(ImportedRows(tmp_path / "x.npz"))
    assert columns["outcome"].tolist() == [[0.0, 1.0, 0.0]]
    assert columns["policy"][0].tolist() == [0.0] * 25 + [1.0]


def test_files_are_numpys_and_say_where_they_are_from(tmp_path):
    imported(tmp_path)
    with np.load(tmp_path / "000003.rows.npz") as file:
        assert file["planes"].shape == (7, 41)
        assert file["game"].dtype == np.int32
    with zipfile.ZipFile(tmp_path / "000003.rows.npz") as archive:
        meta = json.loads(archive.read("meta.json"))
    assert meta == {
        "schema": 1,
        "side": 5,
        "generation": 3,
        "num_games": 2,
        "num_rows": 7,
        "source": str(SELFPLAY / "000003"),
    }


def test_folders_without_examples_are_refused(tmp_path):
    for folder in (tmp_path, tmp_path / "absent", SELFPLAY / "000003"):
        with refused(UsageError, f"examples ({folder})"):
            import_examples(folder, tmp_path / "out", "nchw", lambda done: None)
    (tmp_path / "000001").mkdir()
    (tmp_path / "000001" / "x.tfrecord.zz").write_bytes(zlib.compress(b""))
    with refused(UsageError, f"examples ({tmp_path})"):
        import_examples(tmp_path, tmp_path / "out", "nchw", lambda done: None)
    for side in (1, 20):
        content = record(example(x=bytes(13 * side * side), pi=PI, outcome=WON))
        (tmp_path / "000001" / "x.tfrecord.zz").write_bytes(zlib.compress(content))
        with refused(RunError, "x.tfrecord.zz"):
            import_examples(tmp_path, tmp_path / "out", "nchw", lambda done: None)
    assert not (tmp_path / "out").exists()


def test_a_damaged_game_leaves_no_file_of_its_generation(tmp_path):
    shutil.copytree(SELFPLAY, tmp_path / "in")
    path = tmp_path / "in" / GAME.relative_to(SELFPLAY)
    path.write_bytes(path.read_bytes()[:-9])
    with refused(RunError, "game-2"):
        import_examples(tmp_path / "in", tmp_path / "out", "nchw", lambda done: None)
    assert [x.name for x in (tmp_path / "out").iterdir()] == ["000003.rows.npz"]


def test_any_damaged_byte_of_examples_is_refused(tmp_path):
    path, data = tmp_path / "x.zz", GAME.read_bytes()
    for place in range(len(data)):
        path.write_bytes(flipped(data, place))
        told, found = refusal(lambda: read_examples(path, 5, "nchw"))
        # Byte 1 contains zlib's compression level, which decompression ignores.
        assert found is None or place == 1, place
    for length in range(0, len(data), 5):
        path.write_bytes(data[:length])
        told, _ = refusal(lambda: read_examples(path, 5, "nchw"))
        assert told.startswith(f"examples ({path}) is damaged")


def test_inner_damage_is_found_by_checksums_and_bounds(tmp_path):
    """Damages the data before compression, so that zlib's checksum is correct."""
    path, data = tmp_path / "x.zz", zlib.decompress(GAME.read_bytes())
    for place in range(0, len(data), 3):
        path.write_bytes(zlib.compress(flipped(data, place)))
        told, _ = refusal(lambda: read_examples(path, 5, "nchw"))
        assert "checksum" in told


def record(content, length=None):
    def masked(data):
        crc = _core.crc32c(data)
        crc = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
        return crc.to_bytes(4, "little")

    size = (len(content) if length is None else length).to_bytes(8, "little")
    return size + masked(size) + content + masked(content)


def example(**parts):
    """Returns a serialized example with the given lists of features."""

    def field(key, content):
        size = len(content)
        return bytes([key, size & 0x7F | 0x80, size >> 7]) + content

    entries = b""
    for name, part in parts.items():
        key = 0x12 if name == "outcome" else 0x0A
        value = field(key, field(0x0A, part))
        entries += field(0x0A, field(0x0A, name.encode()) + field(0x12, value))
    return field(0x0A, entries)


X = bytes(13 * 25)
PI = np.float32([1] + [0] * 25).tobytes()
NEGATIVE = np.float32([2, -1] + [0] * 24).tobytes()
WON = np.float32([1]).tobytes()


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (record(example(pi=PI, outcome=WON)), " x"),
        (record(example(x=X[:-1], pi=PI, outcome=WON)), "x is"),
        (record(example(x=b"\2" + X[1:], pi=PI, outcome=WON)), "x has"),
        (record(example(x=X, pi=PI[:-1], outcome=WON)), "pi is not 26"),
        (record(example(x=X, pi=PI[4:], outcome=WON)), "pi is not 26"),
        (record(example(x=X, pi=bytes(104), outcome=WON)), "pi is not "),
        (record(example(x=X, pi=NEGATIVE, outcome=WON)), "pi is not "),
        (
            record(example(x=X, pi=PI[:100] + b"\0\0\xc0\x7f", outcome=WON)),
            "pi is not ",
        ),
        (record(example(x=X, pi=PI, outcome=WON + WON)), "outcome is"),
        (record(example(x=X, pi=PI, outcome=b"\0\0\0\x3f")), "outcome is"),
        (record(b"", length=2**63), "record"),
        (record(b"\x0a\xff\xff\xff\xff\x7f"), "x.zz"),
    ],
)
def test_examples_of_another_kind_are_refused(tmp_path, content, told):
    path = tmp_path / "x.zz"
    path.write_bytes(zlib.compress(record(example(x=X, pi=PI, outcome=WON))))
    assert read_examples(path, 5, "nchw").outcome.tolist() == [-1]
    path.write_bytes(zlib.compress(content))
    with refused(RunError, told):
        read_examples(path, 5, "nchw")


def test_a_small_file_takes_no_great_memory(tmp_path):
    path = tmp_path / "x.zz"
    machine = zlib.compressobj(9)
    zeros = bytes(1 << 22)
    bomb = b"".join(machine.compress(zeros) for _ in range(17)) + machine.flush()
    path.write_bytes(bomb)
    assert len(bomb) < 1 << 20
    tracemalloc.start()
    try:
        with refused(RunError, "67108864"):
            read_examples(path, 5, "nchw")
        assert tracemalloc.get_traced_memory()[1] < 3 << 26
    finally:
        tracemalloc.stop()


def test_rows_with_any_byte_damaged_are_refused_or_the_same(tmp_path):
    imported(tmp_path)
    data = (tmp_path / rows_name(4)).read_bytes()
    wanted = untouched(ImportedRows(tmp_path / rows_name(4)))
    path = tmp_path / "x.npz"
    num_refused = 0
    places = range(0, len(data), 7)
    for place in places:
        path.write_bytes(flipped(data, place))
        told, rows = refusal(lambda: ImportedRows(path))
        num_refused += told != ""
        if rows is not None:
            for name, column in untouched(rows).items():
                np.testing.assert_array_equal(column, wanted[name])
    # Other zip fields, such as times, are not read.
    assert num_refused > 0.7 * len(places)
    for length in range(0, len(data), 17):
        path.write_bytes(data[:length])
        told, _ = refusal(lambda: ImportedRows(path))
        assert told.startswith(f"rows ({path}) is damaged")


def changed(path, name, content, kind=zipfile.ZIP_STORED):
    """Rewrites a file of rows with another content for one entry."""
    with zipfile.ZipFile(path) as archive:
        entries = {entry: archive.read(entry) for entry in archive.namelist()}
    with zipfile.ZipFile(path, "w", kind) as archive:
        for entry, old in entries.items():
            archive.writestr(entry, content if entry == name else old)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


META = {"schema": 1, "side": 5, "generation": 3, "num_games": 2, "num_rows": 7}


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("meta.json", b"{}", "schema"),
        ("meta.json", b"[]", "schema"),
        ("meta.json", json.dumps({**META, "side": 20}).encode(), "side in 2 to 19"),
        ("meta.json", json.dumps({**META, "num_rows": 8}).encode(), "shape"),
        ("meta.json", json.dumps({**META, "num_games": 1}).encode(), "games"),
        ("game.npy", npy(np.zeros(7, np.int64)), "game has"),
        ("game.npy", npy(np.int32([0, 0, 1, 0, 1, 1, 1])), "games"),
        ("policy_action.npy", None, "an action"),
        ("outcome.npy", npy(np.full(7, 2, np.int8)), "an outcome"),
        ("policy_begin.npy", npy(np.zeros(8, np.int64)), "policy"),
        ("outcome.npy", npy(np.zeros(7, np.int8))[:-1], "reshape"),
    ],
)
def test_rows_of_another_kind_are_refused(tmp_path, name, content, told):
    imported(tmp_path)
    path = tmp_path / rows_name(3)
    if content is None:
        with np.load(path) as file:
            content = npy(np.full_like(file["policy_action"], 26))
    changed(path, name, content)
    with refused(RunError, f"rows ({path})", told):
        ImportedRows(path)


def test_an_entry_that_says_it_is_long_takes_no_memory(tmp_path):
    imported(tmp_path)
    path = tmp_path / rows_name(3)
    data = bytearray(path.read_bytes())
    # In the central directory both sizes are 26 bytes before the entry's name.
    place = data.rindex(b"planes.npy") - 26
    data[place : place + 8] = (0x60000000).to_bytes(4, "little") * 2
    path.write_bytes(data)
    with refused(RunError, f"rows ({path})"):
        ImportedRows(path)


def test_rows_of_a_later_schema_and_compressed_ones_are_refused(tmp_path):
    imported(tmp_path)
    path = tmp_path / rows_name(3)
    changed(path, "", b"", zipfile.ZIP_DEFLATED)
    with refused(RunError, f"rows ({path})"):
        ImportedRows(path)
    imported(tmp_path)
    changed(path, "meta.json", json.dumps({**META, "schema": 2}).encode())
    with refused(UsageError, "schema (2)", str(path)):
        ImportedRows(path)
