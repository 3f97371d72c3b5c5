"""Whether the doors of a run can be opened on this host, before anything is started."""

from __future__ import annotations

import secrets
from pathlib import Path

from tengen.errors import UsageError
from tengen.mirror import RUN
from tengen.roles.config import RunConfig
from tengen.roles.doors import (
    LEARNERS,
    RUN_SERVICE,
    STORE,
    address_of,
    server_name,
)
from tengen.transport import NetDoor

__all__ = ["check_doors"]


def check_doors(config: RunConfig) -> None:
    """Makes sure that roles of this host can let others in at ``launch.listen``.

    Every door is opened for a moment: its name is looked up, its port taken, and the
    certificate read.

    Args:
        config: The run's; without ``launch.listen`` there is nothing to look at.

    Raises:
        UsageError: A door cannot be opened; the message names its port and whose it is.
    """
    launch = config.launch
    if not launch.listen:
        return
    for name in _services(config):
        pem, key = launch.certificate_file, launch.key_file
        door = NetDoor(
            listen=str(address_of(launch, name)),
            # The run's own need not be there yet.
            token=secrets.token_hex(),
            certificate_file=Path(pem) if pem else None,
            key_file=Path(key) if key else None,
        )
        try:
            door.open(RUN).close()
        except UsageError as error:
            raise UsageError(
                f"launch.listen ({launch.listen}) cannot let others in to {name}, "
                f"{error}"
            ) from None


def _services(config: RunConfig) -> list[str]:
    """Returns what a run serves to other hosts where all its roles work at once."""
    schedule = config.agent.schedule(config)
    services = [STORE] if schedule.is_shared else []
    if schedule.serving:
        count = config.launch.of(schedule.serving).count
        services += [server_name(index) for index in range(count)]
    if config.launch.of("learn").count > 1:
        services.append(LEARNERS)
    return [*services, RUN_SERVICE]
