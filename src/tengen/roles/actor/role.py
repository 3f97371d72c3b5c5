"""Role ``actor``: one turn steps environments for some items, on the newest model."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Sequence
from typing import Any

import numpy as np

from tengen import envs
from tengen.actors import EnvironmentPort, EnvironmentStats, Slots
from tengen.agents import EnvironmentAgent
from tengen.envs import Env, GroupEnv
from tengen.errors import EnvError
from tengen.inference.central import Interrupted
from tengen.roles.actor.links import ActorLink, LinkLost
from tengen.roles.config import RunConfig
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory

__all__ = ["ActorRole"]

# If hundreds of actors woke more often, they would keep a core busy.
_LOOK_S = 5.0
# The runner waits longer, so that this process notices a hang first: it can say how
# long the hang lasted.
_SIGN_S = 2.0


class ActorRole:
    """Steps environments and writes items; see ``Role``.

    Where roles take turns, the actor shares the learner's process and experience. Where
    all roles work at once, it has neither a network nor experience: it asks role
    ``inference``, and writes into the learner's table.

    Args:
        config: The run's config.
        run: The run.
        context: What the process's roles share, and which actor this is.

    Raises:
        UsageError: The run has no environments.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        self.waits_for = ""
        self._agent = EnvironmentAgent.of(config.agent, "actor")
        self._config = config
        self._run = run
        self._context = context
        self._link: ActorLink | None = None
        self._envs: Sequence[Env | GroupEnv] = []
        self._ports: list[EnvironmentPort] = []
        self._stats = EnvironmentStats()
        self._begun_s: float | None = None
        self._num_lives = 0
        # True from the start, because the first turn follows at once.
        self._is_turning = True
        self._sign_lock = threading.Lock()
        self._watcher: threading.Thread | None = None
        self._is_closed = threading.Event()
        if not context.at_once:
            self._begin()

    def turn(self) -> Report | None:
        """Makes the items of a turn; returns None if no model is published yet."""
        self._is_turning = True
        try:
            return self._turn()
        except Interrupted:
            return {"stopped": True}
        except LinkLost:
            # As if the process had died and been started again: episodes begin anew.
            self._end_link()
            self.waits_for = "the learner's table was lost; waiting for it"
            return None
        finally:
            # A sign after the turn would watch another role of this process.
            with self._sign_lock:
                self._is_turning = False

    def close(self) -> None:
        """Closes the environments."""
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
                # The items are kept, so the error only goes to the log, and the run
                # continues.
                traceback.print_exc()
        self._link, self._envs, self._ports = None, [], []
        self._stats = EnvironmentStats()

    def _begin(self) -> ActorLink:
        """Connects, and resets the environments."""
        try:
            self._link = self._connect()
            return self._link
        except BaseException:
            # An actor that failed does not hang.
            self._is_closed.set()
            raise
        finally:
            self._begun_s = None

    def _connect(self) -> ActorLink:
        agent, config, context = self._agent, self._config, self._context
        # An actor that resumes has other episodes and draws other actions than the
        # process before it.
        life: tuple[int, ...]
        if context.mirror is None:
            life = (self._run.new_incarnation("actor"), context.index)
        else:
            # Incarnations are counted at the run's host, and later lives here.
            self._num_lives += 1
            life = (context.mirror.place.incarnation, context.index, self._num_lives)
        seeds = np.random.SeedSequence((config.seed, *life))
        sizes = agent.actor.group_sizes() if context.at_once else [agent.actor.num_envs]
        env_seed, draw_seed, *rest = map(
            int, seeds.generate_state(1 + len(sizes), np.uint64)
        )
        # Before the environment is made, because a thread may not run while it is.
        self._tell_alive()
        if self._watcher is None:
            self._watcher = threading.Thread(target=self._watch, daemon=True)
            self._watcher.start()
        # First, so that processes that an environment forks get no lock and no
        # connection.
        self._begun_s = time.monotonic()
        with context.starting("making the environment"):
            self._envs = envs.make_groups(config.task, sizes, [env_seed, *rest])
        self._begun_s = None
        link = _link(agent, config, self._run, context)
        num_actors = config.launch.of("actor").count if context.at_once else 1
        first = context.index * agent.actor.num_envs
        for env, group in zip(self._envs, link.groups, strict=True):
            self._begun_s = time.monotonic()
            port = EnvironmentPort(
                env,
                agent,
                config.signature,
                agent.make_block(env.spec, link.layout, group.num_envs),
                group.write,
                seed=draw_seed,
                turn_blocks=agent.turn_blocks(link.layout),
                slots=Slots(first, group.num_envs, num_actors * agent.actor.num_envs),
                arrays=group.arrays,
                stats=self._stats,
            )
            self._ports.append(port)
            first += group.num_envs
        return link

    def _turn(self) -> Report | None:
        if self._context.at_once and self._config.inference.has_auto:
            self.waits_for = "export has not chosen the backend yet"
            return None
        link = self._link or self._begin()
        stats = self._stats
        before, written_s = self._counts(), stats.write_s
        stepped_s = stats.step_s
        start_s = time.monotonic()
        driven = link.drive(self._ports)
        self.waits_for = "no model is published yet" if driven is None else ""
        if driven is None:
            return None
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
            "batch_capacity": self._agent.actor.num_envs,
            "inference_busy": driven.stats.inference_s / seconds,
            "tree_busy": max(0.0, driven.stats.port_s - written_s) / seconds,
            "simulation_busy": stepped_s / seconds,
            "answer_wait": driven.waited_s / seconds,
            "room_wait": written_s / seconds,
            "mean_return": stats.mean_return,
            "mean_length": stats.mean_length,
            "frames_per_step": self._ports[0].frames_per_step,
            "seconds": seconds,
            # A full table makes writers wait.
            "idle_s": driven.waited_s + written_s,
        }

    def _watch(self) -> None:
        """Ends the process if an environment hangs, so that it is started again.

        An environment that keeps the interpreter's lock also stops this thread: then
        the runner gets no sign of life, and kills the process.
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
        why = self._hangs(f"without a sign of life for {within_s:.0f} s")
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
    # An actor without a network stays small: it imports no code that evaluates one.
    if context.at_once:
        from tengen.roles.actor.remote_link import RemoteLink

        return RemoteLink(agent, config, run, context)
    from tengen.roles.actor.own_link import OwnLink

    return OwnLink(agent, config, run, context)
