"""Endpoints: files with which processes of a run find the run's services.

A service has a folder in the memory file system for processes of its host and, if the
run's config requests one, an address for processes of other hosts.
``RUN/endpoints/NAME.json`` has both. The folder's name is derived from
``RUN/endpoints/id-NUMBER``, which is random and unique to the run. So a service that is
restarted after a kill finds the killed service's files, but a service of a copy of the
run, or of another run at the same path, does not. ``RUN/endpoints/token``, readable
only by the run's user, has the token that network clients must send.
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

_SCHEMA = 3
_MEMORY = Path("/dev/shm")
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, kw_only=True)
class Endpoint:
    """The folder and address of one running service, for its clients."""

    host: str
    """The name of the service's host, for display."""
    memory: str
    """The ID of the memory file system that contains ``folder``. It differs between
    hosts, and between containers that do not share a memory file system."""
    folder: str
    """The service's folder, for processes with the same memory file system."""
    address: str
    """``tcp://HOST:PORT``, for all other processes; empty if network access is off."""
    fingerprint: str
    """SHA-256 of the service's certificate in hex; empty without a certificate."""
    run: str
    """The ID of the service's run; a copy of the run has a different ID."""

    def reached(self, name: str) -> str:
        """Returns the folder or address that this process uses to reach the service.

        Args:
            name: The service's name, for messages.

        Raises:
            RunError: The service is on another host and accepts only local clients.
        """
        if self.memory == _memory_id():
            return self.folder
        if self.address:
            return self.address
        raise RunError(
            f"{name} (of host {self.host}) listens only on that host; start this role "
            "there, or the other roles with launch.listen=HOST:PORT"
        )


def service_folder(run: RunDirectory, name: str) -> Path:
    """Returns the folder of a service on this host, whether or not it exists.

    Args:
        run: The run.
        name: Name of the service.
    """
    return memory_root() / f"tengen-{os.getuid()}-{run_identity(run)}-{name}"


def run_token(run: RunDirectory) -> str:
    """Returns the token that TCP clients of the run's services must send.

    Raises:
        RunError: The file is damaged, or this user may not read it.
    """
    return _random(run, "token", 16, 0o600)


def remove_services(run: RunDirectory) -> None:
    """Removes the folders of killed services of this host, unless a learner is running.

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
    """Publishes the endpoint of a service of this process.

    Args:
        run: The run.
        name: Name of the service.
        address: See ``Endpoint``.
        fingerprint: See ``Endpoint``.

    Raises:
        RunError: The endpoint cannot be written.
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
    """Returns the newest endpoint of a service, which may have ended.

    Raises:
        RunError: The service never ran, or the endpoint's file is damaged.
    """
    path = run.endpoints / f"{name}.json"
    if not path.exists():
        raise RunError(f"{name} (of {run.path}) is not running; start its role")
    content = read_object(path, name, schema=_SCHEMA, advice="restart its role")
    found = {one.name: content.get(one.name) for one in dataclasses.fields(Endpoint)}
    if not all(isinstance(value, str) for value in found.values()):
        raise RunError(f"{name} ({path}) is damaged; restart its role")
    if found["run"] != run_identity(run):
        raise RunError(
            f"{name} (of {run.path}) is not running; its endpoint is from the run that "
            "this run was copied from; start its role"
        )
    return Endpoint(**{key: str(value) for key, value in found.items()})


def memory_root() -> Path:
    """Returns the directory for service folders, in shared memory if possible."""
    return _MEMORY if os.access(_MEMORY, os.W_OK) else Path(tempfile.gettempdir())


def _memory_id() -> str:
    """Returns the ID of the memory file system that this process uses."""
    boot = platform.node()
    with contextlib.suppress(OSError):
        boot = _BOOT.read_text().strip()
    return f"{boot}/{memory_root().stat().st_dev}"


def run_identity(run: RunDirectory) -> str:
    """Returns the run's ID. A copy of the run gets a different ID.

    Raises:
        RunError: The file with the ID is damaged or cannot be written.
    """
    run.endpoints.mkdir(exist_ok=True)
    return _random(run, f"id-{run.endpoints.stat().st_ino}", 8, 0o666)


def _random(run: RunDirectory, name: str, num_bytes: int, mode: int) -> str:
    """Returns the random hex string in the file ``name``; the first call creates it."""
    run.endpoints.mkdir(exist_ok=True)
    path = run.endpoints / name
    for _ in range(2):
        with contextlib.suppress(FileNotFoundError):
            try:
                found = path.read_text().strip()
            except PermissionError as error:
                raise RunError(
                    f"{path} belongs to another user; start this role as that user"
                ) from error
            if re.fullmatch(f"[0-9a-f]{{{2 * num_bytes}}}", found):
                return found
        with run.lock("endpoints", wait=True):
            if not path.exists():
                publish_file(path, secrets.token_hex(num_bytes).encode(), mode)
    raise RunError(f"{path} is damaged; remove it")
