"""Locks on filesystems that have none, or whose locks end at the host."""

import ctypes
import errno
import fcntl
import os
import signal
import socket
import subprocess
import sys

import pytest

from tengen.errors import DiskFullError, RunError, UsageError
from tengen.run.lock import WriterLock, lock_holder
from tests.refusals import refused


def test_a_filesystem_without_locks_is_told(tmp_path, monkeypatch):
    def flock(*_):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with refused(RunError, "/a)", "no locks"):
        WriterLock(tmp_path / "a", tmp_path)


def test_who_lost_the_lock_to_another_host_is_told(tmp_path):
    """As where two hosts mount a folder and each keeps its locks to itself."""
    first = WriterLock(tmp_path / "a", tmp_path)
    first.check_held()
    ours = (tmp_path / "a").read_text()
    assert socket.gethostname() in ours
    (tmp_path / "a").write_text(ours.replace(socket.gethostname(), "second"))
    with refused(RunError, f"{os.getpid()} on second"):
        first.check_held()


def test_a_full_disk_leaves_the_lock_to_the_next_try(tmp_path, monkeypatch):
    def pwrite(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        with pytest.raises(DiskFullError):
            WriterLock(tmp_path / "a", tmp_path)
    assert lock_holder(tmp_path / "a") is None
    with WriterLock(tmp_path / "a", tmp_path) as lock:
        lock.check_held()
        with refused(UsageError, f"process {os.getpid()}"):
            WriterLock(tmp_path / "a", tmp_path)


def _fork_of_python():
    return os.fork()


def _fork_of_c():
    """As a simulator forks: no hook of Python's runs."""
    pid = ctypes.CDLL(None).fork()
    return pid


@pytest.mark.parametrize("fork", [_fork_of_python, _fork_of_c])
def test_a_lock_does_not_live_on_in_what_its_holder_forked(tmp_path, fork):
    read_end, write_end = os.pipe()
    holder = os.fork()
    if holder == 0:
        lock = WriterLock(tmp_path / "a", tmp_path)
        child = fork()
        if child == 0:
            signal.pause()
            os._exit(0)
        os.write(write_end, b"%d\n" % child)
        lock.check_held()
        signal.pause()
        os._exit(0)
    with os.fdopen(read_end) as pipe:
        child = int(pipe.readline())
    os.close(write_end)
    try:
        assert lock_holder(tmp_path / "a") == f"{holder} on {socket.gethostname()}"
        os.kill(holder, signal.SIGKILL)
        os.waitpid(holder, 0)
        os.kill(child, 0)
        assert lock_holder(tmp_path / "a") is None
        WriterLock(tmp_path / "a", tmp_path).release()
    finally:
        os.kill(child, signal.SIGKILL)


def test_a_folder_need_not_be_named_in_utf_8(tmp_path):
    path = tmp_path / os.fsdecode(b"p\xff") / "a"
    with WriterLock(path, tmp_path):
        assert lock_holder(path) is not None
    assert lock_holder(path) is None


# A file that nobody opens, as on a host that went away, until a fork has come back.
OPENS = """
import os, sys, threading
from tengen import _core
os.mkfifo(sys.argv[1])
path = os.fsencode(sys.argv[1])
opened = []
thread = threading.Thread(
    target=lambda: opened.append(_core.open_owned(path, os.O_RDONLY, 0))
)
thread.start()
child = os.fork()
if child == 0:
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
other_end = os.open(path, os.O_RDWR)
thread.join()
assert os.read(opened[0], 0) == b""
"""


def test_neither_threads_nor_forks_wait_for_a_slow_disk(tmp_path):
    words = [sys.executable, "-c", OPENS, str(tmp_path / "pipe")]
    assert subprocess.run(words, timeout=900).returncode == 0


def test_what_a_forked_process_does_with_a_lock_is_nothing_to_its_holder(tmp_path):
    with WriterLock(tmp_path / "a", tmp_path) as lock:
        child = os.fork()
        if child == 0:
            lock.release()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        assert lock_holder(tmp_path / "a") is not None
    assert lock_holder(tmp_path / "a") is None


def test_a_lock_that_is_held_is_refused_also_while_somebody_looks(tmp_path):
    path = tmp_path / "lock"
    with WriterLock(path, tmp_path):
        assert lock_holder(path) is not None
        with refused(UsageError, "in use"):
            WriterLock(path, tmp_path)
