"""Records when a run's phases begin, from which its MLPerf result (a duration) follows.

``RUN/eval/calls.json`` records for each call of ``tengen train`` when it began, whether
it trained or only wrote the config for standalone roles, and which of its settings
MLPerf's closed division forbids. ``RUN/eval/began.json`` records when the learner
began. After training, ``RUN/eval/target/clock.json`` and ``generations.jsonl`` are
derived from these files and the models. The run's log is written from them.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping
from typing import Any

from tengen.errors import RunError
from tengen.minigo.closed_division import open_because
from tengen.minigo.target_files import TargetFiles
from tengen.models import ModelMeta
from tengen.models.load import read_meta
from tengen.roles.spent import read_began
from tengen.run import RunDirectory, make_directory, publish_json, read_object

_SCHEMA = 1
_CALLS = "calls.json"
_ADVICE = "restore it from a copy; without it the run has no result"


def has_calls(run: RunDirectory) -> bool:
    """Returns whether the run has recorded calls: it has, or once had, a target."""
    return (run.eval / _CALLS).exists()


def note_call(
    run: RunDirectory, config: Mapping[str, Any], *, trains: bool = True
) -> None:
    """Records that a ``tengen train`` call begins. The caller must hold the run's lock.

    Args:
        run: The run.
        config: The run's config in this call, as JSON values.
        trains: Whether the call trains, or only writes the config.

    Raises:
        UsageError: The file has a newer schema.
        RunError: The file is damaged or cannot be written.
    """
    call = {
        "at": round(time.time(), 3),
        "trains": trains,
        "open_because": open_because(config),
    }
    content = {"schema": _SCHEMA, "calls": [*_calls(run), call]}
    path = run.eval / _CALLS
    make_directory(path.parent)
    publish_json(path, content)


def run_open_because(run: RunDirectory) -> list[str]:
    """Returns the reasons, from all calls, why a run is not in the closed division.

    Omits reasons about ``agent.target``: all models play the target of the last call,
    so only that call's config matters.

    Raises:
        UsageError: A file has a newer schema.
        RunError: A file is damaged.
    """
    found = [
        reason
        for call in _calls(run)
        for reason in call["open_because"]
        if not reason.startswith("agent.target.")
    ]
    if read_began(run) is None:
        found.append(
            "agent.iterations (0) was set only after training began, so the time was "
            "not recorded"
        )
    return list(dict.fromkeys(found))


def has_history(run: RunDirectory) -> bool:
    """Returns whether the run's history is published and includes its newest model."""
    number = TargetFiles(run).history_model()
    return number is not None and number == run.models.latest()


def publish_history(run: RunDirectory) -> None:
    """Publishes ``clock.json`` and ``generations.jsonl`` after training has ended.

    Raises:
        UsageError: A file has a newer schema.
        RunError: A file is damaged or cannot be written.
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
    calls = [float(call["at"]) for call in _calls(run) if call["trains"]]
    first_model_at = metas[0][1].made_at if metas else None
    clock_at = read_began(run)
    # A run that learns from imported games publishes its first model after the clock
    # has started. Initialisation ends at the earlier of these two times.
    ends = [at for at in (first_model_at, clock_at) if at is not None]
    init_ended_at = min(ends, default=None)
    # The run begins with the call that created the first model. Earlier calls failed,
    # for example because a GPU was missing, and left no results.
    before = [at for at in calls if init_ended_at is not None and at <= init_ended_at]
    calls = calls[max(0, len(before) - 1) :]
    clock = {
        "last_model": metas[-1][0] if metas else None,
        "init_at": calls[0] if calls else first_model_at,
        "init_ended_at": init_ended_at,
        "clock_at": clock_at,
        "restarts_at": calls[1:],
    }
    files.publish_history(clock, lines)


def _generation(number: int, meta: ModelMeta, before: ModelMeta) -> dict[str, Any]:
    """Returns statistics of the learning pass between two models."""
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
                # Earlier versions recorded only calls that train, and had no such key.
                "trains": bool(call.get("trains", True)),
                "open_because": [str(reason) for reason in call["open_because"]],
            }
            for call in content["calls"]
        ]
    except (LookupError, TypeError, ValueError, AttributeError):
        raise RunError(f"calls ({path}) are damaged; {_ADVICE}") from None
