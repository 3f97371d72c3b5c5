"""Role ``follow``: an additional learner that computes a shard of each learner step."""

from __future__ import annotations

import socket

import torch

from tengen.errors import RunError
from tengen.learners import Learner
from tengen.learners.follower import Follower
from tengen.learners.peer import LEARNERS as DIALECT
from tengen.learners.peer import greeting
from tengen.learners.team import gpu_name
from tengen.roles.config import RunConfig
from tengen.roles.devices import learner_device
from tengen.roles.doors import LEARNERS, STORE, way_to
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import RunDirectory, keep_freed_memory
from tengen.store import Store
from tengen.transport import Client

_PATIENCE_S = 2.0
_TURN_S = 1.0
# Polling interval while there is no leader, in seconds.
_WAIT_S = 0.2


class FollowRole(Role):
    """Follows the leading learner until the leader ends.

    A follower writes no files and receives its state from the leader. If a follower is
    killed at any time, the leader loses one step, or two sampled batches.

    Raises:
        UsageError: Another process has this index, or this host lacks the device.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self._device = learner_device(config)
        self._wanted = config.agent.signature(config.task)
        super().__init__(config, run, context, f"learn-{context.index}")
        self._follower: Follower | None = None
        keep_freed_memory()

    def turn(self) -> Report | None:
        """Computes shards for the leader for a second; None if there is no leader."""
        if self._follower is None:
            try:
                connection = self._connect()
            except RunError as error:
                self.waits_for = str(error)
                self._context.stop.wait(_WAIT_S)
                return None
            self._follower = self._make_follower(connection)
            self._follower.begin()
        self.waits_for = ""
        follower = self._follower
        num_before = follower.num_steps
        if not follower.work(_TURN_S):
            self._end()
        return {
            "num_followed": follower.num_steps - num_before,
            "num_learners": follower.size,
        }

    def close(self) -> None:
        """Leaves the leader's team between two batches. A second call does nothing."""
        self._end()
        super().close()

    def _end(self) -> None:
        if self._follower is not None:
            follower, self._follower = self._follower, None
            follower.close()

    def _make_follower(self, connection: socket.socket) -> Follower:
        config, run = self._config, self._run
        return Follower(
            connection,
            config.family.open_part(run, self._store),
            self._make_learner,
            self._context.stop,
            progress=lambda report: self._context.progress(
                {"num_followed": report["num_steps"]}
            ),
        )

    def _store(self) -> Store:
        way = way_to(self._run, STORE, None)
        return Store.connect(way.address, **way.credentials)

    def _connect(self) -> socket.socket:
        way = way_to(self._run, LEARNERS, None)
        client = Client(DIALECT, way.address, patience_s=_PATIENCE_S, **way.credentials)
        message = greeting(self._context.index, gpu_name(self._device))
        return client.open_now(message)[0]

    def _make_learner(self, stage: int) -> Learner:
        """Returns a learner with a stage's network and without the leader's state."""
        config = self._config
        with torch.random.fork_rng(devices=[]):
            net = config.nets[stage].build(self._wanted).to(self._device)
        return Learner(
            config.learner,
            net,
            config.agent.make_update(config.task, net, config.store),
            None,
            num_threads=self._context.num_threads,
            device=self._device,
        )
