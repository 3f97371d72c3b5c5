"""The arguments, keys and report of commands that record demonstrations."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from tengen import envs
from tengen.config import check, check_range
from tengen.envs.copies import MAX_SEED, one_line
from tengen.experience.demonstrations import Demonstrations, Episode, check_new_folder
from tengen.games import allow, is_game

_MAX_EPISODES = 1_000_000
_KEYS = "0123456789abcdefghijklmnopqrstuvwxyz"

Add: TypeAlias = Callable[[Episode], None]
"""Writes an episode."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of a command that records episodes of an environment."""
    parser.add_argument("task", help="the environment, such as CartPole-v1")
    parser.add_argument(
        "--episodes", type=int, default=20, metavar="N", help="how many (20)"
    )
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the environment (0)"
    )
    add_out(parser)


def add_out(parser: argparse.ArgumentParser) -> None:
    """Declares the option ``--out``."""
    parser.add_argument(
        "--out",
        type=Path,
        required=True,
        metavar="FOLDER",
        help="the folder to create",
    )


def check_arguments(args: argparse.Namespace) -> None:
    """Raises UsageError if an argument of ``add_arguments`` is invalid."""
    check_range("episodes", args.episodes, 1, _MAX_EPISODES)
    check_range("seed", args.seed, 0, MAX_SEED)
    check_new_folder(args.out)
    allow(args.task)
    check(not is_game(args.task), "task", args.task, "must be an environment")
    is_single = not envs.env_spec(args.task).agents
    check(is_single, "task", args.task, "must have a single agent")


def keys_of(task: str, typed: Sequence[str]) -> Sequence[str]:
    """Returns the key of each action: those ``typed``, or 0 to 9 and then a to z.

    Raises:
        UsageError: The environment does not have a single discrete action, or two
            actions have the same key or none.
    """
    actions = envs.env_spec(task).actions
    is_single = actions.is_discrete and actions.shape == ()
    check(is_single, "--keys", task, "needs a single discrete action; record an agent")
    count = actions.num_choices[0]
    keys = typed or _KEYS[:count]
    check(
        all(keys) and len(keys) == len(set(keys)) == count,
        "--keys",
        "".join(keys),
        f"must be {count} different characters, one for each action of {task}",
    )
    return keys


def told(demos: Demonstrations, args: argparse.Namespace) -> dict[str, Any]:
    """Returns the report of ``demos_show``, and prints it unless ``args.json``."""
    contents = demos.contents
    returns, lengths = contents.returns, contents.lengths
    mean = float(np.mean(returns))
    if not args.json:
        print(
            f"{demos.folder}: episodes of {one_line(contents.task)}: {len(returns)}, "
            f"by {one_line(contents.source)}; returns {min(returns):g} to "
            f"{max(returns):g}, mean {mean:g}; {demos.num_steps:,} steps"
        )
    return {
        "folder": str(demos.folder),
        "task": contents.task,
        "source": contents.source,
        "episodes": len(returns),
        "frames": demos.num_steps,
        "mean_return": mean,
        "returns": list(returns),
        "lengths": list(lengths),
    }
