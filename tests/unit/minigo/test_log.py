"""The log of a benchmark run, checked with MLPerf's own compliance checker."""

import json
import sys

import pytest

from tengen.cli import main
from tengen.distribution import pip_install_extra
from tengen.minigo.log import write_mllog
from tests.unit.minigo.test_events import (
    CONFIG,
    aborted,
    clock,
    evaluated,
    make_run,
    put,
    put_generations,
    result,
    trained,
    unfinished,
)

TOKEN = ":::MLLOG "


@pytest.fixture
def run(tmp_path):
    pytest.importorskip("mlperf_logging", reason="the extra mlperf is not installed")
    return make_run(tmp_path / "run")


def complaints(log):
    """Returns the checker's complaints about a log, warnings included."""
    compliance = pytest.importorskip("mlperf_logging.compliance_checker.mlp_compliance")
    checker = compliance.make_checker("training", "2.1.0", quiet=False, werror=True)
    is_valid, *_ = compliance.main(str(log), "training_2.1.0/common.yaml", checker)
    told = [*checker.overwritable.values(), *checker.not_overwritable]
    assert is_valid == (not told)
    return told


def read(log):
    lines = log.read_text().splitlines()
    assert all(line.startswith(TOKEN) for line in lines)
    return [json.loads(line.removeprefix(TOKEN)) for line in lines]


def with_config(run, part, key, value):
    config = json.loads(json.dumps(CONFIG))
    config[part][key] = value
    run.write_run({"config": config})


def test_a_closed_run_complies(run):
    log = write_mllog(run)
    assert log == run.eval / "result_0.txt"
    assert complaints(log) == []
    division = [line for line in read(log) if line["key"] == "submission_division"]
    assert [line["value"] for line in division] == ["closed"]


def test_a_small_run_is_open_and_complies(run):
    with_config(run, "store", "min_games", 256)
    put_generations(run, *(trained(model, 260) for model in (1, 2, 3, 4)))
    because = ["store.min_games is 256 and not 8192"]
    put(run, "result.json", result(3, is_closed=False, open_because=because))
    log = write_mllog(run)
    assert complaints(log) == []
    (division,) = (line for line in read(log) if line["key"] == "submission_division")
    assert division["value"] == "open"
    assert division["metadata"]["open_because"] == because


def test_the_result_can_be_made_again_of_the_log(run):
    put(run, "000003.json", {**evaluated(3, 0.5), "made_at": 3_512.3456})
    put(run, "result.json", result(3, passed_after_s=1_512.3456))
    lines = read(write_mllog(run))
    (start,) = (line["time_ms"] for line in lines if line["key"] == "run_start")
    (stop,) = (line["time_ms"] for line in lines if line["key"] == "run_stop")
    made = {
        line["metadata"]["epoch_num"]: line["time_ms"]
        for line in lines
        if line["key"] == "save_model"
    }
    passed = [
        line["metadata"]["epoch_num"]
        for line in lines
        if line["key"] == "eval_accuracy" and line["value"] >= 0.5
    ]
    told = json.loads((run.eval / "target" / "result.json").read_text())
    assert min(passed) == told["passed"]
    after_s = (made[min(passed)] - start) / 1000.0
    assert after_s == pytest.approx(told["passed_after_s"], abs=1e-3)
    # MLPerf's summarizer uses this difference as the result.
    assert (stop - start) / 1000.0 == after_s
    assert [line["time_ms"] for line in lines] == sorted(
        line["time_ms"] for line in lines
    )


def few_games(run):
    put_generations(run, trained(1), trained(2, num_games=8191), trained(3), trained(4))


def fewer_asked(run):
    with_config(run, "store", "min_games", 8000)


def long_init(run):
    put(run, "clock.json", clock(init_at=100.0, init_ended_at=1_900.0))


def no_training(run):
    (run.eval / "target" / "generations.jsonl").unlink()


def given_more(run):
    """The number of models is raised after four were evaluated and none passed."""
    aborted(run)
    with_config(run, "agent", "iterations", 8)


def not_begun(run):
    unfinished(run)
    put(run, "clock.json", clock(init_ended_at=None, clock_at=None))


def nothing_evaluated(run):
    for model in (1, 2, 3):
        (run.eval / "target" / f"{model:06d}.json").unlink()
    put(run, "result.json", result(None))


@pytest.mark.parametrize(
    ("damage", "reasons"),
    [
        (few_games, ['"value": 8191', "v['value'] >= 8192"]),
        (fewer_asked, ['"value": 8000', "v['value'] == 8192"]),
        (aborted, ["for eval_accuracy : v['value'] >= 0.5 and v['value'] < 1.0"]),
        (long_init, ["CHECK for 'init_stop' failed", "compile_time_mins"]),
        (no_training, ["of 'actual_selfplay", "'epoch_start'", "'epoch_stop'"]),
        (unfinished, ["occurrence of 'run_stop' but found 0"]),
        (not_begun, ["'init_stop' but", "'run_start' but", "'run_stop' but"]),
        (nothing_evaluated, ["'eval_accuracy' but", "'eval_start'", "'eval_stop'"]),
    ],
)
def test_the_checker_refuses_a_run_that_is_not_as_the_rules_want(run, damage, reasons):
    damage(run)
    told = complaints(write_mllog(run))
    assert told
    # Every expected reason is reported, and no other.
    assert [reason for reason in reasons if reason not in "\n".join(told)] == []
    assert [each for each in told if not any(word in each for word in reasons)] == []


def test_the_same_files_give_the_same_bytes(run, tmp_path):
    first = write_mllog(run).read_bytes()
    assert write_mllog(run).read_bytes() == first
    elsewhere = tmp_path / "log.txt"
    assert write_mllog(run, elsewhere) == elsewhere
    assert elsewhere.read_bytes() == first
    assert "\n".join(sorted(read(elsewhere)[0])) == "\n".join(
        ["event_type", "key", "metadata", "namespace", "time_ms", "value"]
    )
    files = {line["metadata"]["file"] for line in read(elsewhere)}
    assert files == {"tengen/minigo/log.py"}


def test_the_command_says_what_the_log_tells(run, capsys):
    assert main(["mllog", str(run.path)]) == 0
    log = run.eval / "result_0.txt"
    line = capsys.readouterr().out
    assert line == f"{log}: closed division, model 3 passed after 1,500.0 s\n"
    assert main(["mllog", str(run.path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "run": str(run.path),
        "log": str(log),
        "division": "closed",
        "open_because": [],
        "status": "success",
        "passed": 3,
        "passed_after_s": 1500.0,
    }


@pytest.mark.parametrize(
    ("damage", "status", "words"),
    [
        (aborted, "aborted", "closed division, no model passed"),
        (unfinished, "unfinished", "open division, not all models have been evaluated"),
        (given_more, "unfinished", "open division, not all models have been evaluated"),
    ],
)
def test_the_command_says_what_is_not_there(
    run, tmp_path, capsys, damage, status, words
):
    damage(run)
    path = tmp_path / "result_4.txt"
    assert main(["mllog", str(run.path), "--out", str(path)]) == 0
    assert capsys.readouterr().out == f"{path}: {words}\n"
    assert main(["mllog", str(run.path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["status"], told["passed"]) == (status, None)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["absent"], "absent"),
        (["run", "--out", "nowhere/a.txt"], "out ("),
        (["run", "--out", "."], "out ("),
    ],
)
def test_bad_usage_is_one_line(run, monkeypatch, capsys, words, told):
    monkeypatch.chdir(run.path.parent)
    assert main(["mllog", *words]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert told in error
    assert not (run.eval / "result_0.txt").exists()


def test_a_missing_package_is_one_line(tmp_path, monkeypatch, capsys):
    run = make_run(tmp_path)
    monkeypatch.setitem(sys.modules, "mlperf_logging", None)
    assert main(["mllog", str(run.path)]) == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert pip_install_extra("mlperf") in error
    assert not (run.eval / "result_0.txt").exists()
