"""The role processes of a run, and the division of cores among the processes."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from tengen.observe import Place
from tengen.roles import RunConfig

_LEARNING_PART = 4
_LEARN, _FOLLOW = "learn", "follow"

EVAL = "eval"
"""The role that plays a run's models against its target after training has ended."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """The description of a role process."""

    name: str
    """The process's name, such as ``actor-1``."""
    roles: tuple[str, ...]
    """The roles that the process hosts, in the order of their turns."""
    index: int = 0
    """The index of the process among those with the same roles."""
    num_threads: int = 1
    """The number of threads that each role of the process may use."""

    @property
    def given_as(self) -> str:
        """The role whose entry in ``launch.roles`` gives this process's resources."""
        return "learn" if self.is_follower else self.roles[0]

    def row(self, place: str, host: str) -> Place:
        """Returns the process's row in the hosts file, for ``tengen status``."""
        return Place(
            place=place,
            host=host,
            name=self.name,
            roles=self.roles,
            num_threads=self.num_threads,
        )

    @property
    def is_follower(self) -> bool:
        """Whether the process is a follower of the leading learner."""
        return self.roles == ("follow",)


def workers_in_turns(config: RunConfig, num_threads: int) -> list[Worker]:
    """Returns the role processes of a run whose roles take turns.

    Self-play has its own process, because the threads of torch would slow down OpenVINO
    in the learner's process. Roles that share experience in memory share a process.

    Args:
        config: The run's config.
        num_threads: Number of cores. Each turn uses all cores.
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
    """Returns the role processes of a run whose roles work concurrently.

    Args:
        config: The run's config.
        num_threads: Number of cores, which ``with_cores`` divides.
    """
    schedule = config.schedule
    # In environments, all learning roles share one process, because the learner holds
    # the experience and candidates become models without a match.
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
            # Learner 0 is the leader. The other learners have the role ``follow``.
            count = config.launch.of(_LEARN).count
            indices = range(1, count) if roles[0] == _FOLLOW else range(1)
        else:
            indices = range(config.launch.of(roles[0]).count)
        # Names of actors and servers always have an index, others only if needed.
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
    """Divides the cores of a machine among its processes; returns the processes.

    Only roles that are always busy divide the cores. In board games, learners get a
    quarter of the cores, at least one, and self-play gets the rest. Without self-play,
    learners get all cores. In environments, learners and inference get half of the
    cores each, or all if the other role is on another machine, and each actor has one
    thread. Processes with the same role divide the role's cores equally. All other
    roles are mostly idle and have one thread. ``launch.roles`` overrides these numbers.

    Args:
        config: The run's config.
        workers: The processes on the machine, which may be a part of the run's.
        num_cores: The number of cores of the machine.
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
    """Returns a config with ``count`` processes of role ``role``."""
    given = dataclasses.replace(config.launch.of(role), count=count)
    roles = {**config.launch.roles, role: given}
    launch = dataclasses.replace(config.launch, roles=roles)
    return dataclasses.replace(config, launch=launch)
