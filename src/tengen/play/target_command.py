"""``tengen eval RUN`` of a run with a target: its models in order, until one passes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tengen.evaluation.targets.records import TargetFiles
from tengen.games import check_typed
from tengen.roles import RoleContext, StopListener, make_role, read_config
from tengen.roles.role import Report
from tengen.run import RunDirectory, check_no_mirror, usable_threads

__all__ = ["evaluate_models", "has_target"]

_INTERRUPTED = 130


def has_target(where: str) -> bool:
    """Returns whether an argument names a run whose models meet a target.

    Raises:
        UsageError: The run is of a newer schema, or its config is not known here.
        RunError: ``run.json`` is damaged.
    """
    run = RunDirectory(where)
    if run.is_new:
        return False
    return bool(read_config(run).agent.target.opponent)


def evaluate_models(args: argparse.Namespace) -> dict[str, Any]:
    """Plays what no other process plays of the run's models, and prints the result.

    Several may run at once, on hosts that share the run directory.

    Args:
        args: ``model``, the run; ``threads``; ``task``, typed of a game in Python.

    Returns:
        What ``RUN/eval/target/result.json`` has, and ``exit_code``.

    Raises:
        UsageError: The target is gone, or the folder is a mirror.
        RunError: A model is damaged, or the target fails.
    """
    num_threads = usable_threads(args.threads)
    run = RunDirectory.open(args.model)
    check_no_mirror(run)
    config = read_config(run)
    check_typed(config.task, args.task, run.path)
    with StopListener(run) as listener:
        context = RoleContext(
            num_threads=num_threads, stop=listener.event, progress=_show
        )
        role = make_role("eval", config, run, context)
        try:
            while not listener.event.is_set():
                report = role.turn()
                if report is None:
                    break
                if not args.json:
                    _tell(report)
        finally:
            role.close()
            _show({"stage": ""})
        result = TargetFiles(run).result()
    if result is None:
        code = _INTERRUPTED if listener.reason == "interrupted" else 0
        return {"run": str(run.path), "exit_code": code}
    if not args.json:
        print(_text(result))
    return {"run": str(run.path), **result, "exit_code": 0}


def _show(report: Report) -> None:
    if sys.stderr.isatty():
        stage = report.get("stage", "")
        print(f"\033[K{stage}", end="\r", file=sys.stderr, flush=True)


def _tell(report: Report) -> None:
    if "win_rate" not in report or report.get("is_result"):
        return
    what = "in its confirming match" if report["confirms"] else "against the target"
    print(
        f"model {report['model']:06d} {what}: {report['wins']} won, "
        f"{report['draws']} drawn, {report['losses']} lost, {report['win_rate']:.3f}",
        flush=True,
    )


def _text(result: dict[str, Any]) -> str:
    if result["passed"] is None:
        return (
            f"no model of {result['num_models']} has reached {result['win_rate']:g} "
            f"against {result['target']}"
        )
    lines = [
        f"model {result['passed']:06d} is the first to reach {result['win_rate']:g} "
        f"against {result['target']}"
    ]
    if result["passed_after_s"] is not None:
        lines[0] += f", {result['passed_after_s']:,.1f} s after training began"
    if result["smoothed_after_s"] is not None:
        lines.append(f"by all results smoothed {result['smoothed_after_s']:,.1f} s")
    if (further := result["confirmation"]) is not None:
        lines.append(
            f"in {further['num_games']} further games it has {further['win_rate']:.3f}"
        )
    return "\n".join(lines)
