"""The script of a machine with a GPU survives what fails on it."""

import argparse
import json
import sys
import time
from types import SimpleNamespace

import pytest

from tests.refusals import refused


@pytest.fixture
def script(load_script):
    return load_script("gpu/gpu")


def made(script, folder, seconds=100.0):
    return script.Bench(argparse.Namespace(seconds=seconds, devices="cpu"), folder)


def test_a_stage_that_fails_is_reported_and_the_next_goes_on(script, tmp_path, capsys):
    bench = made(script, tmp_path)

    def fails():
        bench.run([sys.executable, "-c", "import sys; sys.exit('no driver')"], 30)
        return {}

    assert not bench.stage("first", 0, fails)
    assert bench.stage("second", 0, lambda: {"rate": 3})
    assert not bench.stage("third", 1e9, lambda: {})
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["ok"] for line in lines] == [False, True, False]
    assert "no driver" in lines[0]["error"]
    assert lines[1]["report"] == {"rate": 3}
    assert lines[2]["error"].startswith("left out")


def test_a_command_that_hangs_is_killed_with_its_children(script, tmp_path):
    code = (
        "import subprocess, sys;"
        "subprocess.run([sys.executable, '-c', 'import time; time.sleep(600)'])"
    )
    start_s = time.monotonic()
    with refused(script.StageError, "too long"):
        made(script, tmp_path).run([sys.executable, "-c", code], 0.5)
    # Its child holds the pipe: the wait ends only because it is gone too.
    assert time.monotonic() - start_s < 300


def test_a_difference_that_is_found_is_a_failure(script, tmp_path):
    bench = made(script, tmp_path)
    bench.args.cases = script.CASES
    bench.run_json = lambda command, limit_s: {"errors": {}, "command": command}
    assert bench.check()["command"][-1] == f"{script.MINIGO} gomoku/15:6x96"
    bench.run_json = lambda command, limit_s: {"errors": {"lanes": "differ"}}
    with refused(script.StageError, "differ"):
        bench.check()


@pytest.mark.parametrize(
    ("broken", "num_stages"),
    [(None, 11), ("environment", 1), ("build", 2), ("train", 11)],
)
def test_the_exit_code_is_0_where_all_is_well(script, capsys, broken, num_stages):
    # As where Atari is installed.
    found = SimpleNamespace(find_spec=lambda name: name)
    script.importlib = SimpleNamespace(util=found)
    stages_of = ("environment", "build", "check", "share", "train")
    for name in (*stages_of, "learner", "environments"):

        def stage(*words, name=name):
            if name == broken:
                raise script.StageError("no driver")
            return {"share_of_backend": 0.95}

        setattr(script.Bench, name, stage)
    assert script.main([]) == (0 if broken is None else 1)
    *stages, summary = map(json.loads, capsys.readouterr().out.splitlines())
    assert all(line["ok"] is (line["stage"] != broken) for line in stages)
    assert len(stages) == num_stages
    assert summary["ok"] is (broken is None)
    assert len(summary["report"]["shares"]) == (5 if num_stages == 11 else 0)


def test_the_summary_says_what_was_reached(script):
    def share(net, found):
        report = {"share_of_backend": found}
        return {"stage": f"share {net}", "ok": True, "report": report}

    failed = {"stage": "share c", "ok": False, "error": "no memory"}
    check = {"stage": "check", "ok": True, "report": {"errors": {}}}
    found = script.summed_up([check, share("a", 0.95), share("b", 0.9)])
    assert found["ok"]
    assert found["report"]["shares"] == {"a": 0.95, "b": 0.9}
    assert found["report"]["reached"]
    assert not script.summed_up([share("a", 0.95), share("b", 0.8)])["report"][
        "reached"
    ]
    some = script.summed_up([share("a", 0.95), failed])
    assert (some["ok"], some["report"]["reached"]) == (False, True)
    none = script.summed_up([failed])
    assert (none["ok"], none["report"]["reached"]) == (False, False)


def test_progress_counts_what_is_on_the_disk(script, tmp_path):
    assert script.progress(tmp_path) == {"generations": 0, "models": 0, "steps": 0}
    segments = tmp_path / "experience" / "selfplay-0" / "1"
    segments.mkdir(parents=True)
    for number in (1, 2, 3):
        (segments / f"{number:06d}.npz").touch()
    for number, steps in ((1, 5), (2, 9)):
        model = tmp_path / "models" / f"{number:06d}"
        model.mkdir(parents=True)
        (model / "meta.json").touch()
        folder = tmp_path / "checkpoints" / f"{number:06d}"
        folder.mkdir(parents=True)
        (folder / "state.json").write_text(json.dumps({"num_steps": steps}))
    assert script.progress(tmp_path) == {"generations": 3, "models": 2, "steps": 9}
