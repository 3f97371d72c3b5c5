"""``tengen game new`` and ``tengen env new``: files to begin with."""

from __future__ import annotations

import argparse
import importlib.util
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tengen.starters.files import ENVIRONMENT, GAME, Starter, write_starter

__all__ = ["add_arguments", "env_new", "game_new"]

_AFTER_GAME = (
    "tengen game check {task}",
    "tengen train {task} --minutes 2",
    "tengen play {run} --task {task}",
)
_AFTER_ENVIRONMENT = (
    "tengen env check {task}",
    "tengen train {task} --agent ppo --frames 20k",
    "tengen eval {run} --task {task} --episodes 100",
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of both commands."""
    parser.add_argument(
        "name",
        metavar="NAME",
        help="name of the file, such as my_name, which gets a class MyName",
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path(),
        metavar="FOLDER",
        help="folder to write the file to, made if it is missing (here)",
    )


def game_new(args: argparse.Namespace) -> dict[str, Any]:
    """Writes a small game that works, and its test.

    Returns:
        ``task``, ``files`` and ``commands``, what to run next.

    Raises:
        UsageError: See ``write_starter``.
    """
    return _written(args, GAME, _AFTER_GAME)


def env_new(args: argparse.Namespace) -> dict[str, Any]:
    """Writes a small environment that works, and its test; returns as ``game_new``.

    Raises:
        UsageError: See ``write_starter``.
    """
    return _written(args, ENVIRONMENT, _AFTER_ENVIRONMENT)


def _written(
    args: argparse.Namespace, starter: Starter, commands: Sequence[str]
) -> dict[str, Any]:
    source, test, task = write_starter(starter, args.name, args.out)
    run = f"runs/{task.replace(':', '_')}"
    lines = [command.format(task=task, run=run) for command in commands]
    if importlib.util.find_spec("pytest") is not None:
        lines.insert(1, f"python -m pytest {test.name}")
    if args.out != Path():
        lines.insert(0, f"cd {shlex.quote(str(args.out))}")
    if not args.json:
        print(f"wrote {source} and {test}; comments say what to change. Next:")
        for line in lines:
            print(f"  {line}")
    return {"task": task, "files": [str(source), str(test)], "commands": lines}
