"""The events of a benchmark run, and what its files may say. No package of MLPerf's."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tengen.errors import RunError, UsageError
from tengen.observe.mlperf import read_benchmark
from tengen.observe.mlperf.log import Event, make_events
from tengen.run import RunDirectory
from tests.unit.observe.mlperf.run_files import (
    CONFIG,
    clock,
    evaluated,
    make_run,
    put,
    put_evaluated,
    put_generations,
    result,
    trained,
)


def told(run: RunDirectory) -> list[Event]:
    return make_events(read_benchmark(run))


def named(events: list[Event], key: str) -> list[Event]:
    return [event for event in events if event.key == key]


def values(events: list[Event], key: str) -> list[Any]:
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


def test_what_the_rules_want_once_is_there_once(tmp_path):
    events = told(make_run(tmp_path))
    once = {
        "submission_benchmark": "minigo",
        "submission_division": "closed",
        "submission_org": "tengen",
        "submission_status": "research",
        "submission_platform": "a machine of two cores",
        "cache_clear": False,
        "init_start": None,
        "train_batch_size": 4096,
        "lr_rates": [0.016, 0.16, 0.016, 0.0016],
        "lr_boundaries": [128, 10_000, 20_000],
        "opt_name": "sgd",
        "opt_weight_decay": 1e-4,
        "gradient_accumulation_steps": 1,
        "seed": 7,
        "min_selfplay_games_per_generation": 8192,
        "train_samples": 8192,
        "eval_samples": 256,
        "eval_games": 256,
        "init_stop": None,
    }
    head = events[: len(once)]
    assert {event.key: event.value for event in head} == once
    counts = Counter(event.key for event in events)
    assert all(counts[key] == 1 for key in (*once, "run_start", "run_stop"))
    # Settings are told while the run is initialised, and who submits before.
    assert [event.key for event in head].index("init_start") == 6
    assert head[-1].key == "init_stop"


def test_a_run_that_no_model_passed_in_was_aborted(tmp_path):
    run = make_run(tmp_path)
    put_evaluated(run, 0.1, 0.2, 0.3, 0.499)
    put(run, "result.json", result(None))
    (stop,) = named(told(run), "run_stop")
    assert (stop.time_ms, stop.metadata) == (4_000_000, {"status": "aborted"})


def test_a_run_that_goes_on_has_no_stop(tmp_path):
    run = make_run(tmp_path)
    (run.eval / "target" / "result.json").unlink()
    events = told(run)
    assert not named(events, "run_stop")
    (division,) = named(events, "submission_division")
    assert (division.value, division.metadata) == (
        "open",
        {"open_because": ["the run is not over"]},
    )
    (run.eval / "target" / "generations.jsonl").unlink()
    for model in (1, 2, 3):
        (run.eval / "target" / f"{model:06d}.json").unlink()
    put(run, "clock.json", clock(init_ended_at=None, clock_at=None))
    assert told(run)[-1].key == "eval_games"


def test_later_calls_are_told(tmp_path):
    run = make_run(tmp_path)
    put(run, "clock.json", clock(restarts_at=[2_700.25, 3_600.0]))
    assert [event.time_ms for event in named(told(run), "restart")] == [
        2_700_250,
        3_600_000,
    ]


def test_a_generation_that_was_learned_from_twice_is_told_once(tmp_path):
    run = make_run(tmp_path)
    again = {**trained(2, num_games=8300), "began_at": 2_960.0}
    put_generations(run, trained(1), trained(2), again, trained(3), trained(4))
    games = named(told(run), "actual_selfplay_games_per_generation")
    assert [event.value for event in games] == [8211, 8300, 8211, 8211]
    assert games[1].metadata == {"epoch_num": 2, "generation": 1}


def test_models_in_any_order_of_time_are_taken_by_number(tmp_path):
    """Two that pass: the one that was made first counts, whoever was played first."""
    run = make_run(tmp_path)
    put(run, "000003.json", evaluated(3, 0.6, place=5))
    put(run, "000004.json", evaluated(4, 0.7, place=4))
    put(run, "result.json", result(3))
    (stop,) = named(told(run), "run_stop")
    assert stop.time_ms == 3_500_000


def change(name: str, key: str, value: Any) -> Any:
    def do(run: RunDirectory) -> None:
        content = json.loads((run.eval / "target" / name).read_text())
        put(run, name, {**content, key: value})

    return do


def without(name: str, key: str) -> Any:
    def do(run: RunDirectory) -> None:
        content = json.loads((run.eval / "target" / name).read_text())
        del content[key]
        put(run, name, content)

    return do


def text(name: str, content: bytes) -> Any:
    return lambda run: (run.eval / "target" / name).write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (text("clock.json", b"{"), "clock.json .* is damaged, it is not JSON"),
        (without("clock.json", "init_at"), "clock.json .* damaged, init_at .nothing"),
        (change("clock.json", "clock_at", 1_050.0), "damaged, clock_at .1050.0. must"),
        (change("clock.json", "init_ended_at", None), "init_ended_at .None. must come"),
        (change("clock.json", "clock_at", None), "has clock_at 2000.0, and clock.json"),
        (change("clock.json", "restarts_at", [10.0]), "restarts_at .10.0. must be"),
        (change("result.json", "clock_at", 1_999.0), "and clock.json 2000.0"),
        (change("result.json", "passed", 2), "model 2 as the first .* model 3"),
        (change("result.json", "win_rate", 0.4), "as the first that passed.* model 2"),
        (change("result.json", "passed_after_s", 1499.0), "1500.000 s after the clock"),
        (change("result.json", "passed_after_s", None), "passed_after_s .None. must"),
        (change("result.json", "is_closed", False), "open_because .... must be empty"),
        (change("result.json", "open_because", ["x"]), "open_because .* must be empty"),
        (change("000002.json", "model", 3), "model .3. is not that of its name"),
        (change("000002.json", "win_rate", 1.5), "win_rate .1.5. must be 0 to"),
        (change("000002.json", "ended_at", 1e300), "ended_at .1e.300. must be"),
        (change("000002.json", "made_at", "x"), 'made_at ."x". must be a num'),
        (text("000002.json", b"[]"), "damaged, it has no schema number"),
        (text("generations.jsonl", b'{"model": 1}\n'), "generation .nothing. is requ"),
        (text("generations.jsonl", b"[1]\n"), "damaged, line 1 is no JSON object"),
        (text("generations.jsonl", b"[" * 99_999), "damaged, line 1 is no JSON obj"),
    ],
)
def test_damaged_files_are_named(tmp_path, damage, words):
    run = make_run(tmp_path)
    damage(run)
    with pytest.raises(RunError, match=words) as error:
        told(run)
    assert "restore" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_file_of_later_code_is_refused(tmp_path):
    run = make_run(tmp_path)
    change("result.json", "schema", 2)(run)
    with pytest.raises(UsageError, match="newer than this tengen reads"):
        told(run)


@pytest.mark.parametrize(
    "key",
    [
        "learner.batch_size",
        "learner.optimizer.rates",
        "learner.optimizer.boundaries",
        "store.min_games",
        "agent.target",
        "agent.target.num_games",
    ],
)
def test_a_config_of_another_run_is_refused(tmp_path, key):
    run = make_run(tmp_path)
    config = json.loads(json.dumps(CONFIG))
    *parents, last = key.split(".")
    place = config
    for word in parents:
        place = place[word]
    del place[last]
    run.write_run({"config": config})
    with pytest.raises(UsageError, match=f"has no {key}.*--recipe mlperf_minigo"):
        told(run)


def test_rates_and_boundaries_belong_together(tmp_path):
    run = make_run(tmp_path)
    config = json.loads(json.dumps(CONFIG))
    config["learner"]["optimizer"]["rates"] = []
    run.write_run({"config": config})
    with pytest.raises(UsageError, match="must have one entry more"):
        told(run)


def test_a_run_without_a_clock_is_refused(tmp_path):
    run = make_run(tmp_path)
    (run.eval / "target" / "clock.json").unlink()
    with pytest.raises(UsageError, match=r"has no eval/target/clock\.json"):
        told(run)
