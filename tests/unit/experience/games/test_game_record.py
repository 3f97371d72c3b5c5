import random
import struct

import pytest
from store_games import random_game

from tengen import _core
from tests.refusals import refused


@pytest.mark.parametrize(
    ("data", "crc"),
    [
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),  # RFC 3720, B.4
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ],
)
def test_crc32c_of_known_vectors(data, crc):
    assert _core.crc32c(data) == crc
    assert _core.crc32c_portable(data) == crc


def test_crc32c_agrees_with_the_table_and_continues():
    rng = random.Random(1)
    for size in range(200):
        data = rng.randbytes(size)
        cut = rng.randrange(size + 1)
        assert _core.crc32c(data) == _core.crc32c_portable(data)
        assert _core.crc32c(data[cut:], _core.crc32c(data[:cut])) == _core.crc32c(data)


def test_a_worked_record_has_the_documented_bytes():
    ply = _core.PlyRecord()
    ply.action, ply.root_value, ply.num_simulations = 0x0102, -0.5, 64
    ply.policy_weight, ply.value_weight = 1.0, 0.25
    ply.policy = [(7, 65535), (0x0102, 1)]
    ply.lead = -20
    record = _core.GameRecord()
    record.generation, record.game_index, record.model = 2, 3, 4
    record.outcome, record.opening, record.plies = 2, [5, 6], [ply]
    record.variant = "go/7"
    record.switches = [(0, 9), (1, 10)]
    expected = struct.pack("<BBIIIB4sHH", 3, 2, 2, 3, 4, 4, b"go/7", 2, 1)
    expected += struct.pack("<HHIHI", 2, 0, 9, 1, 10)
    expected += struct.pack("<HH", 5, 6)
    expected += struct.pack("<HfffIhH", 0x0102, -0.5, 1.0, 0.25, 64, -20, 2)
    expected += struct.pack("<HHHH", 7, 65535, 0x0102, 1)
    assert _core.encode_game(record) == expected


def test_a_record_of_the_version_before_has_no_leads():
    record = random_game("tictactoe", 1)
    for ply in record.plies:
        ply.lead = _core.NO_LEAD
    assert _core.NO_LEAD == -32768
    old = struct.pack("<BBIIIBHHH", 2, record.outcome, 0, 1, 3, 0, *_lengths(record), 0)
    old += struct.pack(f"<{len(record.opening)}H", *record.opening)
    for ply in record.plies:
        weights = ply.root_value, ply.policy_weight, ply.value_weight
        counts = ply.num_simulations, len(ply.policy)
        old += struct.pack("<HfffIH", ply.action, *weights, *counts)
        for entry in ply.policy:
            old += struct.pack("<HH", *entry)
    assert _core.decode_game(old) == record
    with pytest.raises(_core.CoreError):
        _core.decode_game(b"\x03" + old[1:])


def _lengths(record):
    return len(record.opening), len(record.plies)


@pytest.mark.parametrize("name", ["tictactoe", "connect4", "gomoku/9"])
def test_random_records_come_back_the_same(name):
    for index in range(50):
        record = random_game(name, index)
        data = _core.encode_game(record)
        assert _core.decode_game(data) == record
        assert _core.encode_game(_core.decode_game(data)) == data


def test_every_truncation_and_extension_is_refused():
    data = _core.encode_game(random_game("tictactoe", 1))
    for size in range(len(data)):
        with pytest.raises(_core.CoreError):
            _core.decode_game(data[:size])
    with refused(_core.CoreError, "end"):
        _core.decode_game(data + b"\0")


def test_a_newer_record_is_refused_by_its_version():
    data = bytearray(_core.encode_game(random_game("tictactoe", 1)))
    for version in (1, 4):
        data[0] = version
        with refused(_core.CoreError, f"version ({version})"):
            _core.decode_game(bytes(data))


def test_records_that_break_a_rule_are_not_encoded():
    long_name = random_game("tictactoe", 1)
    long_name.variant = "v" * 256
    with refused(_core.CoreError, "variant (", "255"):
        _core.encode_game(long_name)
    for switches in ([(3, 1), (3, 2)], [(4, 1), (2, 2)], [(60000, 1)]):
        switched = random_game("connect4", 1)
        switched.switches = switches
        with refused(_core.CoreError, "switch"):
            _core.encode_game(switched)
    undecided = random_game("tictactoe", 1)
    undecided.outcome = 0
    with refused(_core.CoreError, "outcome"):
        _core.encode_game(undecided)
    ply = _core.PlyRecord()
    ply.policy = [(0, 1)]
    record = random_game("tictactoe", 1)
    record.plies = [ply]
    with refused(_core.CoreError, "policy"):
        _core.encode_game(record)
    ply.policy_weight, ply.policy = 1.0, [(0, 0)]
    record.plies = [ply]
    with refused(_core.CoreError, "above 0"):
        _core.encode_game(record)
    ply.policy, ply.root_value = [(0, 1)], 1.5
    record.plies = [ply]
    with refused(_core.CoreError, "root_value"):
        _core.encode_game(record)
