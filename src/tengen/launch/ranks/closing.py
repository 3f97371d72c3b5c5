"""The processes of the closing role, one on each rank of ``mpirun``.

Training has ended and all other processes with it. So each rank has one process of the
closing role, also the learner's and the runner's rank, and ranks that may use the same
cores divide them.
"""

from __future__ import annotations

from collections.abc import Sequence

from tengen.launch.at_once.closing import closing_name
from tengen.launch.at_once.workers import Worker
from tengen.launch.ranks.table import Placed, RankInfo
from tengen.roles import RunConfig

__all__ = ["closing"]


def closing(
    config: RunConfig, ranks: Sequence[RankInfo], table: Sequence[Placed]
) -> list[Placed]:
    """Returns the processes of the closing role with their ranks.

    If the run plays on GPUs, a rank has no process if it sees too few of them, because
    other processes have asked for its GPUs by number.

    Args:
        config: The run's.
        ranks: All ranks, in order.
        table: The table of ``place``.
    """
    role = config.schedule.closing
    if not role:
        return []
    seen = {one.rank: _devices(config, table, one) for one in ranks}
    able = [one for one in ranks if _is_able(config, one, seen[one.rank])]
    # If no rank is able, the role itself says what it lacks.
    chosen = able or list(ranks)
    shares = [(one.host, one.bound_to) for one in chosen]
    placed = []
    for index, one in enumerate(chosen):
        sharing = shares.count((one.host, one.bound_to))
        worker = Worker(
            name=closing_name(role, index, len(chosen)),
            roles=(role,),
            index=index,
            num_threads=max(1, one.cores // sharing),
        )
        placed.append(
            Placed(worker=worker, rank=one.rank, host=one.host, devices=seen[one.rank])
        )
    return placed


def _devices(
    config: RunConfig, table: Sequence[Placed], rank: RankInfo
) -> tuple[str, ...] | None:
    """Returns the GPUs that a rank's process sees; see ``Placed.devices``.

    They are the GPUs of the processes that the rank had. GPUs that a process asked for
    by number come first, because no other process has them.
    """
    here = [one for one in table if one.rank == rank.rank]
    here.sort(key=lambda one: not config.launch.of(one.worker.given_as).num_gpus)
    seen: dict[str, None] = {}
    for one in here:
        if one.devices is None:
            return None
        seen |= dict.fromkeys(one.devices)
    return tuple(seen)


def _is_able(
    config: RunConfig, rank: RankInfo, devices: tuple[str, ...] | None
) -> bool:
    """Returns whether a rank's process has the GPUs that the run plays on."""
    inference = config.inference
    needed = 0
    if inference.is_on_gpu:
        needed = len(inference.devices.split(","))
    elif inference.devices == "auto":
        # With devices=auto a process takes one GPU if the host has any.
        needed = min(1, len(rank.devices))
    return len(rank.devices if devices is None else devices) >= needed
