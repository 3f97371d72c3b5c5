"""A file is hashed once, and again after any change."""

import hashlib
import os

import pytest

from tengen.run import file_sha256, reading, remember_sha256


def of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_it_is_the_hash_of_the_bytes(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert file_sha256(path) == of(b"one")
    with pytest.raises(FileNotFoundError):
        file_sha256(tmp_path / "other")


@pytest.mark.parametrize("data", [b"two", b"longer"])
def test_a_changed_file_is_read_again(tmp_path, data):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    assert file_sha256(path) == of(b"one")
    stat = os.stat(path)
    path.write_bytes(data)
    # Not within the clock's tick, in which no writer and reader of a model are.
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 4_000_000))
    assert file_sha256(path) == of(data)


def test_a_file_that_replaces_another_is_read(tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_bytes(b"one")
    assert file_sha256(path) == of(b"one")
    stat = os.stat(path)
    other.write_bytes(b"two")
    os.utime(other, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    other.replace(path)
    assert file_sha256(path) == of(b"two")


def test_it_is_read_once_and_a_rename_changes_nothing(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    remember_sha256(path, of(b"one"))

    def read(*_):
        raise AssertionError("it is read")

    monkeypatch.setattr(hashlib, "file_digest", read)
    assert file_sha256(path) == of(b"one")
    assert file_sha256(path.rename(tmp_path / "moved")) == of(b"one")


def test_few_are_kept(tmp_path):
    for number in range(2 * reading._NUM_KEPT):
        path = tmp_path / str(number)
        path.write_bytes(b"%d" % number)
        assert file_sha256(path) == of(b"%d" % number)
    assert len(reading._known) == reading._NUM_KEPT
