"""Checks that the ranks of ``mpirun`` have the GPUs that a config names."""

from __future__ import annotations

from collections.abc import Sequence

from tengen.errors import UsageError
from tengen.inference import parse_devices
from tengen.launch.ranks.table import Placed, RankInfo
from tengen.roles import RunConfig, gpus_named

__all__ = ["check_named_gpus"]

_LEARNING = ("learn", "follow")


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
