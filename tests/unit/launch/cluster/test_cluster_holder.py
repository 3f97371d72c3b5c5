"""The actor that holds a process of a run, without Ray."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen import __version__
from tengen.launch.cluster.travelling import (
    FOLDER,
    holder_class,
    probe_function,
    search_path,
)

SHOW = (
    "import json, os, sys; "
    "print(json.dumps([sys.argv[1:], os.environ.get('TENGEN_RUN_TOKEN')]), flush=True);"
    "sys.exit(len(sys.stdin.readline()))"
)


def fake_ray() -> Any:
    """What of Ray makes a class an actor: here it stays one."""

    def method(concurrency_group: str) -> Any:
        assert concurrency_group in ("write", "read", "end")
        return lambda function: function

    def remote(concurrency_groups: dict[str, int]) -> Any:
        assert concurrency_groups == {"write": 1, "read": 1, "end": 1}
        return lambda made: made

    return SimpleNamespace(method=method, remote=remote)


@pytest.fixture
def marker(tmp_path: Path) -> Path:
    path = tmp_path / "id-7"
    path.write_text("0123")
    return path


def held(marker: Path, text: str, far: bool) -> Any:
    return holder_class(fake_ray())(
        search_path(),
        str(marker.parent),
        str(marker),
        text,
        ["-c", SHOW, "near"],
        ["-c", SHOW, "far", FOLDER] if far else [],
        {FOLDER: "tengen-some-folder", "TENGEN_RUN_TOKEN": "secret"} if far else {},
    )


@pytest.mark.parametrize(
    ("text", "far", "expected"),
    [
        ("0123", True, [["near"], None]),
        # Another run lies under the same path, or a copy of this one.
        (
            "4567",
            True,
            [["far", f"{tempfile.gettempdir()}/tengen-some-folder"], "secret"],
        ),
    ],
)
def test_a_process_works_where_the_run_is_or_on_a_mirror(
    marker, text, far, expected, monkeypatch
):
    monkeypatch.delenv("TENGEN_RUN_TOKEN", raising=False)
    holder = held(marker, text, far)
    assert json.loads(holder.read(b"")) == expected
    holder.write(b"1234567\n")
    assert holder.end(30.0) == 8
    holder.write(b"too late\n")  # its end is read
    assert holder.read(b"") == b""


def test_a_host_that_came_later_without_the_run_is_no_place(marker):
    with pytest.raises(RuntimeError, match="has not the run"):
        held(marker, "4567", far=False)


def test_one_that_does_not_leave_is_killed(marker):
    holder = held(marker, "0123", False)
    holder.read(b"")
    assert holder.end(0.1) == -9


def test_a_host_says_what_it_has(marker, tmp_path, monkeypatch):
    probe = probe_function()
    found = probe(search_path(), str(marker), "0123")
    assert (found["tengen"], found["error"]) == (__version__, "")
    assert found["has_run"] == "yes"
    assert found["host"] == os.uname().nodename
    assert probe(search_path(), str(marker), "4567")["has_run"] == ""
    broken = tmp_path / "paths" / "tengen"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text("raise ImportError('half installed')\n")
    found = probe([str(broken.parent)], "", "")
    assert (found["tengen"], found["has_run"]) == ("", "")
    assert "half installed" in found["error"]
