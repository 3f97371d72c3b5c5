"""The connection of this process to a Ray cluster."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ray

from tengen.errors import UsageError
from tengen.roles import RunConfig

_CONNECT_S = 5.0
_ANSWER_S = 60.0
"""Time limit for a cluster's response, in seconds; Ray itself would retry forever."""
_ASK = """
import sys
from ray._raylet import GcsClient
print("asking", flush=True)
try:
    GcsClient(address=sys.argv[1])
except Exception as error:
    sys.exit(" ".join(str(error).split()))
"""
"""Python code that checks a cluster's address, for a process that can be killed."""
_OURS = threading.Event()
"""Set while this process has a connection to Ray that ``connect`` opened."""


def connect(config: RunConfig) -> None:
    """Connects this process to the config's Ray cluster, unless it is connected.

    Raises:
        UsageError: The cluster cannot be reached, or its version of Ray or Python
            differs from this process's version.
    """
    if ray.is_initialized():
        return
    given = config.launch.address or os.environ.get("RAY_ADDRESS", "")
    where = f"launch.address ({given or 'none, the cluster of this host'})"
    if given and given not in ("auto", "local"):
        _check_address(given, where)
    if not given and not _is_any_here():
        given = "local"
    # A cluster that this call starts sends no usage statistics. Roles run at normal
    # priority as with other launchers, because Ray's default for workers and their
    # child processes is nice 15.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")
    runtime_env = _runtime_env(config.launch.runtime_env)
    try:
        with _signals_kept():
            ray.init(
                address=given or None,
                log_to_driver=False,
                include_dashboard=None if given not in ("", "local") else False,
                logging_level=logging.ERROR,
                runtime_env=runtime_env,
            )
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UsageError(
            f"{where} cannot be reached, {first_line(error)}; correct it, or start the "
            "cluster"
        ) from None
    _OURS.set()


def disconnect() -> None:
    """Closes the connection of ``connect``, and ends a cluster that it started."""
    if _OURS.is_set():
        _OURS.clear()
        ray.shutdown()


def _is_any_here() -> bool:
    """Returns whether the cluster started most recently on this host still responds.

    Ray itself would wait for a dead cluster if the cluster's address is in a file.
    """
    try:
        known = Path("/tmp/ray/ray_current_cluster").read_text().strip()
        host, _, port = known.rpartition(":")
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, ValueError, OverflowError):
        return False
    return not _lack(known)


def _check_address(given: str, where: str) -> None:
    """Raises UsageError for a wrong address, for which Ray would wait a long time."""
    host, _, port = given.rpartition(":")
    if "://" in given or not host or not port.isdecimal():
        raise UsageError(
            f"{where} must be HOST:PORT of the cluster's head, or auto; correct it"
        )
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise UsageError(
            f"{where} does not answer, {error}; correct it, or start the cluster there"
        ) from None
    if lack := _lack(given):
        raise UsageError(
            f"{where} is not a Ray cluster, {lack}; give the port of its head, by "
            "default 6379, or start the cluster there"
        )


def _lack(address: str) -> str:
    """Returns why the server at ``address`` is not a Ray cluster; "" if it is one."""
    asking = subprocess.Popen(
        [sys.executable, "-P", "-c", _ASK, address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert asking.stdout is not None
    with asking:
        # Start the timeout after the import of Ray, which is slow on a busy host.
        asking.stdout.readline()
        try:
            _, errors = asking.communicate(timeout=_ANSWER_S)
        except subprocess.TimeoutExpired:
            asking.kill()
            return f"no answer within {_ANSWER_S:g} s"
    lines = errors.strip().splitlines() or ["it ended without output"]
    return "" if asking.returncode == 0 else lines[-1].rstrip(".:")


def _runtime_env(path: str) -> dict[str, Any] | None:
    if not path:
        return None
    try:
        found = json.loads(Path(path).read_text())
    except (OSError, ValueError) as error:
        raise UsageError(
            f"launch.runtime_env ({path}) cannot be read, {error}; name a JSON file"
        ) from None
    if not isinstance(found, dict):
        raise UsageError(f"launch.runtime_env ({path}) must be a JSON object; fix it")
    return found


def first_line(error: Exception) -> str:
    """Returns the first line of an error message, without the final full stop."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0].rstrip(".:")


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Restores this process's signal handlers, which ``ray.init`` replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    kept = {
        number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for number, handler in kept.items():
            if handler is not None:  # None: set by C code, Python cannot restore it
                signal.signal(number, handler)
