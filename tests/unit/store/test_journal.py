from __future__ import annotations

import random
import struct
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.store.segment import recover_journal

META = '{"kind": "games"}'
HEADER_BYTES = 20 + len(META)


@pytest.fixture(autouse=True)
def _disarm() -> Iterator[None]:
    yield
    _core.set_fault("", _core.FaultAction.NONE)


def write(path: Path, frames: list[bytes]) -> None:
    journal = _core.Journal(str(path), META)
    for frame in frames:
        journal.append(frame)
    journal.close()


def test_frames_come_back_in_order(tmp_path: Path) -> None:
    rng = random.Random(1)
    frames = [rng.randbytes(rng.randrange(1, 300)) for _ in range(100)]
    write(tmp_path / "a", frames)
    assert _core.recover(str(tmp_path / "a")) == (META, frames, 0)


def test_the_file_has_the_documented_bytes(tmp_path: Path) -> None:
    write(tmp_path / "a", [b"xyz"])
    start = b"TENGENJL" + struct.pack("<II", 1, len(META))
    header = start + struct.pack("<I", _core.crc32c(start + META.encode()))
    length = struct.pack("<I", 3)
    frame = length + struct.pack("<I", _core.crc32c(length + b"xyz")) + b"xyz"
    assert (tmp_path / "a").read_bytes() == header + META.encode() + frame


def test_durable_counts_follow_appends_and_flush(tmp_path: Path) -> None:
    journal = _core.Journal(str(tmp_path / "a"), META)
    for _ in range(10):
        journal.append(b"frame")
    journal.flush()
    assert journal.num_appended == journal.num_durable == 10
    journal.close()
    journal.close()
    with pytest.raises(_core.CoreError, match="closed"):
        journal.append(b"frame")


def test_a_tail_torn_at_any_byte_is_cut(tmp_path: Path) -> None:
    frames = [b"one", b"second", b"3rd frame"]
    write(tmp_path / "whole", frames)
    whole = (tmp_path / "whole").read_bytes()
    ends = [HEADER_BYTES]
    for frame in frames:
        ends.append(ends[-1] + 8 + len(frame))
    for size in range(HEADER_BYTES, len(whole) + 1):
        torn = tmp_path / "torn"
        torn.write_bytes(whole[:size])
        num_whole = sum(end <= size for end in ends) - 1
        num_cut = size - ends[num_whole]
        assert _core.recover(str(torn)) == (META, frames[:num_whole], num_cut)
        assert torn.stat().st_size == ends[num_whole]
        assert _core.recover(str(torn)) == (META, frames[:num_whole], 0)


def test_a_flipped_bit_anywhere_in_the_last_frame_cuts_it(tmp_path: Path) -> None:
    write(tmp_path / "whole", [b"one", b"second"])
    whole = (tmp_path / "whole").read_bytes()
    for position in range(len(whole) - 14, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        (tmp_path / "a").write_bytes(damaged)
        assert _core.recover(str(tmp_path / "a"))[1] == [b"one"]


def test_a_tail_of_zeros_is_cut(tmp_path: Path) -> None:
    write(tmp_path / "a", [b"one"])
    with open(tmp_path / "a", "ab") as file:
        file.write(bytes(4096))
    assert _core.recover(str(tmp_path / "a")) == (META, [b"one"], 4096)


def test_threads_append_whole_frames_in_their_own_order(tmp_path: Path) -> None:
    journal = _core.Journal(str(tmp_path / "a"), META, max_queue_bytes=256)

    def work(thread: int) -> None:
        for number in range(200):
            journal.append(struct.pack("<II", thread, number))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    found: dict[int, list[int]] = {}
    for frame in _core.recover(str(tmp_path / "a"))[1]:
        thread_number, number = struct.unpack("<II", frame)
        found.setdefault(thread_number, []).append(number)
    assert found == {i: list(range(200)) for i in range(4)}


def test_an_existing_file_is_never_opened_for_writing(tmp_path: Path) -> None:
    write(tmp_path / "a", [b"one"])
    with pytest.raises(_core.CoreError, match="must not exist"):
        _core.Journal(str(tmp_path / "a"), META)
    assert _core.recover(str(tmp_path / "a"))[1] == [b"one"]


@pytest.mark.parametrize(
    "content", [b"", b"TENGENJL", b"PK\x03\x04" + bytes(60), bytes(60)]
)
def test_a_foreign_file_is_refused_and_kept(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "foreign.journal"
    path.write_bytes(content)
    with pytest.raises(RunError, match=r"foreign\.journal.*not a tengen journal"):
        recover_journal(path)
    assert path.read_bytes() == content


def test_a_newer_journal_is_a_usage_error_with_both_versions(tmp_path: Path) -> None:
    write(tmp_path / "new.journal", [b"one"])
    content = bytearray((tmp_path / "new.journal").read_bytes())
    content[8] = 9
    (tmp_path / "new.journal").write_bytes(content)
    with pytest.raises(UsageError, match=r"new\.journal.*schema 9.*reads 1"):
        recover_journal(tmp_path / "new.journal")


def test_a_damaged_header_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "a", [b"one"])
    content = bytearray((tmp_path / "a").read_bytes())
    content[25] ^= 1
    (tmp_path / "a").write_bytes(content)
    with pytest.raises(RunError, match="damaged header"):
        recover_journal(tmp_path / "a")


@pytest.mark.parametrize(
    "point", ["group_gathered", "group_half_written", "group_written"]
)
def test_a_full_disk_keeps_what_was_taken(tmp_path: Path, point: str) -> None:
    journal = _core.Journal(str(tmp_path / "a"), META)
    journal.append(b"before")
    journal.flush()
    _core.set_fault(f"journal.{point}", _core.FaultAction.DISK_FULL)
    journal.append(b"during")
    with pytest.raises(_core.CoreError, match="No space left"):
        journal.flush()
    with pytest.raises(_core.CoreError, match="No space left"):
        journal.append(b"refused")
    assert (journal.num_appended, journal.num_durable) == (2, 1)
    _core.set_fault("", _core.FaultAction.NONE)
    journal.flush()
    journal.append(b"after")
    journal.close()
    frames = _core.recover(str(tmp_path / "a"))[1]
    assert frames == [b"before", b"during", b"after"]
