"""``tengen train``: its arguments."""

from __future__ import annotations

import argparse
import re
from typing import Any

from tengen.launch import LAUNCHERS
from tengen.recipes.run import train_task

__all__ = ["add_arguments", "train"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments of ``tengen train``."""
    parser.add_argument(
        "task",
        help="gomoku/9, connect4, openspiel/hex, CartPole-v1, module:Class of a game "
        "or an environment of your own, ...",
    )
    parser.add_argument(
        "--agent", help="any that fits the task; see tengen recipes (the task's)"
    )
    parser.add_argument("--recipe", help="see tengen recipes (default: the task's)")
    parser.add_argument(
        "--launch",
        choices=list(LAUNCHERS),
        help="inline: roles take turns; local: all at once, as where there is a GPU, "
        "with --actors or with launch.listen; ray: on a Ray cluster; mpi: by the ranks "
        "of mpirun -n N, which share the run directory",
    )
    parser.add_argument(
        "--actors",
        type=int,
        help="processes that step environments, at once with the learner (1)",
    )
    parser.add_argument("--minutes", type=float, help="wall time of this call")
    parser.add_argument(
        "--games", type=int, help="games of this call; 0 makes the run, for its roles"
    )
    parser.add_argument(
        "--frames",
        type=_frames,
        help="steps of environments of this call, 10M or 500k, of Atari four frames of "
        "the emulator each; 0 makes the run, for its roles",
    )
    parser.add_argument("--out", help="run directory (runs/TASK)")
    parser.add_argument("--seed", type=int, help="of a new run (0)")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices",
        help="cpu, cuda:0 or cuda:0,cuda:1 (a GPU where there is one, though the "
        "code for GPUs has never run on one)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.b=v",
        help="change one field of the config; see tengen recipes TASK",
    )


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Runs ``tengen train`` and returns its report."""
    return train_task(
        args.task,
        agent=args.agent,
        recipe=args.recipe,
        launch=args.launch,
        actors=args.actors,
        minutes=args.minutes,
        games=args.games,
        frames=args.frames,
        out=args.out,
        seed=args.seed,
        threads=args.threads,
        devices=args.devices,
        settings=args.settings,
    )


def _frames(text: str) -> int:
    """Returns the number that ``10M`` or ``500k`` names."""
    match = re.fullmatch("([0-9]{1,15})([kMG]?)", text)
    if match is None:
        raise argparse.ArgumentTypeError(f"{text} must be a number, as 500k or 10M")
    return int(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]]
