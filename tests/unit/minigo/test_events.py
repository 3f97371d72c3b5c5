"""The events of a benchmark run and its files; needs no MLPerf package."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tengen.errors import RunError, UsageError
from tengen.minigo.benchmark import read_benchmark
from tengen.minigo.log import make_events
from tengen.run import RunDirectory
from tests.refusals import refused

CLOCK_AT, EVALUATION_AT = 2_000.0, 4_010.0
CONFIG: dict[str, Any] = {
    "task": "go/19/nosuicide/planes=minigo",
    "learner": {
        "batch_size": 4096,
        "optimizer": {
            "kind": "sgd",
            "rates": [0.016, 0.16, 0.016, 0.0016],
            "boundaries": [128, 10_000, 20_000],
            "weight_decay": 1e-4,
        },
    },
    "store": {"kind": "generations", "min_games": 8192},
    "agent": {"iterations": 4, "target": {"opponent": "target", "num_games": 256}},
    "seed": 7,
}
CODE = "tengen: 0.1.0\nmachine: a machine of two cores\n\nmachine: another\n"


def made_at(model):
    return CLOCK_AT + 500.0 * model


def evaluated(model, win_rate, place=None):
    began_at = EVALUATION_AT + 60.0 * (model if place is None else place)
    return {
        "schema": 1,
        "model": model,
        "generation": model,
        "target": "target",
        "target_digest": "0" * 64,
        "num_games": 256,
        "disputed": 0,
        "wins": round(256 * win_rate),
        "draws": 0,
        "losses": 256 - round(256 * win_rate),
        "win_rate": win_rate,
        "num_simulations": 100,
        "seed": 0,
        "made_at": made_at(model),
        "began_at": began_at,
        "ended_at": began_at + 59.0,
    }


def trained(model, num_games=8211):
    return {
        "generation": model - 1,
        "model": model,
        "num_games": num_games,
        "num_rows": 2_000_000,
        "num_sampled": 600_000,
        "num_steps": 146,
        "began_at": made_at(model) - 50.0,
        "ended_at": made_at(model) - 1.0,
    }


def result(passed, **fields):
    return {
        "schema": 1,
        "target": "target",
        "win_rate": 0.5,
        "num_games": 256,
        "clock_at": CLOCK_AT,
        "iterations": 4,
        "passed": passed,
        "passed_after_s": None if passed is None else made_at(passed) - CLOCK_AT,
        "smoothed_after_s": None,
        "confirmation": None,
        "is_closed": True,
        "open_because": [],
        **fields,
    }


def clock(**fields):
    return {
        "schema": 1,
        "init_at": 1_000.0,
        "init_ended_at": 1_100.0,
        "clock_at": CLOCK_AT,
        "restarts_at": [],
        **fields,
    }


def put(run, name, content):
    (run.eval / "target" / name).write_text(json.dumps(content))


def put_generations(run, *lines):
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.eval / "target" / "generations.jsonl").write_text(text)


def put_evaluated(run, *win_rates):
    for model, win_rate in enumerate(win_rates, 1):
        put(run, f"{model:06d}.json", evaluated(model, win_rate))


def make_run(path):
    """Returns a finished run of four models; model 3 is the first that passes."""
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": CONFIG})
    (run.path / "code.txt").write_text(CODE)
    (run.eval / "target").mkdir()
    put(run, "clock.json", clock())
    put_generations(run, *(trained(model) for model in (1, 2, 3, 4)))
    put_evaluated(run, 0.0, 0.49609375, 0.5)
    put(run, "result.json", result(3))
    return run


def told(run):
    return make_events(read_benchmark(run))


def named(events, key):
    return [event for event in events if event.key == key]


def values(events, key):
    return [event.value for event in named(events, key)]


def test_a_run_is_told_whole_and_in_order_of_time(tmp_path):
    events = told(make_run(tmp_path))
    assert [(event.time_ms, event.key) for event in events if event.time_ms >= 2e6] == [
        (2_000_000, "run_start"),
        *[
            row
            for model, made_ms in ((1, 2_500_000), (2, 3_000_000), (3, 3_500_000))
            for row in (
                (made_ms - 50_000, "epoch_start"),
                (made_ms - 50_000, "actual_selfplay_games_per_generation"),
                (made_ms - 1_000, "epoch_stop"),
                (made_ms, "save_model"),
                *([(made_ms, "run_stop")] if model == 3 else []),
            )
        ],
        (3_950_000, "epoch_start"),
        (3_950_000, "actual_selfplay_games_per_generation"),
        (3_999_000, "epoch_stop"),
        *[
            row
            for began_ms in (4_070_000, 4_130_000, 4_190_000)
            for row in (
                (began_ms, "eval_start"),
                (began_ms + 59_000, "eval_accuracy"),
                (began_ms + 59_000, "eval_stop"),
            )
        ],
        (4_249_000, "eval_result"),
    ]
    assert values(events, "eval_accuracy") == [0.0, 0.49609375, 0.5]
    (stop,) = named(events, "run_stop")
    assert stop.metadata == {"status": "success", "epoch_num": 3}
    (found,) = named(events, "eval_result")
    assert found.metadata == {"epoch_num": 3, "timestamp": 1500.0}
    epochs = [event.metadata["epoch_num"] for event in named(events, "epoch_start")]
    assert epochs == [1, 2, 3, 4]


def aborted(run):
    put_evaluated(run, 0.1, 0.2, 0.3, 0.499)
    put(run, "result.json", result(None))


def unfinished(run):
    (run.eval / "target" / "result.json").unlink()


def resumed(run):
    put(run, "clock.json", clock(restarts_at=[2_700.25, 3_600.0]))


def learned_twice(run):
    again = {**trained(2, num_games=8300), "began_at": 2_960.0}
    put_generations(run, trained(1), trained(2), again, trained(3), trained(4))


def in_another_order(run):
    """Models 3 and 4 pass: the one created first counts, in any order of matches."""
    put(run, "000003.json", evaluated(3, 0.6, place=5))
    put(run, "000004.json", evaluated(4, 0.7, place=4))


@pytest.mark.parametrize(
    ("make", "key", "found"),
    [
        (lambda run: None, "submission_platform", [(1000.0, "a machine of two cores")]),
        (lambda run: None, "submission_division", [(1000.0, "closed")]),
        (unfinished, "submission_division", [(1000.0, "open")]),
        (unfinished, "run_stop", []),
        (aborted, "run_stop", [(4000.0, {"status": "aborted"})]),
        (resumed, "restart", [(2700.25, None), (3600.0, None)]),
        (
            learned_twice,
            "actual_selfplay_games_per_generation",
            [(2450.0, 8211), (2960.0, 8300), (3450.0, 8211), (3950.0, 8211)],
        ),
        (in_another_order, "run_stop", [(3500.0, {"status": "success"})]),
    ],
)
def test_an_event_is_told_with_its_time(tmp_path, make, key, found):
    run = make_run(tmp_path)
    make(run)
    rows = []
    for event in named(told(run), key):
        metadata = {k: v for k, v in event.metadata.items() if k == "status"}
        rows.append((event.time_ms / 1000, metadata or event.value))
    assert rows == found


def test_a_run_that_has_only_begun_ends_with_its_settings(tmp_path):
    run = make_run(tmp_path)
    unfinished(run)
    (run.eval / "target" / "generations.jsonl").unlink()
    for model in (1, 2, 3):
        (run.eval / "target" / f"{model:06d}.json").unlink()
    put(run, "clock.json", clock(init_ended_at=None, clock_at=None))
    assert told(run)[-1].key == "eval_games"


def change(name, key, value, *, removes=False):
    def do(run):
        content = json.loads((run.eval / "target" / name).read_text()) | {key: value}
        if removes:
            del content[key]
        put(run, name, content)

    return do


def without(name, key):
    return change(name, key, None, removes=True)


def text(name, content):
    return lambda run: (run.eval / "target" / name).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (text("clock.json", b"{"), "clock.json"),
        (without("clock.json", "init_at"), "clock.json|init_at (nothing)"),
        (change("clock.json", "clock_at", 1_050.0), "clock_at (1050.0)"),
        (change("clock.json", "init_ended_at", None), "init_ended_at (None)"),
        (change("clock.json", "clock_at", None), "clock_at 2000.0|clock.json"),
        (change("clock.json", "restarts_at", [10.0]), "restarts_at (10.0)"),
        (change("result.json", "clock_at", 1_999.0), "clock.json 2000.0"),
        (change("result.json", "passed", 2), "model 2|name 3"),
        (change("result.json", "win_rate", 0.4), "model 3|name 2"),
        (change("result.json", "passed_after_s", 1499.0), "1499.0|1500.000 s"),
        (change("result.json", "passed_after_s", None), "passed_after_s (None)"),
        (change("result.json", "is_closed", False), "open_because ([])"),
        (change("result.json", "open_because", ["x"]), "open_because ("),
        (change("000002.json", "model", 3), "000002.json|model (3)"),
        (change("000002.json", "win_rate", 1.5), "000002.json|win_rate (1.5)"),
        (change("000002.json", "ended_at", 1e300), "ended_at (1e+300)"),
        (change("000002.json", "made_at", "x"), 'made_at ("x")'),
        (text("000002.json", b"[]"), "000002.json"),
        (text("generations.jsonl", b'{"model": 1}\n'), "generation (nothing)"),
        (text("generations.jsonl", b"[1]\n"), "generations.jsonl|line 1"),
        (text("generations.jsonl", b"[" * 99_999), "generations.jsonl|line 1"),
    ],
)
def test_damaged_files_are_named(tmp_path, damage, words):
    run = make_run(tmp_path)
    damage(run)
    with refused(RunError, *words.split("|")) as error:
        told(run)
    assert "\n" not in str(error.value)


def test_a_file_of_later_code_is_refused(tmp_path):
    run = make_run(tmp_path)
    change("result.json", "schema", 2)(run)
    with refused(UsageError, str(run.eval / "target" / "result.json")):
        told(run)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("learner.batch_size", None, "has no learner.batch_size"),
        ("learner.optimizer.boundaries", None, "has no learner.optimizer.boundaries"),
        ("store.min_games", None, "has no store.min_games"),
        ("agent.target", None, "has no agent.target"),
        ("agent.target.num_games", None, "has no agent.target.num_games"),
        ("learner.optimizer.rates", [], "must have one entry more"),
    ],
)
def test_a_config_of_another_run_is_refused(tmp_path, key, value, words):
    run = make_run(tmp_path)
    config = json.loads(json.dumps(CONFIG))
    *parents, last = key.split(".")
    place = config
    for word in parents:
        place = place[word]
    del place[last]
    if value is not None:
        place[last] = value
    run.write_run({"config": config})
    with pytest.raises(UsageError) as error:
        told(run)
    assert words in str(error.value)
    assert str(error.value).endswith("--recipe mlperf_minigo")


def test_a_run_without_a_clock_is_refused(tmp_path):
    run = make_run(tmp_path)
    (run.eval / "target" / "clock.json").unlink()
    with refused(UsageError, f"run ({run.path})"):
        told(run)
