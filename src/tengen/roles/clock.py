"""When what of a run happened, of runs whose result is a time.

``RUN/eval/target/calls.json`` says when each call of ``tengen train`` began,
``began.json`` when the learner did. Once training has ended ``clock.json`` and
``generations.jsonl`` are made of them and of the models, for the log of the run.
"""

from __future__ import annotations

import json
import time
from typing import Any

from tengen.errors import RunError
from tengen.evaluation.targets.records import TargetFiles
from tengen.models import ModelMeta
from tengen.models.load import read_meta
from tengen.run import RunDirectory, publish_file, publish_json, read_object

__all__ = ["begin_clock", "has_history", "note_call", "publish_history", "read_clock"]

_SCHEMA = 1
_CALLS, _BEGAN = "calls.json", "began.json"
_CLOCK, _GENERATIONS = "clock.json", "generations.jsonl"
_ADVICE = "restore it from a copy; without it the run has no result"


def note_call(run: RunDirectory) -> None:
    """Notes that a call of ``tengen train`` begins, which holds the run's lock.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged, or the disk refuses.
    """
    files = TargetFiles(run)
    files.make()
    calls = [*_calls(files), round(time.time(), 3)]
    publish_json(files.folder / _CALLS, {"schema": _SCHEMA, "calls_at": calls})


def begin_clock(run: RunDirectory) -> None:
    """Notes that learning begins, unless that was done before. Only the learner may.

    Raises:
        RunError: The disk refuses.
    """
    files = TargetFiles(run)
    path = files.folder / _BEGAN
    if path.exists():
        return
    files.make()
    began = {"schema": _SCHEMA, "clock_at": round(time.time(), 3)}
    publish_json(path, began)


def read_clock(run: RunDirectory) -> float | None:
    """Returns when learning began, UNIX seconds; None before it did.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged.
    """
    path = TargetFiles(run).folder / _BEGAN
    if not path.exists():
        return None
    return _number(read_object(path, "clock", schema=_SCHEMA, advice=_ADVICE), path)


def has_history(run: RunDirectory) -> bool:
    """Returns whether ``publish_history`` was done."""
    return (TargetFiles(run).folder / _GENERATIONS).exists()


def publish_history(run: RunDirectory) -> None:
    """Publishes ``clock.json`` and ``generations.jsonl``, once training has ended.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: One is damaged, or the disk refuses.
    """
    files = TargetFiles(run)
    metas = [
        (number, read_meta(run.models.entry(number), error=RunError))
        for number in run.models.numbers()
    ]
    calls = _calls(files)
    first_model_at = metas[0][1].made_at if metas else None
    clock_at = read_clock(run)
    # A run that learns from imported games publishes its first model by the clock.
    ends = [at for at in (first_model_at, clock_at) if at is not None]
    clock = {
        "schema": _SCHEMA,
        "init_at": calls[0] if calls else first_model_at,
        "init_ended_at": min(ends, default=None),
        "clock_at": clock_at,
        "restarts_at": calls[1:],
    }
    publish_json(files.folder / _CLOCK, clock)
    lines = [_generation(number, meta) for number, meta in metas[1:]]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    publish_file(files.folder / _GENERATIONS, text.encode())


def _generation(number: int, meta: ModelMeta) -> dict[str, Any]:
    """Returns what is known of the pass behind a model."""
    origin = meta.origin
    return {
        "generation": None if origin is None else origin.pass_generation,
        "model": number,
        "num_games": None if origin is None else origin.pass_games,
        "num_sampled": None if origin is None else origin.window_rows,
        "num_steps": meta.num_steps,
        "began_at": None if origin is None else origin.learned_from_at,
        "ended_at": None if origin is None else origin.learned_to_at,
    }


def _calls(files: TargetFiles) -> list[float]:
    path = files.folder / _CALLS
    if not path.exists():
        return []
    content = read_object(path, "calls", schema=_SCHEMA, advice=_ADVICE)
    try:
        return [float(at) for at in content["calls_at"]]
    except (LookupError, TypeError, ValueError):
        raise RunError(f"calls ({path}) are damaged; {_ADVICE}") from None


def _number(content: dict[str, Any], path: Any) -> float:
    try:
        return float(content["clock_at"])
    except (LookupError, TypeError, ValueError):
        raise RunError(f"clock ({path}) is damaged; {_ADVICE}") from None
