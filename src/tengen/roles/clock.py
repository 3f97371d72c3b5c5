"""The times of a run, for runs whose result is a time (MLPerf).

``RUN/eval/calls.json`` says when each call of ``tengen train`` began, whether it
trained or only wrote the config, for roles by themselves, and which of its settings
MLPerf's closed division forbids. ``RUN/eval/began.json`` says when the learner
began. Once training has ended, ``RUN/eval/target/clock.json`` and ``generations.jsonl``
are made from these files and the models, for the run's log.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Mapping
from typing import Any

from tengen.errors import RunError
from tengen.evaluation.targets.records import TargetFiles
from tengen.minigo.closed_division import open_because
from tengen.models import ModelMeta
from tengen.models.load import read_meta
from tengen.run import (
    RunDirectory,
    publish_file,
    publish_json,
    read_object,
    storage_error,
)

__all__ = [
    "begin_clock",
    "has_calls",
    "has_history",
    "note_call",
    "publish_history",
    "read_clock",
    "run_open_because",
]

_SCHEMA = 1
_CALLS, _BEGAN = "calls.json", "began.json"
_CLOCK, _GENERATIONS = "clock.json", "generations.jsonl"
_ADVICE = "restore it from a copy; without it the run has no result"


def has_calls(run: RunDirectory) -> bool:
    """Returns whether a call was recorded, also where the run is no benchmark now."""
    return (run.eval / _CALLS).exists()


def note_call(
    run: RunDirectory, config: Mapping[str, Any], *, trains: bool = True
) -> None:
    """Records that a call of ``tengen train`` begins; the call holds the run's lock.

    Args:
        run: The run.
        config: The run's config in this call, as JSON values.
        trains: Whether the call trains; if not, it only writes the config.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged, or the disk refuses.
    """
    call = {
        "at": round(time.time(), 3),
        "trains": trains,
        "open_because": open_because(config),
    }
    calls = [*_calls(run), call]
    _publish(run, _CALLS, {"calls": calls})


def begin_clock(run: RunDirectory) -> None:
    """Records when learning begins, unless recorded before. Only for the learner.

    Raises:
        RunError: The disk refuses.
    """
    if not (run.eval / _BEGAN).exists():
        _publish(run, _BEGAN, {"clock_at": round(time.time(), 3)})


def read_clock(run: RunDirectory) -> float | None:
    """Returns when learning began, in UNIX seconds; None if that was not recorded.

    Raises:
        UsageError: The file is of a newer schema.
        RunError: It is damaged.
    """
    path = run.eval / _BEGAN
    if not path.exists():
        return None
    content = read_object(path, "clock", schema=_SCHEMA, advice=_ADVICE)
    try:
        return float(content["clock_at"])
    except (LookupError, TypeError, ValueError):
        raise RunError(f"clock ({path}) is damaged; {_ADVICE}") from None


def run_open_because(run: RunDirectory) -> list[str]:
    """Returns the reasons, of any call, why the run is in MLPerf's open division.

    Reasons about ``agent.target`` are left out: the target is the same for all models,
    so the last call's config decides.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: It is damaged.
    """
    found = [
        reason
        for call in _calls(run)
        for reason in call["open_because"]
        if not reason.startswith("agent.target.")
    ]
    if read_clock(run) is None:
        found.append(
            "agent.iterations (0) was set only after training began, so the time was "
            "not recorded"
        )
    return list(dict.fromkeys(found))


def has_history(run: RunDirectory) -> bool:
    """Returns whether ``publish_history`` was done for all current models."""
    path = TargetFiles(run).folder / _CLOCK
    if not path.exists():
        return False
    kept = read_object(path, "clock", schema=_SCHEMA, advice="remove it")
    return bool(kept.get("last_model") == run.models.latest())


def publish_history(run: RunDirectory) -> None:
    """Publishes ``clock.json`` and ``generations.jsonl``, once training has ended.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: A file is damaged, or the disk refuses.
    """
    files = TargetFiles(run)
    metas = [
        (number, read_meta(run.models.entry(number), error=RunError))
        for number in run.models.numbers()
    ]
    lines = [
        _generation(number, meta, before)
        for (_, before), (number, meta) in itertools.pairwise(metas)
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    publish_file(files.folder / _GENERATIONS, text.encode())
    calls = [float(call["at"]) for call in _calls(run) if call["trains"]]
    first_model_at = metas[0][1].made_at if metas else None
    clock_at = read_clock(run)
    # A run that learns from imported games publishes its first model while the clock
    # runs.
    ends = [at for at in (first_model_at, clock_at) if at is not None]
    init_ended_at = min(ends, default=None)
    # Calls that ended before there was a model, for example because a GPU was missing,
    # left nothing: the run begins with the call that made the first model.
    before = [at for at in calls if init_ended_at is not None and at <= init_ended_at]
    calls = calls[max(0, len(before) - 1) :]
    clock = {
        "schema": _SCHEMA,
        "last_model": metas[-1][0] if metas else None,
        "init_at": calls[0] if calls else first_model_at,
        "init_ended_at": init_ended_at,
        "clock_at": clock_at,
        "restarts_at": calls[1:],
    }
    publish_json(files.folder / _CLOCK, clock)


def _generation(number: int, meta: ModelMeta, before: ModelMeta) -> dict[str, Any]:
    """Returns the figures of the pass between two models."""
    origin = meta.origin
    return {
        "generation": None if origin is None else origin.pass_generation,
        "model": number,
        "num_games": None if origin is None else origin.pass_games,
        "num_rows": None if origin is None else origin.num_rows,
        "num_sampled": None if origin is None else origin.window_rows,
        "num_steps": meta.num_steps - before.num_steps,
        "began_at": None if origin is None else origin.learned_from_at,
        "ended_at": None if origin is None else origin.learned_to_at,
    }


def _calls(run: RunDirectory) -> list[dict[str, Any]]:
    path = run.eval / _CALLS
    if not path.exists():
        return []
    content = read_object(path, "calls", schema=_SCHEMA, advice=_ADVICE)
    try:
        return [
            {
                "at": float(call["at"]),
                # Earlier versions recorded no other calls.
                "trains": bool(call.get("trains", True)),
                "open_because": [str(reason) for reason in call["open_because"]],
            }
            for call in content["calls"]
        ]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise RunError(f"calls ({path}) are damaged; {_ADVICE}") from None


def _publish(run: RunDirectory, name: str, content: dict[str, Any]) -> None:
    path = run.eval / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise storage_error(path, error) from error
    publish_json(path, {"schema": _SCHEMA, **content})
