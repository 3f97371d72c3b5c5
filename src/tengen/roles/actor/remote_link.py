"""The connections of an actor that has no network and no experience of its own."""

from __future__ import annotations

import functools
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import TypeVar

from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.config import check_range
from tengen.envs import Arrays, env_spec
from tengen.errors import RunError, TengenError
from tengen.experience import StepClient
from tengen.inference import DriveStats, central
from tengen.roles.actor.links import Driven, Group, LinkLost, open_writer
from tengen.roles.config import RunConfig
from tengen.roles.doors import STORE, server_name, way_to
from tengen.roles.role import RoleContext, patiently
from tengen.run import RunDirectory, evict_mirrors
from tengen.run.actor_counts import ActorCounts
from tengen.transport import Client, is_net

Connected = TypeVar("Connected")

# For an actor by itself. Where a runner starts the services too, it also ends the
# actors: they wait as long as the services need, on however busy a machine.
_GRACE_S = 2.0
_RETRY_S = 0.1
# A long polling interval in seconds, because hundreds of actors may poll.
_LOOK_S = 0.5
# A turn of the role lasts at least this long and combines as many turns of the ports as
# fit, which limits the number of reports that the runner receives from all actors.
_TURN_S = 1.0
_REPORTS_PER_S = 50


class RemoteLink:
    """An ``ActorLink`` to the inference servers and the learner's table.

    The number of a group of copies decides its home server; if that server is lost, the
    group goes to another one, see ``tengen.inference.central.Places``. Steps written to
    a table on this host lie in memory that outlives the learner's process.

    Attributes:
        patience_s: Seconds that it waits for what it connects to, unless the run
            itself started this process.
    """

    patience_s = 300.0

    def __init__(
        self,
        agent: EnvironmentAgent,
        config: RunConfig,
        run: RunDirectory,
        context: RoleContext,
    ) -> None:
        self._context = context
        self._num_actors = config.launch.of("actor").count
        check_range(
            "index",
            context.index,
            0,
            self._num_actors - 1,
            "raise launch.roles.actor.count",
        )
        self._stop = context.stop
        name = f"actor-{context.index}"
        if context.is_vouched and context.mirror is None:
            evict_mirrors(run, "actor", context.index)
            lock = patiently(lambda: run.lock(name), context)
        else:
            lock = run.lock(name)
        self._held = ExitStack()
        self._held.callback(lock.release)
        try:
            self._open(agent, config, run)
        except BaseException:
            self._held.close()
            raise

    def _open(
        self, agent: EnvironmentAgent, config: RunConfig, run: RunDirectory
    ) -> None:
        """Connects to inference and to the table. Blocks until both accept."""
        context = self._context
        self._is_closed = threading.Event()
        self._awaited: set[str] = set()
        self._is_far = False
        self._agent, self._spec = agent, env_spec(config.task)
        sizes = agent.actor.group_sizes()
        signature = config.signature
        self.layout = agent.layout_of(signature)

        def client_of(server: int) -> Client:
            # Look up the address, because the server may be restarted on another host.
            way = way_to(run, server_name(server), context.connect)
            return Client(central.INFERENCE, way.address, **way.credentials)

        def open_rows(server: int, num_rows: int) -> central.Stream:
            return central.connect_rows(client_of(server), signature, num_rows)()

        def ask_model(server: int, patience_s: float) -> int | None:
            try:
                return central.ask_model(client_of(server), patience_s)
            except RunError:
                return None  # the server never ran, or rejects other hosts

        def open_steps() -> StepClient:
            way = way_to(run, STORE, context.connect)
            self._is_far = is_net(way.address)
            return StepClient(
                way.address,
                self.layout,
                agent.table_config(
                    config.store, config.learner, self._num_actors, self._spec
                ),
                self.patience_s,
                **way.credentials,
            )

        where = context.connect.address if context.connect else run.path
        learner, inference = f"the learner of {where}", f"inference of {where}"
        # Each group has its own session, so that one group can step its environments
        # while another group waits for inference.
        self._inference: list[central.InferenceClient] = []
        num_servers = config.launch.of("inference").count
        for place, num_copies in enumerate(sizes):
            num_rows = num_copies * self._spec.num_agents
            number = context.index * len(sizes) + place
            places = [
                central.Place(
                    functools.partial(open_rows, server, num_rows),
                    functools.partial(ask_model, server),
                )
                for server in central.servers_in_order(number, num_servers)
            ]
            client = self._reach(
                functools.partial(
                    central.InferenceClient,
                    central.Places(
                        places, functools.partial(self._say_once, inference)
                    ),
                    signature,
                    num_rows,
                    self._stop,
                    self.patience_s,
                ),
                inference,
            )
            self._held.callback(client.close)
            self._inference.append(client)
        self._steps = self._reach(open_steps, learner)
        self._held.callback(self._steps.close)
        self._counts = ActorCounts(run, context.index)
        self._held.callback(self._counts.close)
        self.groups: Sequence[Group] = [
            self._group(place, client) for place, client in enumerate(self._inference)
        ]
        self._ender = threading.Thread(target=self._end_waits, daemon=True)
        self._ender.start()

    def _group(self, place: int, client: central.InferenceClient) -> Group:
        num_copies = client.arrays.num_rows // self._spec.num_agents
        name = f"actor-{self._context.index}" + (f"-group-{place}" if place else "")
        append = open_writer(self._steps, name, self._agent, self._spec, num_copies)
        write = functools.partial(self._write, append)
        return Group(num_copies, write, client.arrays)

    def _write(
        self, append: Callable[[Arrays, Arrays], int], columns: Arrays, state: Arrays
    ) -> int:
        try:
            before = self._steps.num_rows, self._steps.num_episodes
            num_items = append(columns, state)
            self._counts.add(
                self._steps.num_rows - before[0], self._steps.num_episodes - before[1]
            )
            return num_items
        except TengenError as error:
            # Ignore the error at the end of a run, when the learner may end first.
            if self._stop.wait(_GRACE_S):
                raise central.Interrupted from None
            if self._is_far and self._steps.is_lost(error):
                raise LinkLost from error
            raise

    def drive(self, ports: Sequence[EnvironmentPort]) -> Driven:
        """See ``ActorLink.drive``."""
        stats = DriveStats()
        turn_s = max(_TURN_S, self._num_actors / _REPORTS_PER_S)
        until = time.monotonic() + turn_s
        frames_left = self._context.frames_left
        last = math.inf
        if frames_left is not None:  # stop after this actor's share
            last = ports[0].stats.num_frames + frames_left / self._num_actors

        def is_over() -> bool:
            if self._stop.is_set() or time.monotonic() >= until:
                return True
            return ports[0].stats.num_frames >= last  # all ports share stats

        askers = [
            central.Asker(port, client, functools.partial(port.begin, stop=self._stop))
            for port, client in zip(ports, self._inference, strict=True)
        ]
        central.drive_in_turns(askers, is_over, stats)
        model = max(client.model for client in self._inference)
        return Driven(stats, model, stats.inference_s)

    def close(self) -> None:
        """See ``ActorLink.close``."""
        self._is_closed.set()
        # Join the thread, because it refers to this link, and the link's writers must
        # not outlive the interpreter.
        self._ender.join()
        self._held.close()

    def _say_once(self, service: str) -> None:
        """Tells the user once that this actor waits for a service."""
        if service not in self._awaited:
            self._awaited.add(service)
            self._context.say(f"waits for {service}")

    def _reach(self, connect: Callable[[], Connected], service: str) -> Connected:
        """Retries ``connect`` until its service has started; returns the connection.

        Args:
            connect: Opens the connection.
            service: Name of the service, for messages.

        Raises:
            RunError: The service did not start in time.
            Interrupted: The role was asked to stop.
        """
        patience_s = math.inf if self._context.is_vouched else self.patience_s
        until = time.monotonic() + patience_s
        while True:
            try:
                return connect()
            except RunError as error:
                self._say_once(service)
                if time.monotonic() >= until:
                    raise RunError(
                        f"{service} did not accept this actor for {self.patience_s:g} "
                        f"s: {error}"
                    ) from error
            if self._stop.wait(_RETRY_S):
                raise central.Interrupted

    def _end_waits(self) -> None:
        """Waits for a stop request, then aborts a write that waits for a full table."""
        while not self._stop.wait(_LOOK_S):
            if self._is_closed.is_set():
                return
        if not self._is_closed.wait(_GRACE_S / 2):
            self._steps.close()
