import random
import struct
import threading

import pytest

from tengen import _core
from tengen.errors import RunError, UsageError
from tengen.experience.games.journal import JournalGap, read_journal
from tests.refusals import refused

META = '{"kind": "games"}'
HEADER_BYTES = 20 + len(META)
FRAME_BYTES = 12  # before a payload


@pytest.fixture(autouse=True)
def _disarm():
    yield
    _core.set_fault("", _core.FaultAction.NONE)


def write(path, frames):
    journal = _core.Journal(str(path), META)
    for frame in frames:
        journal.append(frame)
    journal.close()


def test_frames_come_back_in_order(tmp_path):
    rng = random.Random(1)
    frames = [rng.randbytes(rng.randrange(1, 300)) for _ in range(100)]
    write(tmp_path / "a", frames)
    assert _core.read_journal(str(tmp_path / "a")) == (META, frames, [])


def test_the_file_has_the_documented_bytes(tmp_path):
    write(tmp_path / "a", [b"xyz"])
    start = b"TENGENJL" + struct.pack("<II", 2, len(META))
    header = start + struct.pack("<I", _core.crc32c(start + META.encode()))
    length = struct.pack("<I", 3)
    crc = struct.pack("<I", _core.crc32c(length + b"xyz"))
    frame = b"TNGF" + length + crc + b"xyz"
    assert (tmp_path / "a").read_bytes() == header + META.encode() + frame


def test_durable_counts_follow_appends_and_flush(tmp_path):
    journal = _core.Journal(str(tmp_path / "a"), META)
    for _ in range(10):
        journal.append(b"frame")
    journal.flush()
    assert journal.num_appended == journal.num_durable == 10
    journal.close()
    journal.close()
    with refused(_core.CoreError, "closed"):
        journal.append(b"frame")


def ends_of(frames):
    """Where the header and each frame end in the file."""
    ends = [HEADER_BYTES]
    for frame in frames:
        ends.append(ends[-1] + FRAME_BYTES + len(frame))
    return ends


def test_a_tail_torn_at_any_byte_is_told_and_left(tmp_path):
    frames = [b"one", b"second", b"3rd frame"]
    write(tmp_path / "whole", frames)
    whole = (tmp_path / "whole").read_bytes()
    ends = ends_of(frames)
    for size in range(HEADER_BYTES, len(whole) + 1):
        torn = tmp_path / "torn"
        torn.write_bytes(whole[:size])
        num_whole = sum(end <= size for end in ends) - 1
        end = ends[num_whole]
        gaps = [(end, size - end, True)] if size > end else []
        assert _core.read_journal(str(torn)) == (META, frames[:num_whole], gaps)
        assert torn.read_bytes() == whole[:size]
    torn.write_bytes(whole + bytes(4096))
    assert _core.read_journal(str(torn)) == (META, frames, [(ends[-1], 4096, True)])


def test_a_flipped_bit_anywhere_costs_its_own_frame_only(tmp_path):
    frames = [b"one", b"second", b"3rd frame"]
    write(tmp_path / "whole", frames)
    whole = (tmp_path / "whole").read_bytes()
    ends = ends_of(frames)
    for position in range(HEADER_BYTES, len(whole)):
        damaged = bytearray(whole)
        damaged[position] ^= 0x10
        (tmp_path / "a").write_bytes(damaged)
        hit = sum(end <= position for end in ends) - 1
        left = [frame for index, frame in enumerate(frames) if index != hit]
        gap = (ends[hit], ends[hit + 1] - ends[hit], hit == 2)
        assert _core.read_journal(str(tmp_path / "a")) == (META, left, [gap])


def test_a_lost_page_costs_the_frames_that_it_held(tmp_path):
    frames = [bytes([index]) * 1500 for index in range(1, 9)]
    write(tmp_path / "a", frames)
    whole = bytearray((tmp_path / "a").read_bytes())
    whole[4096:8192] = bytes(4096)  # frames 2, 3, 4 and 5 lie in it at least in part
    (tmp_path / "a").write_bytes(whole)
    _, left, gaps = _core.read_journal(str(tmp_path / "a"))
    ends = ends_of(frames)
    hit = [i for i in range(8) if ends[i] < 8192 and ends[i + 1] > 4096]
    assert left == [frame for i, frame in enumerate(frames) if i not in hit]
    assert gaps == [(ends[hit[0]], ends[hit[-1] + 1] - ends[hit[0]], False)]


def test_a_mark_within_a_damaged_frame_is_no_frame(tmp_path):
    write(tmp_path / "a", [b"x" + b"TNGF" * 10, b"second"])
    content = bytearray((tmp_path / "a").read_bytes())
    content[HEADER_BYTES + FRAME_BYTES] ^= 1
    (tmp_path / "a").write_bytes(content)
    frames = _core.read_journal(str(tmp_path / "a"))[1]
    assert frames == [b"second"]


def test_a_gap_names_file_place_and_size(tmp_path):
    write(tmp_path / "a.journal", [b"one", b"second"])
    content = bytearray((tmp_path / "a.journal").read_bytes())
    content[-1] ^= 1
    content[HEADER_BYTES] ^= 1
    (tmp_path / "a.journal").write_bytes(content)
    write(tmp_path / "b.journal", [b"one", b"second"])
    content = bytearray((tmp_path / "b.journal").read_bytes())
    content[HEADER_BYTES] ^= 1
    (tmp_path / "b.journal").write_bytes(content)
    start = HEADER_BYTES
    (tail,) = read_journal(tmp_path / "a.journal").gaps
    assert tail == JournalGap(tmp_path / "a.journal", start, 33, True)
    (damage,) = read_journal(tmp_path / "b.journal").gaps
    assert damage == JournalGap(tmp_path / "b.journal", start, 15, False)
    assert str(damage) == (
        f"journal ({tmp_path / 'b.journal'}) is damaged at byte {start}, 15 bytes; all "
        "complete frames were kept"
    )


def test_threads_append_whole_frames_in_their_own_order(tmp_path):
    journal = _core.Journal(str(tmp_path / "a"), META, max_queue_bytes=256)

    def work(thread):
        for number in range(200):
            journal.append(struct.pack("<II", thread, number))

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    journal.close()
    found = {}
    for frame in _core.read_journal(str(tmp_path / "a"))[1]:
        thread_number, number = struct.unpack("<II", frame)
        found.setdefault(thread_number, []).append(number)
    assert found == {i: list(range(200)) for i in range(4)}


def test_an_existing_file_is_never_opened_for_writing(tmp_path):
    write(tmp_path / "a", [b"one"])
    with refused(_core.CoreError, "exist"):
        _core.Journal(str(tmp_path / "a"), META)
    assert _core.read_journal(str(tmp_path / "a"))[1] == [b"one"]


@pytest.mark.parametrize(
    "content", [b"", b"TENGENJL", b"PK\x03\x04" + bytes(60), bytes(60)]
)
def test_a_foreign_file_is_refused_and_kept(tmp_path, content):
    path = tmp_path / "foreign.journal"
    path.write_bytes(content)
    with refused(RunError, "foreign.journal"):
        read_journal(path)
    assert path.read_bytes() == content


def test_a_newer_journal_is_a_usage_error_with_both_versions(tmp_path):
    write(tmp_path / "new.journal", [b"one"])
    content = bytearray((tmp_path / "new.journal").read_bytes())
    content[8] = 9
    (tmp_path / "new.journal").write_bytes(content)
    with refused(UsageError, "new.journal", "schema 9", "2"):
        read_journal(tmp_path / "new.journal")


def test_a_damaged_header_is_refused(tmp_path):
    write(tmp_path / "a", [b"one"])
    content = bytearray((tmp_path / "a").read_bytes())
    content[25] ^= 1
    (tmp_path / "a").write_bytes(content)
    with refused(RunError, "header"):
        read_journal(tmp_path / "a")


@pytest.mark.parametrize(
    "point", ["group_gathered", "group_half_written", "group_written"]
)
def test_a_full_disk_keeps_what_was_taken(tmp_path, point):
    journal = _core.Journal(str(tmp_path / "a"), META)
    journal.append(b"before")
    journal.flush()
    _core.set_fault(f"journal.{point}", _core.FaultAction.DISK_FULL)
    journal.append(b"during")
    with refused(_core.CoreError, "No space"):
        journal.flush()
    with refused(_core.CoreError, "No space"):
        journal.append(b"refused")
    assert (journal.num_appended, journal.num_durable) == (2, 1)
    _core.set_fault("", _core.FaultAction.NONE)
    journal.flush()
    journal.append(b"after")
    journal.close()
    frames = _core.read_journal(str(tmp_path / "a"))[1]
    assert frames == [b"before", b"during", b"after"]
