"""The progress of evaluating a run's models against its target."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tengen.observe.mlperf.files import read_evaluated, read_result
from tengen.observe.roles import of_agent
from tengen.run import RunDirectory

__all__ = ["read_target", "target_line"]


def read_target(run: RunDirectory) -> dict[str, Any] | None:
    """Returns the progress as JSON values; None without a target.

    Keys: ``opponent``, ``num_models`` (those that are to be trained),
    ``num_evaluated``, ``has_result``, and of a result ``win_rate``, ``passed`` and
    ``passed_after_s``.

    Raises:
        UsageError: A file is of a newer schema.
        RunError: One is damaged.
    """
    config = run.read_run()["config"]
    target = of_agent(config, "target") or {}
    if not target.get("opponent"):
        return None
    folder = run.eval / "target"
    num_models = of_agent(config, "iterations") or 0
    result = read_result(folder)
    is_current = result is not None and result.iterations == num_models
    found = {
        "opponent": target["opponent"],
        "num_models": num_models,
        "num_evaluated": len(read_evaluated(folder)) if folder.is_dir() else 0,
        "has_result": is_current,
    }
    if result is not None and is_current:
        for name in ("win_rate", "passed", "passed_after_s"):
            found[name] = getattr(result, name)
    return found


def target_line(found: Mapping[str, Any]) -> str:
    """Returns what ``read_target`` found as a line for people."""
    opponent = found["opponent"]
    if not found["has_result"]:
        return (
            f"{found['num_evaluated']} of {found['num_models']} models have met "
            f"{opponent}"
        )
    if found["passed"] is None:
        return (
            f"no model of {found['num_evaluated']} has reached "
            f"{found['win_rate']:g} against {opponent}"
        )
    after_s = found["passed_after_s"]
    after = "" if after_s is None else f", {after_s:,.1f} s after training began"
    return (
        f"model {found['passed']:06d} is the first to reach {found['win_rate']:g} "
        f"against {opponent}{after}"
    )
