"""Which processes a run has where all roles work at once, and who has which cores."""

from __future__ import annotations

from dataclasses import dataclass

from tengen.roles import RunConfig

__all__ = ["Worker", "workers_at_once"]

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

    Those that always work divide the cores. In self-play the learner has every fourth,
    one at least, and self-play the others; where nobody plays the learner has all. In
    environments learner and inference have half of the cores each, and each actor one
    thread; several inference servers divide their half. The other roles work now and
    then and have one thread. ``launch.roles`` changes any.

    Args:
        config: The run's.
        num_threads: Cores to use.
    """
    schedule = config.agent.schedule(config)
    workers: list[Worker] = []

    def add(roles: tuple[str, ...], threads: int, count: int | None = None) -> None:
        given = config.launch.of(roles[0])
        for index in range(given.count if count is None else count):
            workers.append(
                Worker(
                    name=roles[0] if count is not None else f"{roles[0]}-{index}",
                    roles=roles,
                    index=index,
                    num_threads=given.num_cpus or threads,
                )
            )

    if schedule.serving:
        # The experience is the learner's; candidates are models at once.
        add(schedule.learning, max(1, num_threads // 2), 1)
        num_servers = config.launch.of(schedule.serving).count
        add((schedule.serving,), max(1, num_threads // 2 // num_servers))
        add((schedule.acting,), 1)
        return workers
    learning = num_threads
    if schedule.acting:
        learning = max(1, num_threads // _LEARNING_PART)
        add((schedule.acting,), max(1, num_threads - learning), 1)
    for role in schedule.learning:
        add((role,), learning if role == "learn" else 1, 1)
    if schedule.rating:
        add((schedule.rating,), 1, 1)
    return workers
