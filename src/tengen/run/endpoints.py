"""Where a run's services are: what its other processes find them by.

A service is in a folder of the memory file system, which processes of its host reach,
and, where the run's config says so, on an address that other hosts reach.
``RUN/endpoints/NAME.json`` has both. The folder's name is made of
``RUN/endpoints/id-NUMBER``, which is random and the run's own: a service that goes on
after a kill finds what the one before it left, and another run at the same path does
not, nor does a copy of the run. ``RUN/endpoints/token``, which its user alone may read,
is what clients by an address must know.
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
    "memory_root",
    "read_endpoint",
    "remove_services",
    "run_identity",
    "run_token",
    "service_folder",
    "write_endpoint",
]

_SCHEMA = 3
_MEMORY = Path("/dev/shm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """One service."""

    host: str
    """The name of its host, for people."""
    memory: str
    """Which memory file system its folder is in: two hosts, or two containers that do
    not share theirs, have different ones."""
    folder: str
    """Where processes that have this memory file system reach it."""
    address: str
    """``tcp://HOST:PORT`` where other processes reach it; empty: nowhere."""
    fingerprint: str
    """SHA-256 in hex of its certificate; empty: it has none."""
    run: str
    """The id of its run, which a copy of the run has not."""

    def reached(self, name: str) -> str:
        """Returns by what this process reaches the service: a folder or an address.

        Args:
            name: The service's, for messages.

        Raises:
            RunError: It is on another host, and listens for that one alone.
        """
        if self.memory == _memory_id():
            return self.folder
        if self.address:
            return self.address
        raise RunError(
            f"{name} (of host {self.host}) listens for that host alone; start this "
            f"role there, or the others with launch.listen=HOST:PORT"
        )


def service_folder(run: RunDirectory, name: str) -> Path:
    """Returns the folder of a service of this host, whether it is there or not.

    Args:
        run: The run.
        name: The service's.
    """
    return memory_root() / f"tengen-{os.getuid()}-{run_identity(run)}-{name}"


def run_token(run: RunDirectory) -> str:
    """Returns what clients of the run's services must know where they come by TCP.

    Raises:
        RunError: The file is damaged, or not this user's to read.
    """
    return _random(run, "token", 16, 0o600)


def remove_services(run: RunDirectory) -> None:
    """Removes what killed services of this host left, unless a learner is there.

    Args:
        run: The run; the caller holds its ``train`` lock.
    """
    if not run.endpoints.is_dir() or run.lock_holder("learn") is not None:
        return
    for path in run.endpoints.glob("*.json"):
        shutil.rmtree(service_folder(run, path.stem), ignore_errors=True)


def write_endpoint(
    run: RunDirectory, name: str, address: str = "", fingerprint: str = ""
) -> None:
    """Publishes where a service of this process is.

    Args:
        run: The run.
        name: The service's.
        address: See ``Endpoint``.
        fingerprint: See ``Endpoint``.

    Raises:
        RunError: The disk refuses.
    """
    run.endpoints.mkdir(exist_ok=True)
    endpoint = Endpoint(
        host=platform.node(),
        memory=_memory_id(),
        folder=str(service_folder(run, name)),
        address=address,
        fingerprint=fingerprint,
        run=run_identity(run),
    )
    content = {"schema": _SCHEMA, **dataclasses.asdict(endpoint)}
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
    if found["run"] != run_identity(run):
        raise RunError(
            f"{name} (of {run.path}) is not there, but in the run that this one is a "
            f"copy of; start its role"
        )
    return Endpoint(**{key: str(value) for key, value in found.items()})


def memory_root() -> Path:
    """Returns the memory file system in which services have their folders."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


def _memory_id() -> str:
    """Returns what differs where a folder of ``memory_root`` is not the same one."""
    boot = platform.node()
    with contextlib.suppress(OSError):
        boot = _BOOT.read_text().strip()
    return f"{boot}/{memory_root().stat().st_dev}"


def run_identity(run: RunDirectory) -> str:
    """Returns the run's id. It is of its folder, so that a copy gets another one.

    Raises:
        RunError: The file is damaged, or the disk refuses.
    """
    run.endpoints.mkdir(exist_ok=True)
    return _random(run, f"id-{run.endpoints.stat().st_ino}", 8, 0o666)


def _random(run: RunDirectory, name: str, num_bytes: int, mode: int) -> str:
    """Returns a random text of the run's, made by whoever asks first."""
    run.endpoints.mkdir(exist_ok=True)
    path = run.endpoints / name
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            try:
                found = path.read_text().strip()
            except PermissionError as error:
                raise RunError(
                    f"{path} is another user's; start this role as that user"
                ) from error
            if re.fullmatch(f"[0-9a-f]{{{2 * num_bytes}}}", found):
                return found
        with run.lock("endpoints", wait=True):
            if not path.exists():
                publish_file(path, secrets.token_hex(num_bytes).encode(), mode)
    raise RunError(f"{path} is damaged; remove it")
