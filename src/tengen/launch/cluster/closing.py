"""What processes of the closing role ask a cluster for. Does not call Ray.

Training has ended, so each process gets what one process that played or learned had, on
the same host. The role needs the run's files: if only one host has them, there is one
process, on that host, with what the run had of that host.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tengen.errors import UsageError
from tengen.launch.at_once.closing import closing_name, is_replaced
from tengen.launch.at_once.workers import Worker
from tengen.launch.cluster.nodes import Node
from tengen.launch.cluster.table import Asked
from tengen.roles import RunConfig

__all__ = ["closing", "closing_at_home"]


def closing(config: RunConfig, before: Sequence[Asked]) -> list[Asked]:
    """Returns what each process of the closing role asks for.

    Args:
        config: The run's.
        before: The processes that worked, including those of ``tengen scale``.
    """
    role = config.schedule.closing
    replaced = [one for one in before if is_replaced(config, one.worker)]
    acting = [one for one in replaced if _acts(config, one)]
    num_gpus = (acting or replaced)[0].num_gpus
    # A learner without GPUs cannot be replaced by a process that plays on one.
    able = [one for one in replaced if one.num_gpus >= num_gpus]
    able.sort(key=lambda one: one not in acting)
    return [
        dataclasses.replace(
            one,
            worker=Worker(
                name=closing_name(role, index, len(able)),
                roles=(role,),
                index=index,
                num_threads=one.worker.num_threads,
            ),
            num_gpus=num_gpus,
        )
        for index, one in enumerate(able)
    ]


def closing_at_home(
    config: RunConfig, table: Sequence[Asked], nodes: Sequence[Node], home: str
) -> Asked:
    """Returns what the only process asks for, if one host alone has the run's files.

    Args:
        config: The run's.
        table: The table of ``table_of``.
        nodes: The cluster's hosts.
        home: Ray's id of that host.

    Raises:
        UsageError: The host lacks the GPUs that an acting process asks for.
    """
    schedule = config.schedule
    (host,) = [node for node in nodes if node.node == home]
    acting = [one for one in table if _acts(config, one)]
    num_cpus = sum(
        one.num_cpus for one in table if one not in acting or one.node == home
    )
    # Acting processes may be on other hosts by chance, and have ended anyway.
    num_cpus = max([num_cpus, *(one.num_cpus for one in acting)])
    num_cpus = min(num_cpus, host.num_cpus)
    given = acting or [one for one in table if "learn" in one.worker.roles]
    num_gpus = given[0].num_gpus
    if num_gpus > host.num_gpus:
        name = f"launch.roles.{given[0].worker.given_as}.num_gpus"
        raise UsageError(
            f"{name} ({num_gpus:g}) must be at most {host.num_gpus:g}, the GPUs of "
            f"host {host.host}, the only one with the run directory, which plays "
            "against agent.target.opponent at the end; put the run on a filesystem "
            "that all hosts have, or start the command on a host with GPUs"
        )
    role = schedule.closing
    return Asked(
        worker=Worker(name=role, roles=(role,), num_threads=max(1, round(num_cpus))),
        num_cpus=num_cpus,
        num_gpus=num_gpus,
        is_given=False,
        node=home,
        is_bound=True,
    )


def _acts(config: RunConfig, one: Asked) -> bool:
    return one.worker.roles == (config.schedule.acting,)
