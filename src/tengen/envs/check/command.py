"""``tengen env check``: steps an environment and reports contract violations."""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
from typing import Any

from tengen.config import check, check_range
from tengen.envs.check.report import Report, check_env
from tengen.envs.copies import MAX_SEED
from tengen.envs.registry import env_spec, make, maker_of_one
from tengen.games import allow, is_game, is_program, load_program
from tengen.observe.progress_line import ProgressLine

_MAX_STEPS = 100_000_000
_MAX_TIMEOUT_S = 86_400.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen env check``."""
    parser.add_argument(
        "task",
        metavar="TASK",
        help="module:Env for your own environment (the module is imported), or the "
        "name of an installed one, such as CartPole-v1 or minatar/Breakout",
    )
    parser.add_argument(
        "--steps",
        type=int,
        default=2000,
        metavar="N",
        help="number of random steps (2000)",
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the episodes and actions (0)"
    )
    parser.add_argument(
        "--timeout",
        type=float,
        default=60.0,
        metavar="S",
        help="time limit of one call, in seconds (60)",
    )


def env_check(args: argparse.Namespace) -> dict[str, Any]:
    """Runs ``tengen env check``, which checks an environment by using it as actors do.

    Returns:
        ``task``, ``is_kept`` (whether the contract is kept), ``is_whole`` (whether all
        checks ran), ``findings``, ``episodes``, ``cost``, and ``exit_code`` (0 or 1).

    Raises:
        UsageError: The environment does not exist, or the task is a game.
    """
    check_range("steps", args.steps, 1, _MAX_STEPS)
    check_range("seed", args.seed, 0, MAX_SEED)
    check_range("timeout", args.timeout, 0.1, _MAX_TIMEOUT_S)
    task = args.task
    allow(task)
    if is_program(task):
        load_program(task)  # raises UsageError if the module cannot be imported
        is_other = _is_own_game(task)
    else:
        is_other = is_game(task)
    check(not is_other, "task", task, "must be an environment; see tengen game check")
    if not is_program(task):
        env_spec(task)  # raises UsageError if the task or its package is missing

    def tell(report: Report) -> dict[str, Any]:
        told = _told(task, report)
        if not args.json:
            print(_text(task, report))
        return told

    def tell_at_end(report: Report) -> None:
        told = tell(report)
        if args.json:
            print(json.dumps(told), file=sys.__stdout__, flush=True)
        sys.stdout.flush()

    with ProgressLine(f"stepping {task}"):
        report = check_env(
            lambda num_envs, seed: make(task, num_envs, seed),
            maker_of_one(task),
            task,
            num_steps=args.steps,
            seed=args.seed,
            timeout_s=args.timeout,
            before_end=tell_at_end,
        )
    return tell(report)


def _told(task: str, report: Report) -> dict[str, Any]:
    return {
        "task": task,
        "is_kept": not report.num_broken,
        "is_whole": report.is_whole,
        "findings": [dataclasses.asdict(finding) for finding in report.findings],
        "episodes": report.episodes and dataclasses.asdict(report.episodes),
        "cost": report.cost and dataclasses.asdict(report.cost),
        "exit_code": int(report.num_broken > 0),
    }


def _is_own_game(task: str) -> bool:
    """Returns whether the class ``task`` is a game; false if that is unclear."""
    found = load_program(task)
    return hasattr(found, "legal_actions") and not hasattr(found, "step")


def _text(task: str, report: Report) -> str:
    lines = [
        f"{'broken ' if finding.is_broken else 'warning'}  {finding.message}"
        for finding in report.findings
    ]
    lines += [f"{label:<7}  {text}" for label, text in _facts(report)]
    num_broken, num_warnings = (
        report.num_broken,
        len(report.findings) - report.num_broken,
    )
    warnings = f", with {_count(num_warnings, 'warning')}" if num_warnings else ""
    if not num_broken:
        lines.append(f"{task} keeps the contract{warnings}")
        return "\n".join(lines)
    rest = "" if report.is_whole else "; the other checks run once it is fixed"
    things = _count(num_broken, "fault")
    lines.append(f"{task} breaks the contract: {things}{warnings}{rest}")
    return "\n".join(lines)


def _facts(report: Report) -> list[tuple[str, str]]:
    facts = []
    if (seen := report.episodes) is not None:
        ends = "none ended"
        if seen.num_ended:
            ends = (
                f"{_count(seen.num_ended, 'episode')} ended, {seen.num_truncated:,} of "
                f"them truncated, after {seen.shortest:,} to {seen.longest:,} steps"
            )
        rewards = "no finite reward"
        if seen.least_reward <= seen.greatest_reward:
            rewards = f"rewards {seen.least_reward:g} to {seen.greatest_reward:g}"
        agents = ""
        if seen.num_removed or seen.num_added:
            agents = (
                f"; {_count(seen.num_removed, 'agent')} removed before the end, "
                f"{seen.num_added:,} added after the beginning"
            )
        steps = _count(seen.num_steps, "step")
        facts.append(("seen", f"{steps}, {ends}; {rewards}{agents}"))
    if (cost := report.cost) is not None:
        text = f"{cost.steps_per_second:,.0f} steps/s"
        if cost.num_copies > 1:
            text += f" with {cost.num_copies} copies"
        if cost.reset_share is not None:
            text += f", {cost.reset_share:.0%} of the time in reset"
        if cost.memory_growth_bytes is not None:
            text += f"; memory {cost.memory_growth_bytes / 2**20:+.1f} MiB"
        facts.append(("speed", text))
    return facts


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"
