"""Which processes a run has where all roles work at once, and who has which cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.roles import RunConfig

__all__ = ["Worker", "with_cores", "workers_at_once"]

_LEARNING_PART = 4


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One process."""

    name: str
    """Its own, as ``actor-1``."""
    roles: tuple[str, ...]
    """What it hosts, in the order of their turns."""
    index: int = 0
    """Which of several with these roles, from 0."""
    num_threads: int = 1
    """Threads that each of its roles may use."""


def workers_at_once(config: RunConfig, num_threads: int) -> list[Worker]:
    """Returns the processes of a run.

    Args:
        config: The run's.
        num_threads: Cores to use, divided as ``with_cores`` says.
    """
    schedule = config.agent.schedule(config)
    # Environments: the experience is the learner's; candidates are models at once.
    learning = [schedule.learning]
    if not schedule.serving:
        learning = [(role,) for role in schedule.learning]
    groups = [*learning, (schedule.serving,)]
    acting = (schedule.acting,)
    groups = [*groups, acting] if schedule.serving else [acting, *groups]
    workers = []
    for roles in (*groups, (schedule.rating,)):
        if not roles[0]:
            continue
        count = config.launch.of(roles[0]).count
        # Actors and servers always have a number; others where there are several.
        is_numbered = count > 1 or (
            schedule.serving != "" and roles[0] in (schedule.acting, schedule.serving)
        )
        workers += [
            Worker(
                name=f"{roles[0]}-{index}" if is_numbered else roles[0],
                roles=roles,
                index=index,
            )
            for index in range(count)
        ]
    return with_cores(config, workers, num_threads)


def with_cores(
    config: RunConfig, workers: Sequence[Worker], num_cores: int
) -> list[Worker]:
    """Returns processes of one machine with its cores divided among them.

    Those that always work divide the cores. Beside self-play the learner has every
    fourth, one at least, and self-play the others, in equal parts where it has several
    processes; where nobody plays the learner has all. In environments learner and
    inference have half of the cores each, or all where the other one is elsewhere, and
    each actor one thread; several inference servers divide what inference has. The
    other roles work now and then and have one thread. ``launch.roles`` changes any.

    Args:
        config: The run's.
        workers: Of the machine, perhaps not all of the run's.
        num_cores: Of the machine.
    """
    schedule = config.agent.schedule(config)
    here = [one.roles[0] for one in workers]
    parts: dict[str, int] = {}
    if schedule.serving:
        busy = (schedule.learning[0], schedule.serving)
        each = num_cores // max(1, sum(role in here for role in busy))
        parts = {role: each // max(1, here.count(role)) for role in busy}
    elif schedule.acting in here:
        learning = num_cores // _LEARNING_PART
        playing = num_cores - (max(1, learning) if "learn" in here else 0)
        each = playing // here.count(schedule.acting)
        parts = {"learn": learning, schedule.acting: each}
    else:
        parts = {"learn": num_cores}
    return [
        dataclasses.replace(
            one,
            num_threads=config.launch.of(one.roles[0]).num_cpus
            or max(1, parts.get(one.roles[0], 1)),
        )
        for one in workers
    ]
