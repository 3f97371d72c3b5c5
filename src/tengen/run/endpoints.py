"""Where a run's services are: what its other processes find them by.

A service is in a folder of the memory file system, which processes of its host reach.
``RUN/endpoints/NAME.json`` says which host and which folder. The folder's name is made
of ``RUN/endpoints/id``, which is random and the run's own: a service that goes on after
a kill finds what the one before it left, and another run at the same path does not.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import platform
import re
import secrets
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tengen.errors import RunError
from tengen.run.layout import RunDirectory
from tengen.run.publish import publish_file, publish_json
from tengen.run.reading import read_object

__all__ = [
    "Endpoint",
    "read_endpoint",
    "remove_services",
    "service_folder",
    "write_endpoint",
]

_SCHEMA = 1
_MEMORY = Path("/dev/shm")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One service."""

    host: str
    """The name of its host."""
    folder: str
    """Where processes of that host reach it."""

    def reached(self, name: str) -> str:
        """Returns by what this process reaches the service.

        Args:
            name: The service's, for messages.

        Raises:
            RunError: It is on another host.
        """
        if self.host == platform.node():
            return self.folder
        raise RunError(
            f"{name} (of host {self.host}) listens for that host alone; start this "
            f"role there"
        )


def service_folder(run: RunDirectory, name: str) -> Path:
    """Returns the folder of a service of this host, whether it is there or not.

    Args:
        run: The run.
        name: The service's.
    """
    root = _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())
    return root / f"tengen-{os.getuid()}-{_id(run)}-{name}"


def remove_services(run: RunDirectory) -> None:
    """Removes what killed services of this host left, unless a learner is there.

    Args:
        run: The run; the caller holds its ``train`` lock.
    """
    if not run.endpoints.is_dir() or run.lock_holder("learn") is not None:
        return
    for path in run.endpoints.glob("*.json"):
        shutil.rmtree(service_folder(run, path.stem), ignore_errors=True)


def _id(run: RunDirectory) -> str:
    """Returns the run's random name, made by whoever asks first."""
    run.endpoints.mkdir(exist_ok=True)
    path = run.endpoints / "id"
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            found = path.read_text().strip()
            if re.fullmatch("[0-9a-f]{16}", found):
                return found
        with run.lock("endpoints", wait=True):
            if not path.exists():
                publish_file(path, secrets.token_hex(8).encode())
    raise RunError(f"{path} is damaged; remove it")


def write_endpoint(run: RunDirectory, name: str) -> None:
    """Publishes where a service of this process is.

    Args:
        run: The run.
        name: The service's.

    Raises:
        RunError: The disk refuses.
    """
    run.endpoints.mkdir(exist_ok=True)
    content = {
        "schema": _SCHEMA,
        "host": platform.node(),
        "folder": str(service_folder(run, name)),
    }
    publish_json(run.endpoints / f"{name}.json", content)


def read_endpoint(run: RunDirectory, name: str) -> Endpoint:
    """Returns where a service is, or last was.

    Raises:
        RunError: It never ran, or the file is damaged.
    """
    path = run.endpoints / f"{name}.json"
    if not path.exists():
        raise RunError(f"{name} (of {run.path}) is not there; start its role")
    content = read_object(path, name, schema=_SCHEMA, advice="start its role again")
    found = {one.name: content.get(one.name) for one in dataclasses.fields(Endpoint)}
    if not all(isinstance(value, str) for value in found.values()):
        raise RunError(f"{name} ({path}) is damaged; start its role again")
    return Endpoint(**{key: str(value) for key, value in found.items()})
