import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tengen.errors import RunError
from tengen.run import file_sha256, remember_sha256
from tengen.run.publish import (
    move_directory,
    publish_directory,
    publish_file,
    publish_json,
    remove_leftovers,
    storage_error,
)
from tests.refusals import refused

STEPS = ("created", "half_written", "written", "synced", "renamed", "done")


def names(folder):
    return sorted(os.listdir(folder))


def run_killed_at(point, code):
    """Runs `code` in a child that SIGKILLs itself on arriving at `point`."""
    child = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "TENGEN_FAULT": point},
        check=False,
    )
    assert child.returncode == -signal.SIGKILL


def test_publish_file_replaces(tmp_path):
    path = tmp_path / "a"
    publish_file(path, b"old")
    publish_file(path, b"new")
    assert path.read_bytes() == b"new"
    publish_json(path, {"x": [1, None]})
    assert json.loads(path.read_text()) == {"x": [1, None]}
    assert names(tmp_path) == ["a"]


def test_publish_directory_is_immutable(tmp_path):
    def write(folder):
        (folder / "in").mkdir()
        (folder / "in" / "a").write_bytes(b"1")

    publish_directory(tmp_path / "m", write)
    assert (tmp_path / "m" / "in" / "a").read_bytes() == b"1"
    with refused(RunError, "immutable"):
        publish_directory(tmp_path / "m", write)
    assert names(tmp_path) == ["m"]


def test_nothing_is_left_when_the_writer_raises(tmp_path):
    def write(folder):
        (folder / "a").write_bytes(b"1")
        raise ValueError("mine")

    with refused(ValueError, "mine"):
        publish_directory(tmp_path / "m", write)
    assert names(tmp_path) == []


def test_move_directory(tmp_path):
    (tmp_path / "candidates" / "1").mkdir(parents=True)
    (tmp_path / "models").mkdir()
    move_directory(tmp_path / "candidates" / "1", tmp_path / "models" / "1")
    assert names(tmp_path / "models") == ["1"]
    assert names(tmp_path / "candidates") == []
    (tmp_path / "candidates" / "1").mkdir()
    with refused(RunError, "exists"):
        move_directory(tmp_path / "candidates" / "1", tmp_path / "models" / "1")


@pytest.mark.parametrize("step", STEPS)
def test_killed_file_is_old_or_new(tmp_path, step):
    path = tmp_path / "a"
    path.write_bytes(b"old" * 1000)
    run_killed_at(
        f"publish.{step}:1",
        "from pathlib import Path\n"
        "from tengen.run import publish_file\n"
        f"publish_file(Path({str(path)!r}), b'new' * 1000)\n",
    )
    is_new = step in ("renamed", "done")
    assert path.read_bytes() == (b"new" if is_new else b"old") * 1000
    assert remove_leftovers(tmp_path) == (0 if is_new else 1)
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("step", [step for step in STEPS if step != "half_written"])
def test_killed_directory_is_absent_or_whole(tmp_path, step):
    final = tmp_path / "m"
    run_killed_at(
        f"publish.{step}",
        "from pathlib import Path\n"
        "from tengen.run import publish_directory\n"
        "def write(folder):\n"
        "    for name in 'abc': (folder / name).write_text(name)\n"
        f"publish_directory(Path({str(final)!r}), write)\n",
    )
    is_new = step in ("renamed", "done")
    assert remove_leftovers(tmp_path) == (0 if is_new else 1)
    assert names(tmp_path) == (["m"] if is_new else [])
    if is_new:
        assert [(final / name).read_text() for name in "abc"] == ["a", "b", "c"]


def test_fault_counts_arrivals(tmp_path):
    run_killed_at(
        "publish.done:2",
        "from pathlib import Path\n"
        "from tengen.run import publish_file\n"
        "for name in 'abc':\n"
        f"    publish_file(Path({str(tmp_path)!r}) / name, b'x')\n",
    )
    assert names(tmp_path) == ["a", "b"]


def test_a_fault_strikes_the_path_that_it_names(tmp_path):
    run_killed_at(
        "publish.written:1:checkpoints/",
        "from pathlib import Path\n"
        "from tengen.run import publish_file\n"
        "for name in ('models', 'checkpoints', 'eval'):\n"
        f"    folder = Path({str(tmp_path)!r}) / name\n"
        "    folder.mkdir()\n"
        "    publish_file(folder / 'a', b'x')\n",
    )
    assert names(tmp_path) == ["checkpoints", "models"]
    assert names(tmp_path / "models") == ["a"]


def test_leftovers_of_the_living_and_of_other_hosts_stay(tmp_path):
    def write(mine):
        host = mine.name.removeprefix(".tmp-").partition(f"-{os.getpid()}-")[0]
        other_host = tmp_path / ".tmp-elsewhere.example-1-abcd1234-ffff-a"
        living = tmp_path / f".tmp-{host}-{os.getppid()}-abcd1234-ffff-a"
        earlier = tmp_path / f".tmp-{host}-{os.getpid()}-00000000-ffff-a"
        foreign = tmp_path / ".tmp-x"
        for path in (other_host, living, earlier, foreign):
            path.write_bytes(b"")
        assert remove_leftovers(tmp_path) == 1
        assert not earlier.exists()
        assert len(names(tmp_path)) == 4

    publish_directory(tmp_path / "a", write)


def test_full_disk_is_one_clear_line(tmp_path, monkeypatch):
    path = tmp_path / "a"
    publish_file(path, b"old")

    def full(descriptor):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with refused(RunError, "disk is full") as error:
        publish_file(path, b"new")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["a"]


def test_a_disk_that_refuses_the_cleaning_too_is_one_clear_line(tmp_path, monkeypatch):
    def refuse(*arguments, **options):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr(os, "fsync", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with refused(RunError, "read-only") as error:
        publish_file(tmp_path / "a", b"new")
    assert f"path ({tmp_path / 'a'})" in str(error.value)


def test_absent_folder_is_one_clear_line(tmp_path):
    with refused(RunError, "no such file"):
        publish_file(tmp_path / "no" / "a", b"")


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        (errno.EACCES, "access is denied; change its permissions"),
        (errno.EPERM, "access is denied; change its permissions"),
        (errno.EROFS, "it is mounted read-only; mount it for writing"),
    ],
)
def test_denied_is_told_from_read_only_and_from_full(number, rule):
    error = storage_error(Path("/x"), OSError(number, os.strerror(number)))
    assert rule in str(error)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_unwritable_directory(tmp_path):
    tmp_path.chmod(0o500)
    with refused(RunError, "denied"):
        publish_file(tmp_path / "a", b"")


def of(data):
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


def test_it_is_read_once_and_a_rename_changes_nothing(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"one")
    told = of(b"what was told and is not read again")
    remember_sha256(path, told)
    assert file_sha256(path) == told
    assert file_sha256(path.rename(tmp_path / "moved")) == told


def test_few_are_kept(tmp_path):
    for number in range(129):
        path = tmp_path / str(number)
        path.write_bytes(b"%d" % number)
        remember_sha256(path, of(b"told"))
    assert file_sha256(path) == of(b"told")
    assert file_sha256(tmp_path / "0") == of(b"0")  # forgotten, and read
