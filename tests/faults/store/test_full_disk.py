"""A full disk causes a clear error, and no accepted game is lost.

A limit on the file size simulates the full disk, because writes beyond it fail.
"""

from __future__ import annotations

import contextlib
import os
import resource
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from store_games import random_game

from tengen import _core
from tengen.errors import DiskFullError, RunError
from tengen.experience import ExperienceWriter
from tengen.experience.games.journal import core_errors, read_journal
from tengen.experience.games.segment import recorded_games
from tengen.roles.alone.role_log import FullDiskPause
from tests.refusals import refused

_RECORDS = [random_game("connect4", index) for index in range(40)]


def in_fork(work: Callable[[], None]) -> str:
    """Runs ``work`` in a forked process; returns its traceback, empty on success."""
    read_end, write_end = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            work()
        except BaseException:
            os.write(write_end, traceback.format_exc().encode()[-4000:])
        finally:
            os._exit(0)
    os.close(write_end)
    with open(read_end) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return text


def allow(num_bytes: int) -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (num_bytes, hard))


def test_a_journal_keeps_its_games_until_there_is_space(tmp_path: Path) -> None:
    def work() -> None:
        with ExperienceWriter(tmp_path / "w", 0) as writer:
            segment = writer.open_games(0, "connect4")
            allow(4000)
            with contextlib.suppress(RunError):
                for record in _RECORDS:
                    segment.sink.put(record)
                    segment.flush()
            num_taken = segment.num_appended
            with refused(RunError, "000000.journal"):
                segment.flush()
            with refused(_core.CoreError, "File too large"):
                segment.sink.put(_RECORDS[num_taken])
            assert segment.num_durable == num_taken - 1
            assert os.path.getsize(segment.path) <= 4000
            allow(resource.RLIM_INFINITY)
            segment.flush()
            assert segment.num_durable == num_taken
            for record in _RECORDS[num_taken:]:
                segment.sink.put(record)
            segment.close()

    assert in_fork(work) == ""
    contents = read_journal(tmp_path / "w" / "0" / "000000.journal")
    assert contents.frames == [_core.encode_game(record) for record in _RECORDS]


def test_a_limit_on_file_sizes_is_not_waited_for(tmp_path: Path) -> None:
    def work() -> None:
        def write() -> None:
            with core_errors():
                for record in _RECORDS:
                    segment.sink.put(record)
                    segment.flush()

        said: list[str] = []
        pause = FullDiskPause(tmp_path, threading.Event(), said.append)
        with ExperienceWriter(tmp_path / "w", 0) as writer:
            segment = writer.open_games(0, "connect4")
            allow(4000)
            with refused(RunError, "raise ulimit -f") as caught:
                pause(write)
            assert not isinstance(caught.value, DiskFullError)
            assert said == []

    assert in_fork(work) == ""


def test_a_process_that_gives_up_leaves_what_was_durable(tmp_path: Path) -> None:
    def work() -> None:
        with ExperienceWriter(tmp_path / "w", 0) as writer:
            segment = writer.open_games(0, "connect4")
            segment.sink.put(_RECORDS[0])
            segment.flush()
            allow(4000)
            for record in _RECORDS[1:]:
                segment.sink.put(record)
            segment.close()

    text = in_fork(work)
    assert "File too large; raise ulimit -f" in text
    found = recorded_games(tmp_path / "w", 0).indices
    assert found == list(range(len(found)))
    assert 1 <= len(found) < len(_RECORDS)


def test_sealing_without_space_keeps_the_journals(tmp_path: Path) -> None:
    def work() -> None:
        with ExperienceWriter(tmp_path / "w", 0) as writer:
            segment = writer.open_games(0, "connect4")
            for record in _RECORDS:
                segment.sink.put(record)
            segment.close()
            allow(1000)
            with refused(RunError, "000000.npz"):
                writer.seal(0)
            assert [p.name for p in segment.path.parent.iterdir()] == ["000000.journal"]
            allow(resource.RLIM_INFINITY)
            assert writer.recorded_games(0).indices == list(range(len(_RECORDS)))
            assert writer.seal(0) == segment.path.with_suffix(".npz")

    assert in_fork(work) == ""
    assert recorded_games(tmp_path / "w", 0).indices == list(range(len(_RECORDS)))
