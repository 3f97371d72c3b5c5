"""The files of a benchmark run, written by hand for the tests of its log.

The clock begins at 2,000 s. Models 1 to 4 are made at 2,500, 3,000, 3,500 and 4,000 s,
and their matches begin when the last one is made, 60 s each.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tengen.run import RunDirectory

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


def made_at(model: int) -> float:
    return CLOCK_AT + 500.0 * model


def evaluated(model: int, win_rate: float, place: int | None = None) -> dict[str, Any]:
    began_at = EVALUATION_AT + 60.0 * (model if place is None else place)
    return {
        "schema": 1,
        "model": model,
        "generation": model,
        "target": "target",
        "target_digest": "0" * 64,
        "num_games": 256,
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


def trained(model: int, num_games: int = 8211) -> dict[str, Any]:
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


def result(passed: int | None, **fields: Any) -> dict[str, Any]:
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


def clock(**fields: Any) -> dict[str, Any]:
    return {
        "schema": 1,
        "init_at": 1_000.0,
        "init_ended_at": 1_100.0,
        "clock_at": CLOCK_AT,
        "restarts_at": [],
        **fields,
    }


def put(run: RunDirectory, name: str, content: dict[str, Any]) -> None:
    (run.eval / "target" / name).write_text(json.dumps(content))


def put_generations(run: RunDirectory, *lines: dict[str, Any]) -> None:
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (run.eval / "target" / "generations.jsonl").write_text(text)


def put_evaluated(run: RunDirectory, *win_rates: float) -> None:
    for model, win_rate in enumerate(win_rates, 1):
        put(run, f"{model:06d}.json", evaluated(model, win_rate))


def make_run(path: Path) -> RunDirectory:
    """A closed run of four models, of which the third is the first that passes."""
    run = RunDirectory.create_or_resume(path)
    run.write_run({"config": CONFIG})
    (run.path / "code.txt").write_text(CODE)
    (run.eval / "target").mkdir()
    put(run, "clock.json", clock())
    put_generations(run, *(trained(model) for model in (1, 2, 3, 4)))
    put_evaluated(run, 0.0, 0.49609375, 0.5)
    put(run, "result.json", result(3))
    return run
