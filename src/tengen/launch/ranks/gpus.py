"""The GPUs that ranks of ``mpirun`` may use, and those that a config names.

Source: CUDA C++ Programming Guide, "CUDA Environment Variables", CUDA_VISIBLE_DEVICES:
numbers of devices or their UUIDs, of which those before the first one that is invalid
are seen.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from tengen.errors import UsageError
from tengen.inference import parse_devices
from tengen.launch.launcher import Placed
from tengen.launch.ranks.table import RankInfo
from tengen.roles import RunConfig, gpus_named

__all__ = ["check_named_gpus", "visible_devices"]

_VARIABLE = "CUDA_VISIBLE_DEVICES"
_NAMED = ("GPU-", "MIG-")
_LEARNING = ("learn", "follow")


def visible_devices(
    environment: Mapping[str, str] | None = None, folder: Path = Path("/dev")
) -> tuple[str, ...]:
    """Returns the GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them.

    Args:
        environment: The environment to read; None for this process's.
        folder: The folder with a file for each GPU of the host.
    """
    count = len(list(folder.glob("nvidia[0-9]*")))
    known = os.environ if environment is None else environment
    given = known.get(_VARIABLE)
    if given is None or count == 0:
        return tuple(map(str, range(count)))
    found: list[str] = []
    for name in map(str.strip, given.split(",")):
        is_number = name.isdecimal() and int(name) < count
        if not is_number and not name.startswith(_NAMED):
            break
        found.append(name)
    return tuple(found)


def check_named_gpus(
    config: RunConfig, ranks: Sequence[RankInfo], table: Sequence[Placed]
) -> None:
    """Makes sure that processes have the GPUs that they are to compute on.

    Imports torch if a process on this host, the first rank's, needs a GPU. Other ranks
    are judged by what they report. If no rank reports a GPU, as on machines that show
    GPUs in another way, each process checks when it begins.

    Args:
        config: The run's.
        ranks: All, in order.
        table: Of ``place``.

    Raises:
        UsageError: A GPU is not there.
    """
    named = gpus_named(config)
    if not named:
        return
    is_known = any(one.devices for one in ranks)
    # Actors that ask an inference server use no GPU.
    schedule = config.schedule
    idle = schedule.acting if schedule.serving else ""
    for one in table:
        role = one.worker.roles[0]
        name = "learner.device" if role in _LEARNING else "inference.devices"
        if name not in named or role == idle:
            continue
        if one.rank == 0:
            parse_devices(name, named[name])
        elif is_known:
            _check_seen(name, named[name], ranks[one.rank], one)


def _check_seen(name: str, text: str, rank: RankInfo, placed: Placed) -> None:
    seen = rank.devices if placed.devices is None else placed.devices
    for word in text.split(","):
        if int(word.removeprefix("cuda:")) >= len(seen):
            raise UsageError(
                f"{name} ({word}) is not there for {placed.worker.name}, which sees "
                f"{len(seen)} GPUs of rank {rank.rank} on {rank.host}; give mpirun "
                f"hosts that have it, or use --devices cpu"
            )
