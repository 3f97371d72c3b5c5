"""Locks on filesystems that have none, or whose locks end at the host."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from tengen.errors import DiskFullError, RunError, UsageError
from tengen.run.lock import WriterLock, lock_holder


def test_a_filesystem_without_locks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: Any) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with pytest.raises(
        RunError, match=r"lock \(.*/a\) cannot be taken, no locks available; use a"
    ):
        WriterLock(tmp_path / "a", tmp_path)


def test_who_lost_the_lock_to_another_host_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where two hosts mount a folder and each keeps its locks to itself."""
    monkeypatch.setattr(fcntl, "flock", lambda *_: None)
    monkeypatch.setattr("socket.gethostname", lambda: "first")
    first = WriterLock(tmp_path / "a", tmp_path)
    first.check_held()
    monkeypatch.setattr("socket.gethostname", lambda: "second")
    second = WriterLock(tmp_path / "a", tmp_path)
    second.check_held()
    with pytest.raises(
        RunError, match=rf"was taken by {os.getpid()} on second too, so the"
    ):
        first.check_held()


def test_a_full_disk_leaves_the_lock_to_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def pwrite(*_: Any) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", pwrite)
        with pytest.raises(DiskFullError):
            WriterLock(tmp_path / "a", tmp_path)
    assert lock_holder(tmp_path / "a") is None
    with WriterLock(tmp_path / "a", tmp_path) as lock:
        lock.check_held()
        with pytest.raises(UsageError, match=f"in use by process {os.getpid()} on"):
            WriterLock(tmp_path / "a", tmp_path)
