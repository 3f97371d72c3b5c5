"""``tengen train``: the arguments of the command."""

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
        help="what to train: gomoku/9, connect4, openspiel/hex, CartPole-v1, ..., or "
        "module:Class for a game or an environment of your own",
    )
    parser.add_argument(
        "--agent", help="the algorithm; see tengen recipes (default: the task's)"
    )
    parser.add_argument(
        "--recipe",
        help="where the settings come from; see tengen recipes (default: the task's)",
    )
    parser.add_argument(
        "--launch",
        choices=list(LAUNCHERS),
        help="inline: roles take turns; local: all roles at once, in "
        "processes of this machine; ray: on a Ray cluster; mpi: as the ranks of "
        "mpirun -n N, which share the run directory (local with a GPU, --actors, "
        "several actors in the run or launch.listen, else inline)",
    )
    parser.add_argument(
        "--actors",
        type=int,
        help="processes that step environments while the learner learns (1)",
    )
    parser.add_argument(
        "--minutes",
        type=float,
        help="wall time of this call, without its start-up; where no budget is given "
        "the recipe's",
    )
    parser.add_argument(
        "--games",
        type=int,
        help="games to play in this call; 0 only writes the run's config, for "
        "roles that are started one by one",
    )
    parser.add_argument(
        "--frames",
        type=_frames,
        help="environment steps of this call, such as 500k or 10M; a step of Atari is "
        "four frames of the emulator; 0 only writes the run's config, as with --games",
    )
    parser.add_argument(
        "--out", help="run directory, which is resumed if it holds a run (runs/TASK)"
    )
    parser.add_argument("--seed", type=int, help="seed of a new run (0)")
    parser.add_argument("--threads", type=int, help="cores to use (all)")
    parser.add_argument(
        "--devices",
        help="cpu, cuda:0 or cuda:0,cuda:1 (for a game a GPU where there is one; the "
        "code for GPUs has run on one GPU for minutes only)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        dest="settings",
        metavar="a.b=v",
        help="change one field of the config, may be repeated; tengen recipes "
        "TASK lists the fields",
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
        raise argparse.ArgumentTypeError(
            f"{text} must be a number, such as 500k or 10M"
        )
    return int(match[1]) * {"": 1, "k": 10**3, "M": 10**6, "G": 10**9}[match[2]]
