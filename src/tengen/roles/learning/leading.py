"""The services that the leading learner offers to its followers and to mirrors."""

from __future__ import annotations

import platform
import threading
from contextlib import ExitStack

from tengen.experience import Experience
from tengen.learners.team import Team, gpu_name
from tengen.observe.status import read_status
from tengen.remote import RUN, RunService
from tengen.roles.config import RunConfig
from tengen.roles.devices import learner_device
from tengen.roles.doors import ANYWHERE, LEARNERS, RUN_SERVICE, Doors
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory
from tengen.transport import NetAddress, Server

_LOOPBACK = "127.0.0.1"
_LAST_S = 15.0
"""Time limit in seconds for mirrors to send their remaining data when the run ends."""


def lead(
    config: RunConfig, run: RunDirectory, context: RoleContext, experience: Experience
) -> Leading | None:
    """Starts the leading learner's service for followers; None without followers.

    Args:
        config: The run's config.
        run: The run.
        context: The learner's context. If roles take turns, there are no followers.
        experience: The learner's experience.

    Raises:
        UsageError: ``launch.listen`` cannot be used, or another process listens there.
    """
    count = config.launch.of("learn").count
    if count == 1 or not context.at_once:
        return None
    return Leading(config, run, context, experience, count)


class Leading:
    """A service that accepts followers into the leading learner's team.

    Attributes:
        team: The learners that compute each learner step together.
    """

    def __init__(
        self,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
        experience: Experience,
        count: int,
    ) -> None:
        self._doors = Doors(config.launch, run, LEARNERS)
        host = _LOOPBACK
        if self._doors.net is not None:
            host = NetAddress.parse(self._doors.net.listen).host
            if host in ANYWHERE:
                # Followers connect to this host, so it needs a name or an address.
                host = platform.node()
        self.team = Team(
            experience,
            count,
            host=host,
            gpu=gpu_name(learner_device(config)),
            stop=context.stop,
            say=context.say,
        )
        self._doors.open(self.team.service)

    def close(self) -> None:
        """Disconnects all followers and stops listening. A second call does nothing."""
        self._doors.close()
        self.team.close()


def open_run_door(
    config: RunConfig, run: RunDirectory, stop: threading.Event
) -> ExitStack:
    """Starts to serve the run directory to mirrors if ``launch.listen`` is set.

    Args:
        config: The run's config.
        run: The run. The caller is its learner, so there is only one such service.
        stop: An event that is set when the run must end.

    Returns:
        A stack whose ``close`` ends the service; empty without ``launch.listen``. If
        ``stop`` is set, ``close`` first waits some seconds for the mirrors' data.

    Raises:
        UsageError: The address cannot be used.
        RunError: A record of a mirror is damaged, or writing failed.
    """
    doors = Doors(config.launch, run, RUN_SERVICE)
    with ExitStack() as failing:
        if doors.net is not None:
            listener = doors.net.open(RUN)
            failing.callback(listener.close)
            service = RunService(
                run, config.task, status=lambda: read_status(run), say=_say
            )
            failing.callback(service.close)
            failing.callback(Server(listener, service.service).close)
            doors.publish()

            def wait() -> None:
                if stop.is_set():
                    service.wait_for_mirrors(_LAST_S)

            failing.callback(wait)
        ending = failing.pop_all()
    return ending


def _say(text: str) -> None:
    print(f"learn: {text}", flush=True)
