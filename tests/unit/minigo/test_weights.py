"""Networks imported from TensorFlow's files have the same outputs as in TensorFlow."""

import itertools
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from tengen import _core
from tengen.errors import RunError, TengenError
from tengen.games import open_game
from tengen.minigo.tensors import Checkpoint, FrozenGraph, read_table
from tengen.minigo.weights import MinigoWeights, read_weights
from tengen.minigo.wire import Message, check_crc, read_varint
from tengen.nets import board_of
from tests.refusals import refused
from tests.unit.minigo.golden import (
    GRAPH,
    PREFIX,
    SHARD,
    TASK,
    expected,
    flipped,
    refusal,
)


def message(text):
    return Message(memoryview(bytes.fromhex(text)))


def test_fields_of_the_formats_own_examples():
    # From "Encoding" in the Protocol Buffers documentation.
    assert message("089601").whole(1) == 150
    assert message("120774657374696e67").text(2) == "testing"
    assert message("1a03089601").message(3).whole(1) == 150
    assert message("089601").whole(2, default=7) == 7
    assert message("08010802").whole(1) == 2
    assert message("15 78563412").fixed32(2) == 0x12345678
    assert bytes(message("").raw(3)) == b""


def test_floats_are_packed_or_a_field_each():
    one, half = "0000803f", "0000003f"
    wanted = np.float32([1.0, 0.5])
    np.testing.assert_array_equal(message(f"0a08{one}{half}").floats(1), wanted)
    np.testing.assert_array_equal(message(f"0d{one}0d{half}").floats(1), wanted)
    with pytest.raises(ValueError):
        message(f"0a07{one}00803f").floats(1)


@pytest.mark.parametrize(
    "text",
    [
        "08",  # no value
        "08ffffffffffffffffffff01",  # more than ten bytes
        "08ffffffffffffffffff7f",  # more than 64 bits
        "1205 74657374",  # length 5, but only four bytes follow
        "12ffffffffffffffff7f 00",  # a length near 2^63
        "15 000000",  # a truncated fixed32
        "0b",  # a group, which is not supported
    ],
)
def test_malformed_messages_are_refused(text):
    with pytest.raises(ValueError):
        message(text)


def test_fields_are_bounded():
    with refused(ValueError, "131072"):
        Message(memoryview(b"\x08\x00" * 200_000))


def test_a_number_may_have_64_bits():
    data = memoryview(bytes.fromhex("00ffffffffffffffffff01"))
    assert read_varint(data, 1) == (2**64 - 1, 11)


def test_checksums_are_turned_and_moved():
    # RFC 3720, B.4: the CRC-32C of 32 bytes of zeros is 0x8a9136aa.
    masked = ((0x8A9136AA >> 15) | (0x8A9136AA << 17 & 0xFFFFFFFF)) + 0xA282EAD8
    check_crc(bytes(32), masked & 0xFFFFFFFF, "zeros")
    with refused(ValueError, "zeros"):
        check_crc(bytes(31), masked & 0xFFFFFFFF, "zeros")


INDEX = Path(f"{PREFIX}.index")


def copied(folder):
    for path in (INDEX, SHARD):
        shutil.copy(path, folder)
    return folder / PREFIX.name


def answers(config, tensors):
    """Returns tengen's policy logits for TensorFlow's positions."""
    net = config.build(board_of(open_game(TASK)).signature).eval()
    net.load_state_dict(
        {name: torch.from_numpy(x.copy()) for name, x in tensors.items()}
    )
    given = expected()["network_planes"]
    planes = np.concatenate([np.ones_like(given[:, :1]), given], axis=1)
    with torch.inference_mode():
        return net(torch.from_numpy(planes).float())[0].numpy()


def test_answers_tell_tensors_of_one_shape_apart():
    """Swapped tensors of one shape change the outputs, so names are checked."""
    weights = read_weights(Checkpoint(PREFIX))
    wanted = expected()["network_policy_logits"]
    pairs = [
        (a, b)
        for a, b in itertools.combinations(weights.tensors, 2)
        if weights.tensors[a].shape == weights.tensors[b].shape
        and a.rpartition(".")[2] == b.rpartition(".")[2]
    ]
    # Pairs among four block convolutions, and among four parts of five norms.
    assert len(pairs) == 6 + 4 * 10
    for a, b in pairs:
        swapped = {a: weights.tensors[b], b: weights.tensors[a]}
        policy = answers(weights.config, {**weights.tensors, **swapped})
        assert np.abs(policy - wanted).max() > 1e-3, (a, b)


def test_a_last_number_stands_for_all_that_follow(tmp_path):
    def field(key, content):
        return bytes([key, len(content)]) + content

    sizes = field(0x12, b"\x08\x02") + field(0x12, b"\x08\x03")
    numbers = field(0x2A, np.float32([1.0, 0.5]).tobytes())
    tensor = b"\x08\x01" + field(0x12, sizes) + numbers
    entry = field(0x0A, b"value") + field(0x12, field(0x42, tensor))
    node = field(0x0A, b"x") + field(0x12, b"Const") + field(0x2A, entry)
    path = tmp_path / "x.pb"
    path.write_bytes(field(0x0A, node))
    graph = FrozenGraph(path)
    assert graph.shapes == {"x": (2, 3)}
    np.testing.assert_array_equal(graph.read("x"), [[1.0, 0.5, 0.5], [0.5] * 3])


def varint(value):
    return bytes([value & 0x7F | 0x80, value >> 7]) if value > 127 else bytes([value])


def closed(content, compression=0, num_restarts=1):
    """Returns a block with its trailer, according to the format's specification."""
    data = content + bytes(4 * num_restarts) + num_restarts.to_bytes(4, "little")
    data += bytes([compression])
    crc = _core.crc32c(data)
    masked = ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
    return data + masked.to_bytes(4, "little")


def table_of(*blocks, repeats=1):
    """Returns a table of ``blocks``, which lists each block ``repeats`` times."""
    file, index = b"", b""
    for block in blocks:
        handle = varint(len(file)) + varint(len(block) - 5)
        file += block
        for _ in range(repeats):
            key = len(index).to_bytes(2, "big")
            index += bytes([0, 2, len(handle)]) + key + handle
    place = varint(len(file)) + varint(len(closed(index)) - 5)
    file += closed(index)
    footer = b"\x00\x00" + place
    return file + footer.ljust(40, b"\x00") + bytes.fromhex("57fb808b247547db")


# The keys "net/one" and "net/two", which share a prefix of four bytes.
SHARING = b"\x00\x07\x01net/one1" + b"\x04\x03\x02two22"
LAST = b"\x00\x01\x01z9"
LONG = b"\x00" + varint(1025) + b"\x01" + bytes(1025) + b"9"


def test_keys_share_beginnings_and_blocks_are_many():
    table = read_table(memoryview(table_of(closed(SHARING), closed(LAST))))
    found = {key: bytes(value) for key, value in table.items()}
    assert found == {b"net/one": b"1", b"net/two": b"22", b"z": b"9"}


@pytest.mark.parametrize(
    ("data", "told"),
    [
        pytest.param(table_of(closed(SHARING), closed(SHARING)), "twice", id="twice"),
        pytest.param(table_of(closed(SHARING, 1)), "compressed", id="compressed"),
        pytest.param(table_of(closed(b"\1\1\1z9")), "longer than its", id="shares"),
        pytest.param(table_of(closed(b"\0\1\x7fz9")), "longer than its", id="value"),
        pytest.param(table_of(closed(LONG)), "key that is too long", id="key"),
        pytest.param(
            table_of(closed(b"", num_restarts=30), repeats=20),
            "overlap",
            id="overlap",
        ),
        pytest.param(table_of(closed(SHARING))[:-1], "not a table of keys", id="end"),
        pytest.param(table_of(closed(SHARING))[1:], "", id="begin"),
    ],
)
def test_tables_of_another_kind_are_refused(data, told):
    with refused(ValueError, *told.split("|")):
        read_table(memoryview(data))


def test_a_table_with_any_byte_damaged_is_refused_or_the_same():
    data = table_of(closed(SHARING), closed(LAST))
    wanted = read_table(memoryview(data))
    for place in range(len(data)):
        try:
            assert read_table(memoryview(flipped(data, place))) == wanted
        except ValueError:
            # Damage is missed only in the footer's first handle and padding.
            continue
        assert len(data) - 48 <= place < len(data) - 8


def test_entries_that_do_not_fit_are_refused(tmp_path):
    def told(header, entry):
        parts = bytes.fromhex(header), bytes.fromhex(entry)
        block = bytes([0, 0, len(parts[0])]) + parts[0]
        block += bytes([0, 1, len(parts[1])]) + b"x" + parts[1]
        (tmp_path / "x.index").write_bytes(table_of(closed(block)))
        return refusal(lambda: Checkpoint(tmp_path / "x"))[0]

    # One file; a scalar float32 of 4 bytes in file 0.
    assert told("0801", "08012804") == ""
    assert "has 0 files of numbers" in told("", "08012804")
    assert "are big-endian" in told("08011001", "08012804")
    assert "in a file beyond the last" in told("0801", "080118012804")
    assert "does not match the shape" in told("0801", "08012808")
    # A size of -1, stored as 2^64 - 1.
    axis = "120d120b08ffffffffffffffffff01"
    assert "has no size" in told("0801", f"0801{axis}2804")


def test_an_index_with_any_byte_damaged_is_refused_or_the_same(tmp_path):
    prefix = copied(tmp_path)
    path, data = Path(f"{prefix}.index"), INDEX.read_bytes()
    wanted = Checkpoint(prefix).shapes
    num_refused = 0
    places = range(0, len(data), 3)
    for place in places:
        path.write_bytes(flipped(data, place))
        told, checkpoint = refusal(lambda: Checkpoint(prefix))
        num_refused += told != ""
        assert checkpoint is None or checkpoint.shapes == wanted
    # Some of the last 70 bytes are not read.
    assert num_refused >= len(places) - 70 // 3
    for length in range(0, len(data), 41):
        path.write_bytes(data[:length])
        with refused(RunError, f"checkpoint ({path})"):
            Checkpoint(prefix)


def test_numbers_with_any_tensor_damaged_are_refused(tmp_path):
    prefix = copied(tmp_path)
    path, data = tmp_path / SHARD.name, SHARD.read_bytes()
    checkpoint = Checkpoint(prefix)
    names = list(checkpoint.shapes)
    for place in range(0, len(data), 197):
        path.write_bytes(flipped(data, place))
        told = [refusal(lambda n=name: checkpoint.read(n))[0] for name in names]
        assert len([text for text in told if "checksum" in text]) == 1
    path.write_bytes(data[:-1])
    with refused(RunError, SHARD.name):
        read_weights(checkpoint)
    path.unlink()
    with refused(RunError, f"{SHARD.name})"):
        read_weights(checkpoint)


def test_pipes_are_refused_instead_of_waiting_for_their_writers(tmp_path):
    graph = tmp_path / "x.pb"
    os.mkfifo(graph)
    with refused(RunError, f"graph ({graph})"):
        FrozenGraph(graph)
    prefix = copied(tmp_path)
    checkpoint = Checkpoint(prefix)
    for path, read in (
        (tmp_path / SHARD.name, lambda: read_weights(checkpoint)),
        (Path(f"{prefix}.index"), lambda: Checkpoint(prefix)),
    ):
        path.unlink()
        os.mkfifo(path)
        with refused(RunError, f"checkpoint ({path})"):
            read()


def test_a_damaged_graph_is_one_error_or_another_network(tmp_path):
    """A frozen graph has no checksum, so changed weights are not detected."""
    path, data = tmp_path / "x.pb", GRAPH.read_bytes()
    outcomes = set()
    for place in range(0, len(data), 173):
        path.write_bytes(flipped(data, place))
        told, weights = refusal(lambda: read_weights(FrozenGraph(path)))
        outcomes.add("refused" if told else "read")
        assert told or all(np.isfinite(x).all() for x in weights.tensors.values())
    assert outcomes == {"read", "refused"}
    for length in range(0, len(data), 499):
        path.write_bytes(data[:length])
        with pytest.raises(TengenError):
            read_weights(FrozenGraph(path))


class Fake:
    """A file whose tensors are zeros of given shapes."""

    name = "checkpoint (fake)"

    def __init__(self, shapes):
        self.shapes = shapes

    def read(self, name):
        zero = -1 if name == "global_step" else 0
        return np.full(self.shapes[name], zero, np.float32)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"conv2d_4/kernel": None}, "4 convolutions"),
        ({"conv2d/kernel": (3, 3, 17, 8)}, "(3, 3, 17, 8) of conv2d"),
        ({"batch_normalization_2/gamma": None}, "batch_normalization_2/gamma"),
        ({"dense/kernel": (50, 25)}, "25 actions"),
        ({"dense_1/bias": (7,)}, "(7,) of dense_1/bias"),
        ({"conv2d/kernel": (3, 3, 13, 2000)}, "too many weights"),
    ],
)
def test_networks_of_another_kind_are_refused(change, told):
    shapes = {**Checkpoint(PREFIX).shapes, **change}
    fake = Fake({name: shape for name, shape in shapes.items() if shape is not None})
    with refused(RunError, "checkpoint (fake)", told):
        read_weights(fake)


def test_numbers_that_are_not_finite_are_refused():
    class Endless(Fake):
        def read(self, name):
            return np.full(self.shapes[name], np.inf, np.float32)

    shapes = {**Checkpoint(PREFIX).shapes}
    del shapes["global_step"]
    with refused(RunError, "stem.weight"):
        read_weights(Endless(shapes))
    assert isinstance(read_weights(Fake(shapes)), MinigoWeights)
    with refused(RunError, "global_step, -1"):
        read_weights(Fake({**shapes, "global_step": ()}))
