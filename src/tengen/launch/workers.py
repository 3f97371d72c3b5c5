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

    @property
    def given_as(self) -> str:
        """The role whose place in ``launch.roles`` says what it is given."""
        return "learn" if self.is_follower else self.roles[0]

    @property
    def is_follower(self) -> bool:
        """Whether it is a learner that follows another one."""
        return self.roles == ("follow",)


def workers_at_once(config: RunConfig, num_threads: int) -> list[Worker]:
    """Returns the processes of a run.

    Those that always work divide the cores. In self-play the learner has every fourth,
    one at least, and self-play the others; where nobody plays the learner has all. In
    environments learner and inference have half of the cores each, and each actor one
    thread. The other roles work now and then and have one thread. ``launch.roles``
    changes any. Learners beside the first, of role ``follow`` and named ``learn-1`` and
    so on, divide the learner's cores with it.

    Args:
        config: The run's.
        num_threads: Cores to use.
    """
    schedule = config.agent.schedule(config)
    workers: list[Worker] = []

    num_learners = config.launch.of("learn").count

    def add_followers(threads: int) -> None:
        given = config.launch.of("learn")
        workers.extend(
            Worker(
                name=f"learn-{index}",
                roles=("follow",),
                index=index,
                num_threads=given.num_cpus or threads,
            )
            for index in range(1, num_learners)
        )

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
        each = max(1, num_threads // 2 // num_learners)
        add(schedule.learning, each, 1)
        add_followers(each)
        add((schedule.serving,), max(1, num_threads // 2), 1)
        add((schedule.acting,), 1)
        return workers
    learning = num_threads
    if schedule.acting:
        learning = max(1, num_threads // _LEARNING_PART)
        add((schedule.acting,), max(1, num_threads - learning), 1)
    each = max(1, learning // num_learners)
    for role in schedule.learning:
        add((role,), each if role == "learn" else 1, 1)
    add_followers(each)
    if schedule.rating:
        add((schedule.rating,), 1, 1)
    return workers
