"""Protocol buffers by worked bytes, and masked checksums by known ones."""

from __future__ import annotations

import numpy as np
import pytest

from tengen.minigo.files import check_crc
from tengen.minigo.wire import Message, read_varint


def message(text: str) -> Message:
    return Message(memoryview(bytes.fromhex(text)))


def test_fields_of_the_formats_own_examples() -> None:
    # The Protocol Buffers documentation, "Encoding".
    assert message("089601").whole(1) == 150
    assert message("120774657374696e67").text(2) == "testing"
    assert message("1a03089601").message(3).whole(1) == 150
    assert message("089601").whole(2, default=7) == 7
    assert message("08010802").whole(1) == 2
    assert message("15 78563412").fixed32(2) == 0x12345678
    assert bytes(message("").raw(3)) == b""


def test_floats_are_packed_or_a_field_each() -> None:
    one, half = "0000803f", "0000003f"
    wanted = np.float32([1.0, 0.5])
    np.testing.assert_array_equal(message(f"0a08{one}{half}").floats(1), wanted)
    np.testing.assert_array_equal(message(f"0d{one}0d{half}").floats(1), wanted)
    with pytest.raises(ValueError, match="size"):
        message(f"0a07{one}00803f").floats(1)


@pytest.mark.parametrize(
    "text",
    [
        "08",  # no number
        "08ffffffffffffffffffff01",  # more than ten bytes
        "08ffffffffffffffffff7f",  # more than 64 bits
        "1205 74657374",  # five bytes, and four are there
        "12ffffffffffffffff7f 00",  # as many as nobody has
        "15 000000",  # a cut fixed number
        "0b",  # a group, which nobody writes
    ],
)
def test_malformed_messages_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="in it"):
        message(text)


def test_fields_are_bounded() -> None:
    with pytest.raises(ValueError, match="more than 131072 fields"):
        Message(memoryview(b"\x08\x00" * 200_000))


def test_a_number_may_have_64_bits() -> None:
    data = memoryview(bytes.fromhex("00ffffffffffffffffff01"))
    assert read_varint(data, 1) == (2**64 - 1, 11)


def test_checksums_are_turned_and_moved() -> None:
    # RFC 3720, B.4: the CRC-32C of 32 bytes of zeros is 0x8a9136aa.
    masked = ((0x8A9136AA >> 15) | (0x8A9136AA << 17 & 0xFFFFFFFF)) + 0xA282EAD8
    check_crc(bytes(32), masked & 0xFFFFFFFF, "zeros")
    with pytest.raises(ValueError, match="checksum of zeros is wrong"):
        check_crc(bytes(31), masked & 0xFFFFFFFF, "zeros")
