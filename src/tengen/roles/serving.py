"""Role ``inference``: evaluates the newest model for actors in other processes."""

from __future__ import annotations

import dataclasses
import platform
import threading
import time

from tengen.agents import EnvironmentAgent
from tengen.envs import env_spec
from tengen.inference import InferenceConfig, open_backend, parse_devices
from tengen.inference.central import MAX_ROWS, InferenceServer, serve_rows
from tengen.roles.config import RunConfig
from tengen.roles.doors import Doors, server_name
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import RunDirectory

_LOOK_S = 0.005
_TURN_S = 1.0


class InferenceRole(Role):
    """Evaluates actors' rows from creation until ``close``, also between turns.

    A turn polls for new models and reports the evaluations since the previous report.

    If there are several servers, the actors' groups are distributed over them, and the
    groups of a lost server switch to the others. Each server has its share of the GPUs,
    and all use the same models.

    Raises:
        UsageError: The run has no environments, another process has this role, or this
            host lacks a GPU.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        agent = EnvironmentAgent.of(config.agent, "inference")
        name = server_name(context.index)
        super().__init__(config, run, context, name)
        self._part = _part_of(config, context.index)
        self._model: int | None = None
        self._error: Exception | None = None
        num_actors = config.launch.of("actor").count
        num_each = agent.actor.num_envs * env_spec(config.task).num_agents
        num_rows = num_each * num_actors
        num_servers = config.launch.of("inference").count
        self._num_rows = num_rows
        self._num_groups = len(agent.actor.group_sizes()) * num_actors
        signature = config.signature
        # Capacity for the rows of all actors, because all other servers may be lost.
        self._max_rows = max(num_each, min(num_rows, MAX_ROWS))
        most_waiting = -(-num_rows // num_servers)
        self._server = InferenceServer(
            signature,
            max_rows=self._max_rows,
            min_rows=min(config.inference.min_rows, most_waiting, MAX_ROWS),
            max_wait_s=config.inference.max_wait_ms / 1000,
        )
        self._doors = Doors(config.launch, run, name)
        self._doors.open(serve_rows(self._server, signature))
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)
        self._thread.start()
        # The maximum number of concurrent sessions since the last report.
        self._most_sessions = 0
        self._told = self._server.stats
        self._told_s = time.monotonic()

    def turn(self) -> Report | None:
        """Polls for models for a second; returns a report, or None without a model."""
        if self._config.inference.has_auto:
            self.waits_for = "export has not chosen the backend yet"
            return None
        until = time.monotonic() + _TURN_S
        while time.monotonic() < until and not self._context.stop.is_set():
            if self._error is not None:
                raise self._error
            self._take_model()
            self._most_sessions = max(self._most_sessions, self._server.num_sessions)
            if self._model is None:
                return None
            self._context.stop.wait(_LOOK_S)
        self.waits_for = ""
        return self._report()

    def close(self) -> None:
        """Ends all sessions and releases the lock. A second call does nothing."""
        self._doors.close()
        self._server.stop()
        self._thread.join()
        super().close()

    def _serve(self) -> None:
        try:
            self._server.run()
        except Exception as error:
            self._error = error

    def _take_model(self) -> None:
        number = self._newest_model()
        if number is None or number == self._model:
            return
        try:
            directory = self._config.load_model(self._run.models.entry(number))
            with self._context.starting("compiling the network"):
                backend = open_backend(
                    directory.path, self._part, self._context.num_threads
                )
        except Exception:
            if self._run.models.entry(number).exists():
                raise
            return  # the model was removed meanwhile, because newer models exist
        self._server.set_model(backend, directory.meta.num_steps, number)
        self._model = number

    def _report(self) -> Report:
        now = self._server.stats
        now_s = time.monotonic()
        seconds = max(1e-9, now_s - self._told_s)
        before, self._told, self._told_s = self._told, now, now_s
        num_batches = now.num_batches - before.num_batches
        num_evaluations = now.num_evaluations - before.num_evaluations
        num_sessions = self._server.num_sessions
        # Batches have only the rows of this server's actors, so count only these.
        share = max(num_sessions, self._most_sessions) / self._num_groups
        self._most_sessions = num_sessions
        capacity = min(self._max_rows, max(1, round(self._num_rows * share)))
        return {
            "server": self._context.index,
            "host": platform.node(),
            "model": self._model,
            "num_sessions": num_sessions,
            "num_lost": now.num_lost - before.num_lost,
            "num_evaluations": num_evaluations,
            "batch_rows": num_evaluations / max(1, num_batches),
            "batch_capacity": capacity,
            "inference_busy": (now.inference_s - before.inference_s) / seconds,
            "copy_busy": (now.copy_s - before.copy_s) / seconds,
            "wait_share": (now.wait_s - before.wait_s) / seconds,
            "seconds": seconds,
        }


def _part_of(config: RunConfig, index: int) -> InferenceConfig:
    """Returns the inference settings of server ``index``, with its share of the GPUs.

    If there are fewer GPUs than servers, some servers share a GPU.
    """
    devices = config.inference.devices
    if not config.inference.is_on_gpu:
        return config.inference
    known = parse_devices("inference.devices", devices)
    own = known[index :: config.launch.of("inference").count] or (
        known[index % len(known)],
    )
    return dataclasses.replace(config.inference, devices=",".join(own))
