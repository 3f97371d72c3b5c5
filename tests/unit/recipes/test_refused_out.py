"""A folder that may not be written is bad usage, told before anything else is done."""

from __future__ import annotations

import errno
import os
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from tengen import cli
from tengen.run import check_writable

WORDS = ["train", "tictactoe", "--games", "0", "--devices", "cpu", "--out"]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that a test may make read-only, by ``remount``."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=8m", "tengen-test", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("this process may not mount a disk")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def remount(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)


@pytest.mark.parametrize("name", ["", "run", "some/where/run"])
def test_a_new_run_on_a_read_only_disk(
    disk: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    remount(disk)
    assert cli.main([*WORDS, str(disk / name)]) == 2
    assert capsys.readouterr().err == (
        f"tengen: path ({disk / name}) cannot be written, it is mounted read-only; "
        "mount it for writing or choose another folder\n"
    )


def test_a_run_that_was_made_before_the_disk_was_read_only(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(disk / "run")
    assert cli.main([*WORDS, out]) == 0
    remount(disk)
    capsys.readouterr()
    assert cli.main([*WORDS, out]) == 2
    line = capsys.readouterr().err
    assert "it is mounted read-only" in line
    assert line.count("\n") == 1


def test_models_that_are_still_to_meet_their_target(
    disk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(disk / "run")
    recipe = ["go/5", "--recipe", "mlperf_minigo_small"]
    assert cli.main(["train", *recipe, *WORDS[2:], out]) == 0
    remount(disk)
    capsys.readouterr()
    assert cli.main(["eval", out]) == 2
    assert capsys.readouterr().err == (
        f"tengen: path ({out}) cannot be written, it is mounted read-only; "
        "mount it for writing or choose another folder\n"
    )


def test_a_folder_that_is_not_the_user_s(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*, dir: Path) -> NoReturn:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(tempfile, "TemporaryFile", refuse)
    assert cli.main([*WORDS, str(tmp_path / "run")]) == 2
    assert "access is denied; change its permissions" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_what_other_commands_make_is_refused_as_usage_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def refuse(*words: Any, **more: Any) -> NoReturn:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "mkdir", refuse)
    assert cli.main(["store", str(tmp_path / "store")]) == 2
    assert "it is mounted read-only" in capsys.readouterr().err


def test_a_folder_that_may_be_written_has_nothing_left_in_it(tmp_path: Path) -> None:
    check_writable(tmp_path / "a" / "b")
    check_writable(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_named_in_utf_8(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / os.fsdecode(b"p\xff")
    assert cli.main([*WORDS, str(out)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "p\\udcff) must be UTF-8" in line
    assert not out.exists()
