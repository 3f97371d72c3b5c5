"""``tengen eval RUN`` for a run with a target: evaluates models until one passes."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from tengen.config import check, to_dict
from tengen.games import check_typed
from tengen.minigo.matches import TargetMatches
from tengen.minigo.opponent import check_typed_opponent
from tengen.minigo.target_files import TargetFiles
from tengen.observe.progress_line import ProgressLine
from tengen.observe.roles import of_agent
from tengen.observe.target import TargetResult, read_target, target_line
from tengen.roles import RoleContext, StopListener, read_config
from tengen.run import RunDirectory, check_no_mirror, check_writable, usable_threads

_INTERRUPTED = 130


def has_target(where: str) -> bool:
    """Returns whether ``where`` is a run whose models play against a target.

    Raises:
        UsageError: The run has a newer schema.
        RunError: ``run.json`` is damaged.
    """
    run = RunDirectory(where)
    if run.is_new:
        return False
    target = of_agent(run.read_run().get("config", {}), "target") or {}
    return bool(target.get("opponent"))


def evaluate_models(args: argparse.Namespace) -> dict[str, Any]:
    """Plays a run's unfinished matches against the target and prints the result.

    Several processes, on any host with the run directory, can share the work.

    Args:
        args: ``model``, the run; ``threads``; ``task``, required for a game in Python;
            ``opponent``, required for a target that is a program.

    Returns:
        ``run``, the fields of ``RUN/eval/target/result.json`` if there is a result, and
        ``exit_code``: 0 with a result, 130 after an interrupt, otherwise 1.

    Raises:
        UsageError: The target is missing, differs from that of earlier matches, or is a
            program that the user did not type; the run directory is a mirror or not
            writable; or the run is still stopping.
        RunError: A model is damaged, or the target fails.
    """
    num_threads = usable_threads(args.threads)
    run = RunDirectory.open(args.model)
    check_no_mirror(run)
    config = read_config(run)
    check_typed(config.task, args.task, run.path)
    files = TargetFiles(run)
    if files.result(config.schedule.num_models) is None:
        opponent = config.schedule.opponent
        check_typed_opponent(opponent, args.opponent, run.path, "--opponent ")
        check_writable(run.path)
    if run.stop_requested():
        check(
            run.lock_holder("train") is None,
            "run",
            args.model,
            "is stopping; wait until it has stopped",
        )
        run.clear_stop()
    with StopListener(run) as listener, ProgressLine("waiting for models") as line:
        context = RoleContext(
            num_threads=num_threads,
            stop=listener.event,
            opponent=args.opponent,
            progress=lambda report: line.tell(report.get("stage", "")),
        )
        matches = TargetMatches(config, run, context)
        while not listener.event.is_set():
            report = matches.turn()
            if report is None:
                break
            if "told" in report and not args.json:
                line.leave(report["told"])
        result = files.result(config.schedule.num_models)
    if result is None:
        why = matches.waits_for or "not all models have played; run the command again"
        print(f"tengen: {run.path} has no result: {why}", file=sys.stderr)
        code = _INTERRUPTED if listener.reason == "interrupted" else 1
        return {"run": str(run.path), "exit_code": code}
    if not args.json:
        found = read_target(run)
        assert found is not None
        print("\n".join([target_line(found), *_beside(result)]))
    return {"run": str(run.path), **to_dict(result), "exit_code": 0}


def _beside(result: TargetResult) -> list[str]:
    """Returns lines about the smoothed time to pass and about the confirming match."""
    lines = []
    if result.smoothed_after_s is not None:
        lines.append(f"smoothed over all results: {result.smoothed_after_s:,.1f} s")
    if (further := result.confirmation) is not None:
        lines.append(
            f"win rate in {further['num_games']} more games: {further['win_rate']:.3f}"
        )
    return lines
