"""What an actor is connected to: who answers it, and where its steps go."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Protocol

from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.envs import Arrays
from tengen.errors import RunError, TengenError
from tengen.experience import ItemLayout, StepClient
from tengen.inference import DriveStats, RowArrays, bind_port, drive, open_backend
from tengen.inference.central import (
    INFERENCE,
    InferenceClient,
    Interrupted,
    connect_rows,
)
from tengen.models import load_model
from tengen.roles.config import RunConfig
from tengen.roles.experience import STORE, open_experience
from tengen.roles.role import RoleContext
from tengen.run import RunDirectory, read_endpoint
from tengen.transport import Client

__all__ = ["ActorLink", "Driven", "OwnLink", "RemoteLink"]

_PATIENCE_S = 60.0
_GRACE_S = 2.0
# A turn there has as many of the agent's turns as fit, for fewer reports.
_TURN_S = 1.0


@dataclass(frozen=True)
class Driven:
    """A turn that was driven."""

    stats: DriveStats
    """Where its time went."""
    model: int
    """The number of the model that answered last."""


class ActorLink(Protocol):
    """The two ends of an actor. Used by one thread."""

    layout: ItemLayout
    arrays: RowArrays | None

    def write(self, columns: Arrays, state: Arrays) -> int:
        """Writes a block; see ``EnvironmentPort``."""

    def drive(self, port: EnvironmentPort) -> Driven | None:
        """Drives a turn, whose items then outlive a kill; None where there is no model.

        Raises:
            Interrupted: The role is to stop, and what it waited for did not come.
        """

    def close(self) -> None:
        """Ends both. A second call does nothing."""


class OwnLink:
    """The network and the experience of this process; see ``ActorLink``."""

    def __init__(
        self,
        agent: EnvironmentAgent,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
    ) -> None:
        self.arrays: RowArrays | None = None
        self._config = config
        self._run = run
        self._context = context
        self._asked = agent.signature(config.task)
        self._steps = agent.steps_of(open_experience(config, run, context))
        self.layout = self._steps.layout
        self.write = self._steps.writer("actor-0", agent.actor.num_envs).append

    def drive(self, port: EnvironmentPort) -> Driven | None:
        """See ``ActorLink.drive``."""
        model = self._run.models.latest()
        if model is None:
            return None
        directory = load_model(
            self._run.models.entry(model),
            self._config.task,
            self._asked,
            error=RunError,
        )
        backend = open_backend(directory.path, self._config.inference, 1)
        port.begin(directory.meta.num_steps, self._context.stop)
        stats = drive(port, bind_port(backend, port))
        self._steps.flush()
        return Driven(stats, model)

    def close(self) -> None:
        """See ``ActorLink.close``; the experience is closed by the learner."""


class RemoteLink:
    """Role ``inference`` and the learner's table; see ``ActorLink``.

    An item is in the table when the write of its block returns, and outlives the
    learner's process.
    """

    def __init__(
        self,
        agent: EnvironmentAgent,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
    ) -> None:
        self._stop = context.stop
        self._is_closed = threading.Event()
        num_envs = agent.actor.num_envs
        signature = agent.net_signature(config)
        self.layout = agent.layout(signature.state)
        client = Client(INFERENCE, read_endpoint(run, "inference").reached("inference"))
        self._inference = InferenceClient(
            connect_rows(client, signature, num_envs),
            signature,
            num_envs,
            self._stop,
            _PATIENCE_S,
        )
        self.arrays: RowArrays | None = self._inference.arrays
        self._steps = StepClient(
            read_endpoint(run, STORE).reached(STORE),
            self.layout,
            agent.table_config(config),
            _PATIENCE_S,
        )
        writer = self._steps.writer(f"actor-{context.index}", num_envs)
        self._append = writer.append
        threading.Thread(target=self._end_waits, daemon=True).start()

    def write(self, columns: Arrays, state: Arrays) -> int:
        """See ``ActorLink.write``."""
        try:
            return self._append(columns, state)
        except TengenError:
            # At the end of a run its roles end in any order.
            if self._stop.wait(_GRACE_S):
                raise Interrupted from None
            raise

    def drive(self, port: EnvironmentPort) -> Driven | None:
        """See ``ActorLink.drive``."""
        stats = DriveStats()
        until = time.monotonic() + _TURN_S
        while True:
            port.begin(stop=self._stop)
            drive(port, self._inference, stats)
            if self._stop.is_set() or time.monotonic() >= until:
                return Driven(stats, self._inference.model)

    def close(self) -> None:
        """See ``ActorLink.close``."""
        self._is_closed.set()
        self._inference.close()
        self._steps.close()

    def _end_waits(self) -> None:
        """Ends a write that waits for room where the role is to stop."""
        self._stop.wait()
        if not self._is_closed.wait(_GRACE_S / 2):
            self._steps.close()
