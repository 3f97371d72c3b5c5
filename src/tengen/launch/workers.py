"""Which processes a run has, and each one's cores."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.roles import RunConfig

__all__ = [
    "EVAL",
    "Worker",
    "with_cores",
    "with_count",
    "workers_at_once",
    "workers_in_turns",
]

_LEARNING_PART = 4
_LEARN, _FOLLOW = "learn", "follow"

EVAL = "eval"
"""The role that plays a run's models against its target, once training has ended."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """One process."""

    name: str
    """The process's name, such as ``actor-1``."""
    roles: tuple[str, ...]
    """The roles that it hosts, in the order of their turns."""
    index: int = 0
    """Which of several with these roles, from 0."""
    num_threads: int = 1
    """Threads that each of its roles may use."""

    @property
    def given_as(self) -> str:
        """The role whose entry in ``launch.roles`` holds for the process."""
        return "learn" if self.is_follower else self.roles[0]

    @property
    def is_follower(self) -> bool:
        """Whether it is a learner that follows another one."""
        return self.roles == ("follow",)


def workers_in_turns(config: RunConfig, num_threads: int) -> list[Worker]:
    """Returns the processes of a run whose roles take turns.

    Torch in the learner's threads would slow OpenVINO in the same process, so self-play
    has its own process. Roles that share experience share a process.

    Args:
        config: The run's.
        num_threads: Cores to use, all of them in each turn.
    """
    schedule = config.schedule
    playing = tuple(role for role in (schedule.acting, schedule.rating) if role)
    groups = [playing, schedule.learning]
    if schedule.is_shared:
        groups = [(*playing, *schedule.learning)]
    return [
        Worker(name=roles[0], roles=roles, num_threads=num_threads)
        for roles in groups
        if roles
    ]


def workers_at_once(config: RunConfig, num_threads: int) -> list[Worker]:
    """Returns the processes of a run whose roles all work at once.

    Args:
        config: The run's.
        num_threads: Cores to use, divided as ``with_cores`` says.
    """
    schedule = config.schedule
    # In environments the learner has the experience, and candidates become models at
    # once.
    learning = [schedule.learning]
    if not schedule.serving:
        learning = [(role,) for role in schedule.learning]
    groups = [*learning, (_FOLLOW,), (schedule.serving,)]
    acting = (schedule.acting,)
    groups = [*groups, acting] if schedule.serving else [acting, *groups]
    workers = []
    for roles in (*groups, (schedule.rating,)):
        if not roles[0]:
            continue
        if roles[0] in (_LEARN, _FOLLOW):
            # The first learner leads; the others have the role ``follow``.
            count = config.launch.of(_LEARN).count
            indices = range(1, count) if roles[0] == _FOLLOW else range(1)
        else:
            indices = range(config.launch.of(roles[0]).count)
        # Actors and servers always have a number; others if there are several.
        is_numbered = len(indices) > 1 or (
            schedule.serving != "" and roles[0] in (schedule.acting, schedule.serving)
        )
        for index in indices:
            name = f"{roles[0]}-{index}" if is_numbered else roles[0]
            if roles[0] == _FOLLOW:
                name = f"{_LEARN}-{index}"
            workers.append(Worker(name=name, roles=roles, index=index))
    return with_cores(config, workers, num_threads)


def with_cores(
    config: RunConfig, workers: Sequence[Worker], num_cores: int
) -> list[Worker]:
    """Returns processes of one machine with its cores divided among them.

    Processes that always work divide the cores. In board games learners have a quarter
    of the cores, at least one, and self-play has the rest, in equal parts for several
    processes; without self-play learners have all. In environments learners and
    inference have half of the cores each, or all if the other ones are elsewhere, and
    each actor has one thread. Several learners, and several inference servers, divide
    their part. The other roles work now and then and have one thread. ``launch.roles``
    overrides each of these numbers.

    Args:
        config: The run's.
        workers: The processes of the machine, which may not be all of the run's.
        num_cores: Of the machine.
    """
    schedule = config.schedule
    given = [one.given_as for one in workers]
    parts: dict[str, int] = {}
    if schedule.serving:
        busy = (_LEARN, schedule.serving)
        each = num_cores // max(1, sum(role in given for role in busy))
        parts = {role: each // max(1, given.count(role)) for role in busy}
    elif schedule.acting in given:
        learning = num_cores // _LEARNING_PART
        playing = num_cores - (max(1, learning) if _LEARN in given else 0)
        each = playing // given.count(schedule.acting)
        num_learners = max(1, given.count(_LEARN))
        parts = {_LEARN: learning // num_learners, schedule.acting: each}
    else:
        parts = {_LEARN: num_cores // max(1, given.count(_LEARN))}
    return [
        dataclasses.replace(
            one,
            num_threads=config.launch.of(role).num_cpus or max(1, parts.get(role, 1)),
        )
        for one, role in zip(workers, given, strict=True)
    ]


def with_count(config: RunConfig, role: str, count: int) -> RunConfig:
    """Returns a config whose role has so many processes."""
    given = dataclasses.replace(config.launch.of(role), count=count)
    roles = {**config.launch.roles, role: given}
    launch = dataclasses.replace(config.launch, roles=roles)
    return dataclasses.replace(config, launch=launch)
