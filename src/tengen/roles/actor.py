"""Role ``actor``: one turn steps environments for some items on the newest model."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from tengen import envs
from tengen.actors import EnvironmentPort
from tengen.agents import EnvironmentAgent
from tengen.errors import RunError
from tengen.inference import bind_port, drive, open_backend
from tengen.models import load_model
from tengen.roles.config import RunConfig
from tengen.roles.experience import open_experience
from tengen.roles.role import Report, RoleContext
from tengen.run import RunDirectory

__all__ = ["ActorRole"]

_NAME = "actor-0"


class ActorRole:
    """Makes items; see ``Role``. It shares the learner's process and its experience.

    Args:
        config: The run's config.
        run: The run.
        context: What the process's roles share.

    Raises:
        UsageError: The run has no environments.
    """

    def __init__(
        self, config: RunConfig, run: RunDirectory, context: RoleContext
    ) -> None:
        agent = EnvironmentAgent.of(config, "actor")
        self.waits_for = ""
        self._config = config
        self._run = run
        self._context = context
        self._steps = agent.steps_of(open_experience(config, run, context))
        self._asked = agent.signature(config.task)
        # An actor that resumes gets other episodes, and draws other actions, than the
        # one before it began with.
        incarnation = run.new_incarnation("actor")
        seeds = np.random.SeedSequence((config.seed, incarnation))
        env_seed, draw_seed = map(int, seeds.generate_state(2, np.uint64))
        num_envs = agent.actor.num_envs
        self._env = envs.make(config.task, num_envs, env_seed)
        layout = self._steps.layout
        self._port = EnvironmentPort(
            self._env,
            agent,
            config.net.signature(self._asked),
            agent.make_block(self._env.spec, layout),
            self._steps.writer(_NAME, num_envs).append,
            seed=draw_seed,
            turn_blocks=agent.turn_blocks(layout),
        )

    def turn(self) -> Report | None:
        """Makes a turn's items; None where no model is published yet."""
        model = self._run.models.latest()
        self.waits_for = "no model is published yet" if model is None else ""
        if model is None:
            return None
        directory = load_model(
            self._run.models.entry(model),
            self._config.task,
            self._asked,
            error=RunError,
        )
        backend = open_backend(directory.path, self._config.inference, 1)
        port, before = self._port, self._counts()
        port.begin(directory.meta.num_steps, self._context.stop)
        start_s = time.monotonic()
        stats = drive(port, bind_port(backend, port))
        self._steps.flush()  # what a turn has made outlives a kill
        seconds = max(1e-9, time.monotonic() - start_s)
        after = self._counts()
        grown = {name: after[name] - before[name] for name in after}
        return {
            **grown,
            "model": model,
            "stopped": self._context.stop.is_set(),
            "num_evaluations": stats.num_evaluations,
            "batch_rows": stats.num_evaluations / max(1, stats.num_batches),
            "batch_capacity": self._env.num_envs,
            "inference_busy": stats.inference_s / seconds,
            "tree_busy": stats.port_s / seconds,
            "mean_return": port.stats.mean_return,
            "seconds": seconds,
        }

    def close(self) -> None:
        """Closes the environments."""
        self._env.close()

    def _counts(self) -> dict[str, Any]:
        stats = self._port.stats
        return {
            "num_items": stats.num_items,
            "num_rows": stats.num_frames,
            "num_episodes": stats.num_episodes,
        }
