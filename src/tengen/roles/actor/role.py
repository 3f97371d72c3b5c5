"""Role ``actor``: steps environments with the newest model."""

from __future__ import annotations

import functools
import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from tengen import envs
from tengen.actors import (
    Behaviours,
    EnvironmentPort,
    EnvironmentStats,
    Opponents,
    Slots,
)
from tengen.agents import EnvironmentAgent
from tengen.config import check
from tengen.envs import Env, GroupEnv
from tengen.errors import EnvError
from tengen.inference.central import Interrupted
from tengen.roles.actor.links import ActorLink, LinkLost
from tengen.roles.config import RunConfig
from tengen.roles.config.environments import earlier_models, open_kept
from tengen.roles.role import Report, Role, RoleContext
from tengen.run import RunDirectory

# Polling interval of the watcher thread, in seconds. With a shorter interval, the
# threads of hundreds of actors would keep a core busy.
_LOOK_S = 5.0
# Seconds by which the runner's time limit for a hang exceeds the watcher's, so that the
# watcher thread detects a hang first. Only it can report how long the hang lasted.
_SIGN_S = 2.0
# Seconds between two writes of the behaviours' file, which may take longer than a turn.
_SAVE_S = 5.0


class ActorRole(Role):
    """Steps environments and writes items of experience.

    If roles take turns, the actor shares the learner's process and experience. If roles
    work concurrently, the actor has neither a network nor experience: it requests
    network outputs from role ``inference`` and writes to the learner's table.

    Raises:
        UsageError: The run has no environments, or needs earlier models that this host
            does not have.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        super().__init__(config, run, context)
        self._agent = EnvironmentAgent.of(config.agent, "actor")
        check(
            context.mirror is None or not self._agent.actor.opponents,
            "agent.actor.opponents",
            self._agent.actor.opponents,
            "must be 0 for an actor without the run directory, which has the models; "
            "mount the directory on this host, or set 0",
        )
        self._link: ActorLink | None = None
        self._envs: Sequence[Env | GroupEnv] = []
        self._ports: list[EnvironmentPort] = []
        self._opponents: list[Opponents] = []
        path = run.actors / f"behaviour-{context.index}.json"
        self._behaviours = Behaviours(path, _SAVE_S)
        self._stats = EnvironmentStats()
        self._begun_s: float | None = None
        self._num_lives = 0
        # Whether a turn is running. True from the start, as a turn follows immediately.
        self._is_turning = True
        self._sign_lock = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._is_closed = threading.Event()
        if not context.at_once:
            self._begin()

    def turn(self) -> Report | None:
        """Steps the environments for one turn; returns None if there is no model."""
        self._is_turning = True
        try:
            return self._turn()
        except Interrupted:
            return {"stopped": True}
        except LinkLost:
            # Recover with new episodes, as after a restart of this process.
            self._end_link()
            self.waits_for = "the learner's table was lost; waiting for it"
            return None
        finally:
            # After this turn, a heartbeat would count for another role in this process.
            with self._sign_lock:
                self._is_turning = False

    def close(self) -> None:
        """Closes the environments and the connections."""
        self._is_closed.set()
        if self._watcher is not None:
            self._watcher.join()
        self._end_link()

    def _end_link(self) -> None:
        if self._link is not None:
            self._link.close()
        for env in self._envs:
            try:
                env.close()
            except EnvError:
                # Only log the error, because the items already written are valid.
                traceback.print_exc()
        self._link, self._envs, self._ports = None, [], []
        self._opponents = []
        self._stats = EnvironmentStats()
        self._behaviours.close()

    def _begin(self) -> ActorLink:
        """Creates and resets the environments, and connects to the services."""
        try:
            self._link = self._connect()
            return self._link
        except BaseException:
            # End the watcher thread, because an actor that failed cannot hang.
            self._is_closed.set()
            raise
        finally:
            self._begun_s = None

    def _connect(self) -> ActorLink:
        agent, config, context = self._agent, self._config, self._context
        # The seed depends on the incarnation, so that a restarted actor plays other
        # episodes and samples other actions than its predecessor.
        life: tuple[int, ...]
        if context.mirror is None:
            life = (self._run.new_incarnation("actor"), context.index)
        else:
            # The run's host counts this process's incarnations; reconnections within
            # the process are counted here.
            self._num_lives += 1
            life = (context.mirror.place.incarnation, context.index, self._num_lives)
        seeds = np.random.SeedSequence((config.seed, *life))
        sizes = agent.actor.group_sizes() if context.at_once else [agent.actor.num_envs]
        env_seed, draw_seed, *rest = map(
            int, seeds.generate_state(1 + len(sizes), np.uint64)
        )
        # Send a heartbeat before the environments are created, because their creation
        # may block all threads of this process.
        self._tell_alive()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        # Create the environments before the link, so that processes forked by an
        # environment inherit no locks and no connections.
        self._begun_s = time.monotonic()
        with context.starting("making the environment"):
            self._envs = envs.make_groups(config.task, sizes, [env_seed, *rest])
        self._begun_s = None
        with context.starting("compiling the environment"):
            for env in self._envs:
                if isinstance(env, envs.CompiledEnv):
                    env.compile()
        if not agent.learns_from_state:
            for env in self._envs:
                envs.hide_state(env)
        link = self._link = _link(agent, config, self._run, context)
        num_actors = config.launch.of("actor").count if context.at_once else 1
        num_agents = self._envs[0].spec.num_agents
        num_rows = agent.actor.num_envs * num_agents
        first = context.index * num_rows
        for env, group in zip(self._envs, link.groups, strict=True):
            self._begun_s = time.monotonic()
            slots = Slots(first, env.num_envs, num_actors * num_rows, num_agents)
            behaviour = agent.behaviour(slots, draw_seed)
            if behaviour is not None:
                self._behaviours.add(behaviour)
            opponents = None
            if share := agent.actor.opponents:
                opponents = Opponents(
                    env.spec,
                    config.signature,
                    slots,
                    share,
                    draw_seed,
                    functools.partial(open_kept, config, self._run),
                )
                self._behaviours.add(opponents)
                opponents.offer(earlier_models(self._run))
                self._opponents.append(opponents)
            port = EnvironmentPort(
                env,
                agent,
                config.signature,
                agent.make_block(env.spec, link.layout, group.num_copies),
                group.write,
                seed=draw_seed,
                turn_blocks=agent.turn_blocks(link.layout),
                slots=slots,
                behaviour=behaviour,
                opponents=opponents,
                arrays=group.arrays,
                stats=self._stats,
            )
            self._ports.append(port)
            first += env.num_envs
        return link

    def _turn(self) -> Report | None:
        if self._context.at_once and self._config.inference.has_auto:
            self.waits_for = "export has not chosen the backend yet"
            return None
        if not self._context.at_once and self._newest_model() is None:
            return None
        link = self._link or self._begin()
        stats = self._stats
        before, written_s = self._counts(), stats.write_s
        stepped_s = stats.step_s
        for opponents in self._opponents:
            opponents.offer(earlier_models(self._run))
        start_s = time.monotonic()
        driven = link.drive(self._ports)
        self._behaviours.save()
        self.waits_for = ""
        seconds = max(1e-9, time.monotonic() - start_s)
        after = self._counts()
        written_s = stats.write_s - written_s
        stepped_s = stats.step_s - stepped_s
        grown = {name: after[name] - before[name] for name in after}
        return {
            **grown,
            "model": driven.model,
            "stopped": self._context.stop.is_set(),
            "num_evaluations": driven.stats.num_evaluations,
            "batch_rows": driven.stats.num_evaluations
            / max(1, driven.stats.num_batches),
            "batch_capacity": sum(env.num_envs for env in self._envs),
            "inference_busy": driven.stats.inference_s / seconds,
            "tree_busy": max(0.0, driven.stats.port_s - written_s) / seconds,
            "simulation_busy": stepped_s / seconds,
            "answer_wait": driven.waited_s / seconds,
            "room_wait": written_s / seconds,
            "mean_return": stats.mean_return,
            "mean_length": stats.mean_length,
            "frames_per_step": self._ports[0].frames_per_step,
            "seconds": seconds,
            # Write time counts as idle, because writers mostly wait for a full table.
            "idle_s": driven.waited_s + written_s,
        }

    def _watch(self) -> None:
        """Ends the process if an environment hangs, so that the process is restarted.

        An environment that holds the interpreter's lock also blocks this thread. If so,
        the runner receives no heartbeat and kills the process.
        """
        timeout_s = self._agent.actor.step_timeout_s
        while not self._is_closed.wait(min(_LOOK_S, timeout_s / 4)):
            self._tell_alive()
            begun_s = self._begun_s
            busy_s = max((port.busy_s for port in [*self._ports]), default=0.0)
            if begun_s is not None:
                busy_s = time.monotonic() - begun_s
            if busy_s > timeout_s:
                self._context.die(self._hangs(f"for {busy_s:.0f} s"))

    def _tell_alive(self) -> None:
        within_s = self._agent.actor.step_timeout_s + _SIGN_S
        why = self._hangs(f"without a heartbeat for {within_s:.0f} s")
        with self._sign_lock:
            if self._is_turning:
                self._context.alive(within_s, why)

    def _hangs(self, how: str) -> str:
        return (
            f"environment ({self._config.task}) hangs, {how}; correct it, or raise "
            f"agent.actor.step_timeout_s"
        )

    def _counts(self) -> dict[str, Any]:
        return {
            "num_items": self._stats.num_items,
            "num_rows": self._stats.num_frames,
            "num_episodes": self._stats.num_episodes,
        }


def _link(
    agent: EnvironmentAgent, config: RunConfig, run: RunDirectory, context: RoleContext
) -> ActorLink:
    # Imported here, so that an actor without a network does not load network code.
    if context.at_once:
        from tengen.roles.actor.remote_link import RemoteLink

        return RemoteLink(agent, config, run, context)
    from tengen.roles.actor.own_link import OwnLink

    return OwnLink(agent, config, run, context)
