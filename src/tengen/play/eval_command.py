"""``tengen eval``: what an agent scores in its environment."""

from __future__ import annotations

import argparse
import sys
import threading
from typing import Any

from tengen import envs
from tengen.config import check, check_range
from tengen.evaluation import MAX_STEPS, EpisodesReport, play_episodes
from tengen.evaluation.match import MAX_SEED
from tengen.games import add_task_argument
from tengen.models import resolve_model
from tengen.play.agent_player import open_agent

__all__ = ["add_arguments", "evaluate"]

_MAX_EPISODES = 1_000_000
# A batch that a processor is quick at. Another number would play other episodes.
_MAX_COPIES = 16


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``eval``."""
    parser.add_argument("model", metavar="RUN", help="RUN, RUN@17 or a model directory")
    parser.add_argument(
        "--episodes", type=int, default=100, metavar="N", help="how many (100)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the environment (0)")
    parser.add_argument(
        "--step-timeout",
        type=float,
        default=120.0,
        metavar="SECONDS",
        help="how long the copies may take for a step before they count as hung (120)",
    )
    parser.add_argument(
        "--max-steps",
        type=int,
        default=MAX_STEPS,
        metavar="N",
        help=f"an episode that has so many steps is cut ({MAX_STEPS:,})",
    )
    add_task_argument(parser)


def evaluate(args: argparse.Namespace) -> dict[str, Any]:
    """Plays whole episodes and prints their mean return with its interval.

    Returns:
        ``model`` (its directory), ``task``, ``seed``, and what
        ``EpisodesReport.to_json`` has.

    Raises:
        UsageError: The model cannot be used or plays a board game, or a number is
            refused.
        RunError: The environment fails or hangs, or an answer is not finite.
    """
    check_range("episodes", args.episodes, 1, _MAX_EPISODES)
    check_range("seed", args.seed, 0, MAX_SEED)
    check_range("max-steps", args.max_steps, 1, 2**31)
    check(
        0 < args.step_timeout <= threading.TIMEOUT_MAX,
        "step_timeout",
        args.step_timeout,
        "must be above 0 and no longer than a thread can wait; use 120",
    )
    model = open_agent(resolve_model(args.model), args.model, task=args.task)
    num_copies = min(args.episodes, _MAX_COPIES)
    env = envs.TimelyEnv(
        lambda: envs.make(model.task, num_copies, args.seed),
        args.step_timeout,
        model.task,
    )
    shows = sys.stderr.isatty()

    def watch(num_over: int) -> None:
        if shows:
            text = f"episode {num_over} of {args.episodes}"
            print(text, end="\r", file=sys.stderr, flush=True)

    try:
        watch(0)
        report = play_episodes(
            env,
            model.agent,
            model.backend,
            args.episodes,
            model=model.name,
            max_steps=args.max_steps,
            watch=watch,
        )
    finally:
        env.close()
        if shows:
            print("\033[K", end="", file=sys.stderr, flush=True)
    path = str(model.directory.path)
    if not args.json:
        print(_text(path, model.task, report))
    return {
        "model": path,
        "task": model.task,
        "seed": args.seed,
        **report.to_json(),
    }


def _text(path: str, task: str, report: EpisodesReport) -> str:
    num_episodes, num_frames = len(report.returns), report.num_frames
    mean = f"mean return {report.mean_return:.2f}"
    if report.interval is not None:
        low, high = report.interval
        mean += f", 95 % interval {low:.2f} to {high:.2f} (Student's t)"
    cut = f", {report.num_cut} of them cut" if report.num_cut else ""
    return "\n".join(
        [
            f"{path} in {task}",
            mean,
            f"{num_episodes} episodes, returns {min(report.returns):.2f} to "
            f"{max(report.returns):.2f}, {num_frames / num_episodes:.1f} steps each"
            f"{cut}",
        ]
    )
