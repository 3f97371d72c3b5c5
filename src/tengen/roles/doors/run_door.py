"""The service of a run directory, for roles on hosts that do not have it."""

from __future__ import annotations

import threading
from contextlib import ExitStack

from tengen.observe.status import read_status
from tengen.remote import RUN, RunService
from tengen.roles.config import RunConfig
from tengen.roles.doors import RUN_SERVICE, Doors
from tengen.run import RunDirectory
from tengen.transport import Server

__all__ = ["open_run_door"]

_LAST_S = 15.0


def open_run_door(
    config: RunConfig, run: RunDirectory, stop: threading.Event
) -> ExitStack:
    """Serves the run to mirrors where ``launch.listen`` says so; does not block.

    Args:
        config: The run's.
        run: The run; the caller is its learner, so that there is only one such service.
        stop: Set when the run ends.

    Returns:
        A stack whose ``close`` ends the service; it is empty where nothing listens.
        When the run ends, mirrors have some seconds to send what they have.

    Raises:
        UsageError: The address cannot be used.
        RunError: A record of a mirror is damaged, or the disk refuses.
    """
    doors = Doors(config.launch, run, RUN_SERVICE)
    ending = ExitStack()
    if doors.net is None:
        return ending
    with ExitStack() as failing:
        listener = doors.net.open(RUN)
        failing.callback(listener.close)
        service = RunService(
            run, config.task, status=lambda: read_status(run), say=_say
        )
        failing.callback(service.close)
        server = Server(listener, service.service)
        failing.pop_all()
    ending.callback(service.close)
    ending.callback(server.close)

    def wait() -> None:
        if stop.is_set():
            service.wait_for_mirrors(_LAST_S)

    ending.callback(wait)
    doors.publish()
    return ending


def _say(text: str) -> None:
    print(f"learn: {text}", flush=True)
