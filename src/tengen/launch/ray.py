"""The Ray launcher: every role at once, each beside an actor of a Ray cluster.

An actor holds one process with roles, as the local launcher starts them, and passes
messages to and from it: so the roles have an environment of their own, log
into the run, and end when the actor does. A host needs the run directory under the same
path, and tengen, installed or at the same path.

The cluster is that of Ray's own variables (``RAY_ADDRESS``), or the one that runs on
this machine, or one of this machine for the call.

Source: Ray 2, "Actors" (concurrency groups of threaded actors, fault tolerance) and
"Resources" of its documentation.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import ray

from tengen.launch.at_once import run_at_once
from tengen.launch.budget import Budget
from tengen.launch.journal import RunJournal
from tengen.launch.process import RoleProcess, child_arguments
from tengen.launch.protocol import log_name
from tengen.roles import RoleResources, RunConfig, StopListener
from tengen.run import RunDirectory

__all__ = ["RayLauncher", "run_ray"]

_PATIENCE_S = 10.0
"""After which the view tells that a cluster has not begun an actor."""


def run_ray(
    config: RunConfig,
    run: RunDirectory,
    budget: Budget,
    journal: RunJournal,
    stop: StopListener,
    *,
    num_threads: int,
) -> None:
    """Trains by actors of a Ray cluster; see ``run_at_once``."""
    is_ours = not ray.is_initialized()
    if is_ours:
        # A cluster that this call begins reports no usage.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        with _signals_kept():
            ray.init(
                log_to_driver=False, include_dashboard=False, logging_level="ERROR"
            )
    try:
        launcher = RayLauncher(run, config.task)
        run_at_once(
            launcher, config, run, budget, journal, stop, num_threads=num_threads
        )
    finally:
        if is_ours:
            ray.shutdown()


class RayLauncher:
    """Starts actors of the cluster that this process is connected to; see ``Launcher``.

    Args:
        run: The run, in a folder that every host of the cluster has.
        task: The run's, as the user typed it.
    """

    def __init__(self, run: RunDirectory, task: str) -> None:
        self._run = run
        self._task = task
        self._actor_class = _actor_class()

    def start(
        self,
        roles: tuple[str, ...],
        num_threads: int,
        resources: RoleResources,
        index: int = 0,
    ) -> RoleProcess:
        """See ``Launcher.start``; the actor begins with its first turn."""
        arguments = child_arguments(
            self._run, roles, num_threads, self._task, index, at_once=True
        )
        options = self._actor_class.options(
            num_cpus=resources.num_cpus,
            num_gpus=resources.num_gpus,
            scheduling_strategy="SPREAD",
            # Supervised here: a turn is redone, not a call.
            max_restarts=0,
        )

        def start() -> _RayChild:
            actor = options.remote(arguments, _search_path(), os.getcwd())
            return _RayChild(actor)

        logs = f"{self._run.logs / log_name(roles, index)} and Ray's logs"
        return RoleProcess(roles, start, logs)


class _RayChild:
    """A ``Child`` beside an actor.

    Args:
        actor: It has the process.
    """

    def __init__(self, actor: Any) -> None:
        self._actor = actor
        self._how = ""
        self._hello = actor.write.remote(b"")

    def send(self, message: dict[str, Any]) -> None:
        if "stop" in message and not self._is_there(0.0):
            ray.kill(self._actor)  # nothing has begun
            return
        # Not waited for: the actor may be gone.
        self._actor.write.remote(json.dumps(message).encode() + b"\n")

    def receive(self) -> dict[str, Any] | None:
        if not self._is_there(_PATIENCE_S):
            return {"progress": {"stage": "waiting for the cluster's resources"}}
        line = self._answer(self._actor.read.remote, b"")
        if not line.endswith(b"\n"):
            return None
        message: dict[str, Any] = json.loads(line)
        return message

    def kill(self) -> None:
        self._actor.kill.remote()

    def end(self, timeout_s: float) -> str:
        code = self._answer(lambda: self._actor.end.remote(timeout_s), None)
        ray.kill(self._actor)
        if code is None:
            return self._how
        return f"signal {-code}" if code < 0 else f"exit code {code}"

    def _is_there(self, timeout_s: float) -> bool:
        """Returns whether the actor has begun, or failed to."""
        done, _ = ray.wait([self._hello], timeout=timeout_s)
        return bool(done)

    def _answer(self, ask: Callable[[], Any], otherwise: Any) -> Any:
        """Returns what the actor answers, or ``otherwise`` where it is gone."""
        try:
            return ray.get(ask())
        except ray.exceptions.RayError as error:
            self._how = f"its actor's {type(error).__name__}"
            return otherwise


def _actor_class() -> Any:
    """Returns the actor, which travels by value.

    Ray puts the working directory into its workers' search path, so the actor imports
    nothing but what a worker has: its process, which looks there for no other module
    than a typed game, imports tengen.
    """

    class Holder:
        """Has a process with roles. A thread for each of its methods."""

        def __init__(
            self, arguments: list[str], search_path: list[str], directory: str
        ) -> None:
            import os
            import subprocess
            import sys

            paths = [*search_path, *filter(None, [os.environ.get("PYTHONPATH")])]
            self._process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
                # A typed game may be there.
                cwd=directory if os.path.isdir(directory) else None,
            )

        @ray.method(concurrency_group="write")  # type: ignore[untyped-decorator]
        def write(self, line: bytes) -> None:
            stdin = self._process.stdin
            try:
                stdin.write(line)  # type: ignore[union-attr]
                stdin.flush()  # type: ignore[union-attr]
            except (BrokenPipeError, ValueError):
                pass  # its end is read

        @ray.method(concurrency_group="read")  # type: ignore[untyped-decorator]
        def read(self) -> bytes:
            return self._process.stdout.readline()  # type: ignore[union-attr]

        @ray.method(concurrency_group="end")  # type: ignore[untyped-decorator]
        def kill(self) -> None:
            self._process.kill()

        @ray.method(concurrency_group="end")  # type: ignore[untyped-decorator]
        def end(self, timeout_s: float) -> int:
            import subprocess

            try:
                return self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._process.kill()
                return self._process.wait()

    groups = {"write": 1, "read": 1, "end": 1}
    return ray.remote(concurrency_groups=groups)(Holder)


def _search_path() -> list[str]:
    """Returns where tengen is, and the folders that the user names."""
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    home = Path(__file__).resolve().parents[2]
    return [str(home), *(os.path.abspath(folder) for folder in named if folder)]


@contextlib.contextmanager
def _signals_kept() -> Iterator[None]:
    """Keeps how this process takes signals: ``ray.init`` would end it by SIGTERM."""
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
            signal.signal(number, handler)
