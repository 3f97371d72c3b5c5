"""The actor that holds a process of a run, without Ray, and where the process works."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tengen import __version__
from tengen.launch import child
from tengen.launch.cluster.travelling import holder_class, probe_function, search_path
from tests.refusals import refused

SHOW = """
import json, os, sys, time
with open("told", "w") as file:
    json.dump([sys.argv[1:], os.environ["SECRET"], os.environ["TENGEN_PLACE"]], file)
time.sleep(float(sys.argv[1]))
sys.exit(8)
"""


def fake_ray() -> Any:
    """What of Ray makes a class an actor: here it stays one."""

    def method(concurrency_group: str) -> Any:
        assert concurrency_group in ("tell", "wait")
        return lambda function: function

    def remote(concurrency_groups: dict[str, int]) -> Any:
        assert concurrency_groups == {"tell": 1, "wait": 1}
        return lambda made: made

    here = SimpleNamespace(get_node_id=lambda: "0123456789abcdef")
    return SimpleNamespace(
        method=method, remote=remote, get_runtime_context=lambda: here
    )


def held(folder: Path, seconds: float) -> Any:
    return holder_class(fake_ray())(
        search_path(), str(folder), ["-c", SHOW, str(seconds)], {"SECRET": "a"}
    )


def test_a_process_is_started_with_what_it_needs(tmp_path: Path) -> None:
    holder = held(tmp_path, 0)
    holder.begun()
    assert holder.wait() == 8
    told = json.loads((tmp_path / "told").read_text())
    assert told == [["0"], "a", "node 01234567"]


def test_a_process_is_killed(tmp_path: Path) -> None:
    holder = held(tmp_path, 600)
    holder.kill()
    assert holder.wait() == -9


@pytest.mark.parametrize(
    ("content", "words", "expected"),
    [
        ("0123", [], ("run", None)),
        ("0123", ["--connect=a:1"], ("run", None)),
        # Another run lies under the same path, or a copy of this one.
        ("4567", ["--connect=a:1"], ("tengen-", "a:1")),
        (None, ["--connect=a:1"], ("tengen-", "a:1")),
        (None, [], None),
    ],
)
def test_a_process_works_where_the_run_is_or_on_a_mirror(
    tmp_path: Path,
    content: str | None,
    words: list[str],
    expected: tuple[str, str | None] | None,
) -> None:
    if content is not None:
        (tmp_path / "run" / "endpoints").mkdir(parents=True)
        (tmp_path / "run" / "endpoints" / "id-7").write_text(content)
    run = str(tmp_path / "run")
    args = child.arguments(["--identity=0123", *words, "--", run, "1", "selfplay"])
    if expected is None:
        with refused(child._NoRun, "does not have the run"):
            child._where(args)
        return
    path, connect = child._where(args)
    assert path.name.startswith(expected[0])
    assert (path.parent == Path(tempfile.gettempdir())) == (expected[0] == "tengen-")
    assert (None if connect is None else connect.address) == expected[1]


def test_a_host_says_what_it_has(tmp_path, monkeypatch):
    marker = tmp_path / "id-7"
    marker.write_text("0123")
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
