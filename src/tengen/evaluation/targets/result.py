"""What came of a run's models against its target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tengen.evaluation.targets.config import TargetConfig
from tengen.evaluation.targets.order import (
    TargetMatch,
    evaluated,
    smoothed_crossing,
)
from tengen.evaluation.targets.records import TargetFiles

__all__ = ["current_result", "target_result"]


def current_result(files: TargetFiles, iterations: int) -> dict[str, Any] | None:
    """Returns the result of a run, None before the end of its evaluation.

    Args:
        files: Has it.
        iterations: ``agent.iterations``; a result of a run of fewer is none.

    Raises:
        UsageError: It is of a newer schema.
        RunError: It is damaged.
    """
    result = files.result()
    if result is None or result.get("iterations") != iterations:
        return None
    return result


def target_result(
    models: Sequence[int],
    files: TargetFiles,
    config: TargetConfig,
    clock_at: float | None,
) -> dict[str, Any]:
    """Returns the result as JSON values.

    Args:
        models: The run's, in increasing order.
        files: Has the records of all that were to be played.
        config: Who passes.
        clock_at: When training began, UNIX seconds; None where that is not known.

    Returns:
        ``target``, ``win_rate``, ``num_games``, ``num_models`` (evaluated),
        ``clock_at``, ``passed`` (the first model that did, or None), ``passed_after_s``
        (when it was made, since ``clock_at``), ``smoothed_after_s`` (see
        ``smoothed_crossing``) and ``confirmation``, the further games of the model that
        passed, or None.
    """
    records = evaluated(models, files, config)
    last = records[-1] if records else None
    has_passed = last is not None and last.win_rate >= config.win_rate
    confirmation = None
    if has_passed and last is not None and config.confirming_games:
        further = TargetMatch(last.model, config.confirming_games, confirms=True)
        found = files.record(further.name)
        if found is not None:
            names = ("num_games", "wins", "draws", "losses", "win_rate")
            confirmation = {name: getattr(found, name) for name in names}
    crossing = smoothed_crossing(records, config.win_rate)

    def since(time: float | None) -> float | None:
        if time is None or clock_at is None:
            return None
        return round(time - clock_at, 3)

    return {
        "target": config.opponent,
        "win_rate": config.win_rate,
        "num_games": config.num_games,
        "num_models": len(records),
        "clock_at": clock_at,
        "passed": last.model if has_passed and last is not None else None,
        "passed_after_s": since(last.made_at) if has_passed and last else None,
        "smoothed_after_s": since(crossing),
        "confirmation": confirmation,
    }
